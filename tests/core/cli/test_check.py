"""`smdbg check`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.command import Command
from tests.core.cli.test_cli import smdbg
from tests.core.sagemaker.test_check import CONFIG
from tests.core.sagemaker.test_jobs import describe

__all__ = ["smdbg"]


def test_configuration(smdbg: Command) -> None:
    Path("smdbg.toml").write_text(CONFIG)
    done = smdbg("check")
    assert done.status == 1
    assert "  CAN NEVER DECIDE: nothing saves collection biases" in done.out
    assert re.search(r"\n  threshold +1e-06  \[smdbg.toml\]\n", done.out)
    assert done.out.endswith("8 rules, 4 with problems; 1 other problems.\n")
    document = json.loads(smdbg("check", "smdbg.toml", "--format", "json").out)
    assert document["rules"][0]["name"] == "VanishingGradient"


def test_job(smdbg: Command) -> None:
    Path("job.json").write_text(json.dumps(describe()))
    done = smdbg("check", "job.json")
    assert (done.status, done.err) == (0, "")
    assert "  the service said: IssuesFound\n" in done.out
    assert "  gradients  save_interval=500\n" in done.out
    assert smdbg("check", "job.json", "--framework", "xgboost").status == 1


def test_mistakes(smdbg: Command) -> None:
    Path("bad.toml").write_text('[[rules]]\nrule = "TreeDepth"\ndepht = 3\n')
    done = smdbg("check", "bad.toml")
    assert done.status == 2
    assert "did you mean 'depth'" in done.err
