"""What data can be judged, and what not."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from smdbg_core.engine.doctor import Check, Diagnosis, examine
from tests.builders import write_trial
from tests.command import Command
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
    assert only(diagnosis, "tensors").message == "1 name: gradient/a"
    assert only(diagnosis, "VanishingGradient").message == "can be judged: 3 points, 1 tensor, 3 steps"
    assert only(diagnosis, "CheckInputImages").status == "note"
    assert "VanishingGradient" in diagnosis.judged


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    diagnosis = examine(str(tmp_path / "none"))
    assert [check.status for check in diagnosis.checks] == ["fail"]
    assert diagnosis.judged == []


def test_damaged_tensors_are_placed(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "trial", {n: {"gradient/a": np.array([1.0])} for n in range(3)})
    (event,) = Path(path).glob("events/*/000000000001*.tfevents")
    event.write_bytes(event.read_bytes()[:-9])
    check = only(examine(path), "damage")
    assert check.status == "fail"
    assert event.name in check.message
    assert "copy the file again" in str(check.fix)
    event.unlink()
    event.symlink_to(event.name)
    assert only(examine(path), "damage").status == "fail"


@pytest.mark.parametrize("shown", ["index", "events/000000000000", "..", "../..", "index/000000000"])
def test_a_level_too_high_or_too_low_names_the_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    path = write_trial(tmp_path / "jobs" / "mine" / "debug-output", {0: {"a": np.array([1.0])}})
    job = str(Path(path).parent)
    place = os.path.normpath(f"{path}/{shown}") if shown[0] != "." else os.path.normpath(f"{job}/{shown}")
    check = only(examine(place), "path")
    right = path if shown[0] != "." else job
    assert (check.status, check.fix) == ("fail", f"give {right}")
    monkeypatch.chdir(place)
    assert only(examine("."), "path").fix == f"give {right}"


def test_half_written_jobs(tmp_path: Path) -> None:
    path = Path(
        write_trial(tmp_path / "t", {n: {"a": np.array([1.0])} for n in range(3)}, workers=("w0", "w1"))
    )
    (path / "training_job_end.ts").unlink()
    index = path / "index" / "000000000"
    (index / "000000000002_w1.json").unlink()
    (index / "000000000003_w0.json.tmp").write_text("{")
    diagnosis = examine(str(path))
    event = "events/000000000002/000000000002_w1.tfevents"
    layout = [(check.status, check.message) for check in of(diagnosis, "layout")]
    assert layout == [
        ("pass", "2 files in collections, 6 files in events, 5 files in index"),
        (
            "note",
            f"1 file in events without an index file that can be used, such as {event}",
        ),
        ("note", "1 file not finished, such as index/000000000/000000000003_w0.json.tmp"),
    ]
    assert only(diagnosis, "workers").message == "1 step without the files of w1, from step 2 on"
    assert "--follow" in str(only(diagnosis, "end marker").fix)
    for file in index.iterdir():
        file.unlink()
    nothing = only(examine(str(path)), "path")
    assert "no step was saved" in nothing.message
    assert "save_interval" in str(nothing.fix)


def test_every_rule_that_cannot_judge_says_what_would_help(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "trial", {n: {"gradient/a": np.array([1.0])} for n in range(3)})
    diagnosis = examine(path)
    helpless = [
        (check.subject, check.message)
        for check in diagnosis.checks
        if check.status != "pass" and check.fix is None
    ]
    assert helpless == []
    assert only(diagnosis, "AllZero").fix == "give it: --param AllZero.collection_names=VALUE"
    assert "smdbg explain DeadRelu" in str(only(diagnosis, "DeadRelu").fix)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        *(("trials", name) for name in ("corrupt_events", "corrupt_index_truncated", "dtypes", "exploding")),
        *(("trials", name) for name in ("healthy_mlp", "no_end_marker", "reductions_only", "save_all_step0")),
        *(
            ("trials", name)
            for name in ("tf_mirrored_style", "two_workers", "vanishing_gradient", "xgb_basic")
        ),
        *(
            ("profiler", name)
            for name in ("horovod_timeline_traces", "merge_traces", "model_timeline_traces")
        ),
        *(
            ("profiler", name)
            for name in ("test_traces", "1591160699.algo-1.json", "horovod_timeline_small.json")
        ),
    ],
)
def test_real_data_is_described_as_before(
    shared_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: str,
    name: str,
) -> None:
    """What the command says is kept beside this file; with `SMDBG_KEEP=1` it is written anew, to be read."""
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.chdir(shared_data / folder)
    said = Command(capsys)("doctor", name).out
    kept = Path(__file__).parent / "doctor" / f"{name}.txt"
    if os.environ.get("SMDBG_KEEP"):
        kept.write_text(said)
    assert said == kept.read_text()
