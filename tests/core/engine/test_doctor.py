"""What data can be judged, and what not."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from smdbg_core.engine.doctor import Check, Diagnosis, examine
from tests.builders import write_trial
from tests.profiler_job import Job

CPU = ("cpu0", "CPUUtilization")


def of(diagnosis: Diagnosis, subject: str) -> list[Check]:
    return [check for check in diagnosis.checks if check.subject == subject]


def only(diagnosis: Diagnosis, subject: str) -> Check:
    (check,) = of(diagnosis, subject)
    return check


def test_profiler_output(tmp_path: Path) -> None:
    job = Job().ticks({CPU: [50.0] * 60}).steps([0.1] * 120)
    diagnosis = examine(job.write(tmp_path))
    assert only(diagnosis, "layout").message == "1 file of system metrics, 1 file of timelines"
    assert only(diagnosis, "end marker").status == "pass"
    assert only(diagnosis, "algo-1").message == "60 ticks every 0.5 s of CPUUtilization"
    assert only(diagnosis, "algo-1-27").message == "120 TRAIN steps"
    assert only(diagnosis, "damage").message == "none"
    assert only(diagnosis, "StepOutlier").message == "can be judged: 1 point, 1 series, 1 window"
    blind = only(diagnosis, "LowGPUUtilization")
    assert (blind.status, blind.message) == ("note", "not measured: no samples of GPUUtilization")
    assert "NVIDIA" in str(blind.fix)
    assert {"StepOutlier", "MaxInitializationTime"} <= set(diagnosis.judged)
    assert {"LowGPUUtilization", "AllZero"} <= set(diagnosis.unjudged)


def test_lost_ticks_and_a_missing_end_are_noted(tmp_path: Path) -> None:
    job = Job().ticks({CPU: [50.0] * 20}).ticks({CPU: [50.0] * 20}, start=15.0)
    diagnosis = examine(job.write(tmp_path, end=False))
    assert [check.message for check in of(diagnosis, "algo-1")][1] == "10 of 50 ticks are missing"
    assert only(diagnosis, "end marker").status == "note"
    assert only(diagnosis, "framework events").fix is not None


def test_damage_is_placed(tmp_path: Path) -> None:
    path = Job().ticks({CPU: [50.0] * 20}).write(tmp_path)
    (file,) = Path(path).rglob("*.algo-1.json")
    file.write_text(file.read_text() + '{"Type": "cpu", "Na')
    check = only(examine(path), "damage")
    assert check.status == "fail"
    assert "at byte" in check.message


def test_a_trial(tmp_path: Path) -> None:
    path = write_trial(
        tmp_path / "trial", {n: {"gradient/a": np.array([1.0])} for n in range(3)}, mode="TRAIN"
    )
    diagnosis = examine(path)
    assert only(diagnosis, "steps").message == "3 TRAIN"
    assert only(diagnosis, "tensors").message == "1 names"
    assert only(diagnosis, "VanishingGradient").message == "can be judged: 3 points, 1 tensor, 3 steps"
    assert only(diagnosis, "CheckInputImages").status == "note"
    assert "VanishingGradient" in diagnosis.judged


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    diagnosis = examine(str(tmp_path / "none"))
    assert [check.status for check in diagnosis.checks] == ["fail"]
    assert diagnosis.judged == []
