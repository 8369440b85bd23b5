"""The examples do what the documentation says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from smdbg_core import Report, RuleConfig, evaluate

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "capture_numpy.py"

VENDOR = '''
"""A stand-in for the vendor's management library: one GPU that idles."""
from types import SimpleNamespace

class NVMLError(Exception):
    pass

def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 1
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetUtilizationRates(handle): return SimpleNamespace(gpu=3)
def nvmlDeviceGetMemoryInfo(handle): return SimpleNamespace(used=20, total=100)
'''

RULES = [
    "Dataloader",
    RuleConfig("StepOutlier", parameters={"n_outliers": 3}),
    RuleConfig("CPUBottleneck", parameters={"patience": 10}),
]


def judged(tmp_path: Path, *options: str) -> Report:
    (tmp_path / "pynvml.py").write_text(VENDOR)
    command = [Path(sys.executable).with_name("smdbg"), "capture", "--interval", "0.1"]
    command += ["--output", tmp_path / "run" / "profiler-output", "--", sys.executable, EXAMPLE, *options]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("loss ")
    return evaluate(str(tmp_path / "run"), RULES, preset="recommended")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_planted_faults_are_found(tmp_path: Path) -> None:
    report = judged(tmp_path, "--steps", "110", "--slow-loader", "--slow-steps", "--hog")
    assert report.outcome("CPUBottleneck").status == "fired"
    assert "waiting for data" in {finding.subject for finding in report.outcome("Dataloader").findings}
    assert report.outcome("StepOutlier").status == "fired"
