"""`smdbg sagemaker export`, and `smdbg run` with a job's JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Command
from tests.core.cli.test_cli import sick, smdbg
from tests.core.sagemaker.test_jobs import describe

__all__ = ["sick", "smdbg"]

CONFIG = """
job_name = "job-1"
[sagemaker]
region = "us-west-2"
s3_output_path = "s3://bucket/out"
[actions.stop]
type = "StopTraining"
[[rules]]
rule = "VanishingGradient"
name = "strict"
threshold = 1e-6
exclude = "bias"
actions = ["stop"]
collections = {gradients = {save_interval = 100}}
"""


def test_export_and_run_what_was_exported(smdbg: Command, sick: str, tmp_path: Path) -> None:
    (tmp_path / "smdbg.toml").write_text(CONFIG)
    done = smdbg("sagemaker", "export", "smdbg.toml")
    assert done.status == 0
    assert done.err == "warning: strict: exclude stays here: SageMaker does not have it\n"
    request = json.loads(done.out)
    assert request["DebugRuleConfigurations"][0]["RuleParameters"] == {
        "rule_to_invoke": "VanishingGradient",
        "threshold": "1e-06",
        "action_json": r"[{\"name\": \"stoptraining\", \"training_job_prefix\": \"job-1\"}]",
    }
    assert smdbg("sagemaker", "export", "smdbg.toml", "--output", "job.json").status == 0
    assert json.loads(Path("job.json").read_text()) == request
    again = smdbg("sagemaker", "export", "job.json")
    assert json.loads(again.out) == request
    judged = smdbg("run", sick, "--config", "job.json", "--dry-run", "--format", "json")
    assert judged.status == 1
    report = json.loads(judged.out)
    assert [(one["name"], one["status"]) for one in report["outcomes"]] == [("strict", "fired")]
    assert report["actions"][0]["status"] == "dry_run"


def test_a_response_becomes_verdicts_on_local_data(smdbg: Command, sick: str) -> None:
    Path("job.json").write_text(json.dumps(describe(TrainingJobStatus="Completed")))
    done = smdbg("run", sick, "--config", "job.json", "--format", "json")
    assert done.err == "warning: the job has ended: its actions are left out\n"
    report = json.loads(done.out)
    outcomes = {one["name"]: one["status"] for one in report["outcomes"]}
    assert outcomes["vanishing"] == "fired"
    assert outcomes["StepOutlier"] == "not_evaluated"
    assert report["actions"] == []
    assert done.status == 1


def test_mistakes(smdbg: Command, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[sagemaker]\nregoin = 'x'\n[[rules]]\nrule = 'TreeDepth'\n")
    assert (
        "a.toml: sagemaker: no key 'regoin'; did you mean 'region'?"
        in smdbg("sagemaker", "export", "a.toml").err
    )
    (tmp_path / "b.toml").write_text("")
    done = smdbg("sagemaker", "export", "b.toml")
    assert (done.status, done.err) == (2, "smdbg: b.toml: no rules and no collections to write\n")
    (tmp_path / "c.toml").write_text("[[rules]]\nrule = 'TreeDepth'\ncollections = {x = 3}\n")
    assert "`collections` is a table" in smdbg("sagemaker", "export", "c.toml").err
    (tmp_path / "d.toml").write_text(CONFIG)
    done = smdbg("sagemaker", "export", "d.toml", "--output", "no/such/folder.json")
    assert done.status == 2
    assert "cannot be written" in done.err


@pytest.mark.parametrize("count", [20, 21])
def test_twenty_rules(smdbg: Command, tmp_path: Path, count: int) -> None:
    rules = "".join(f'[[rules]]\nrule = "TreeDepth"\nname = "r{n}"\n' for n in range(count))
    (tmp_path / "s.toml").write_text(f'[sagemaker]\nregion="us-east-1"\ns3_output_path="s3://b"\n{rules}')
    done = smdbg("sagemaker", "export", "s.toml")
    assert done.status == (0 if count == 20 else 2)
    assert ("21 rules; SageMaker takes 20" in done.err) == (count == 21)
