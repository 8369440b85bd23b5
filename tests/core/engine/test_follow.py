"""Following a trial: what is judged when, and that the end is what a later evaluation gives."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core import (
    DataAccessError,
    Finding,
    MissingDataError,
    ProfilerRule,
    RuleConfig,
    ScanReads,
    ScanWindow,
    evaluate,
    follow,
)
from smdbg_core.report.document import report_document
from smdbg_core.storage import LocalStorage
from tests.builders import write_trial
from tests.profiler_job import T0, Job
from tests.schedules import END_MARKER, Arrival, Crash, ScheduledClock, chaotic, files

SCHEDULES = int(os.environ.get("SMDBG_SCHEDULES", "40"))
POLL, GRACE = 0.5, 3.0


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two workers, modes that alternate, and something to find: gradients vanish, a loss rises."""
    rng = np.random.default_rng(7)
    steps: dict[int, Any] = {}
    for step in range(12):
        content = {
            "gradient/a.weight": rng.normal(0, 1e-9 if step in (3, 4, 8) else 1, (4, 4)),
            "a.weight": rng.normal(0, 1, (40, 40)),
            "CrossEntropyLoss_output_0": np.array(2.0 + step / 10),
        }
        if step > 5:
            content["relu_output_0"] = np.zeros((4, 8))
        steps[step] = ("EVAL" if step % 5 == 4 else "TRAIN", content)
    folder = tmp_path_factory.mktemp("finished") / "trial"
    write_trial(folder, steps, workers=("worker_0", "worker_1"))
    return folder


def document(report: Any) -> dict[str, Any]:
    found = report_document(report)
    del found["actions"]
    return found


def steady(source: Path, *, marker: bool = True) -> list[Arrival]:
    """A step a second, in the order in which a job writes."""
    arrivals = []
    for name in files(source):
        base = Path(name).name
        step = int(base.split("_")[0]) if base[0].isdigit() else 0
        arrivals.append(Arrival(1.0 + step + 0.1 * name.startswith("index"), name))
    kept = [one for one in arrivals if one.name != END_MARKER]
    return [*kept, Arrival(20.0, END_MARKER)] if marker else kept


def test_each_step_is_judged_when_it_is_there(finished: Path, tmp_path: Path) -> None:
    clock = ScheduledClock(finished, tmp_path / "run", steady(finished))
    told: list[tuple[float, int | None]] = []

    def tell(name: str, finding: Finding) -> None:
        told.append((clock.now, finding.step))

    report = follow(tmp_path / "run", ["VanishingGradient"], clock=clock, poll=POLL, on_finding=tell)
    assert {step for _, step in told} == {3, 4, 8}
    for time, step in told:
        assert step is not None
        assert 0 <= time - (1.1 + step) <= POLL
    assert len(told) == 2 * 3
    assert clock.now < 22
    assert document(report) == document(evaluate(tmp_path / "run", ["VanishingGradient"]))


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_the_report_is_that_of_a_later_evaluation(finished: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    target = tmp_path / "run"
    arrivals = chaotic(finished, rng, poll=POLL, grace=GRACE)
    end = max(one.time for one in arrivals)
    crashes = tuple(rng.uniform(0, end) for _ in range(rng.choice([0, 0, 1, 3])))
    clock = ScheduledClock(finished, target, arrivals, crashes)
    while True:
        try:
            report = follow(target, clock=clock, poll=POLL, grace=GRACE, cache=tmp_path / "cache")
            break
        except Crash:
            continue
    assert not clock.rest
    assert document(report) == document(evaluate(target))


def test_a_worker_is_waited_for_and_then_no_longer(finished: Path, tmp_path: Path) -> None:
    missing = "index/000000000/000000000003_worker_1.json"
    arrivals = [one for one in steady(finished) if one.name != missing]
    clock = ScheduledClock(finished, tmp_path / "run", arrivals)
    told: dict[int | None, float] = {}
    waits: dict[str, float] = {}
    report = follow(
        tmp_path / "run",
        ["VanishingGradient"],
        clock=clock,
        poll=POLL,
        grace=GRACE,
        on_finding=lambda _, finding: told.setdefault(finding.step, clock.now),  # type: ignore[func-returns-value]
        on_wait=lambda what: waits.setdefault(what, clock.now),  # type: ignore[func-returns-value]
    )
    # Step 4 is there at 5.1; step 3 is judged without worker_1 when the time of grace is over.
    assert 5.1 + GRACE <= told[3] <= 5.1 + GRACE + 2 * POLL
    assert told[4] == told[3]
    assert waits["worker_1 at step 3"] <= 5.5
    assert report.warnings == ["1 step was judged without all workers, from step 3 on, which lacks worker_1"]


def test_a_late_step_changes_the_verdict_and_what_was_sent_is_superseded(tmp_path: Path) -> None:
    """Weights seem unchanged until a step comes that lies between."""
    source, target = tmp_path / "source", tmp_path / "run"
    same = np.ones((3, 3))
    write_trial(source, {0: {"a": same}, 1: {"a": 2 * same}, 2: {"a": same}}, mode="TRAIN")
    arrivals = [
        Arrival(30.0 if "000000000001" in name else 1.0, name) for name in files(source) if name != END_MARKER
    ]
    clock = ScheduledClock(source, target, [*arrivals, Arrival(60.0, END_MARKER)])
    log = tmp_path / "stop"
    report = follow(
        target,
        ["UnchangedTensor"],
        parameters={"UnchangedTensor": {"tensor_regex": "a", "num_steps": 2}, "StopFile": {"path": str(log)}},
        actions=["StopFile"],
        state=tmp_path / "state",
        clock=clock,
        poll=POLL,
        grace=GRACE,
    )
    assert report.outcome("UnchangedTensor").status == "clean"
    (record,) = report.actions
    assert (record.status, record.superseded) == ("sent", True)
    assert "superseded" in record.detail
    assert log.exists()


def test_silence_is_judged_on_the_clock_and_survives_a_second_judging(finished: Path, tmp_path: Path) -> None:
    arrivals = [
        one._replace(time=one.time + (100.0 if "00000000001" in one.name else 0)) for one in steady(finished)
    ]
    clock = ScheduledClock(finished, tmp_path / "run", [*arrivals[:-1], Arrival(130.0, END_MARKER)])
    told: list[tuple[float, int | None]] = []
    report = follow(
        tmp_path / "run",
        ["StalledTrainingRule"],
        parameters={"StalledTrainingRule": {"threshold": 60}},
        clock=clock,
        poll=POLL,
        grace=GRACE,
        on_finding=lambda _, finding: told.append((clock.now, finding.step)),
    )
    ((time, step),) = told
    assert step == 9
    assert 60 < time - 10.1 < 62
    assert [finding.step for finding in report.outcome("StalledTrainingRule").findings] == [9]


def test_a_job_that_ends_without_a_marker(finished: Path, tmp_path: Path) -> None:
    clock = ScheduledClock(finished, tmp_path / "run", steady(finished, marker=False))
    report = follow(tmp_path / "run", ["ExplodingTensor"], clock=clock, poll=POLL, idle_timeout=40)
    assert 12.1 + 40 <= clock.now <= 12.1 + 42
    assert any("nothing came for 40 s" in warning for warning in report.warnings)
    over = ScheduledClock(finished, tmp_path / "other", steady(finished, marker=False))
    report = follow(
        tmp_path / "other",
        ["ExplodingTensor"],
        clock=over,
        poll=POLL,
        job_end=lambda: "the job failed" if over.now > 5 else None,
    )
    assert over.now < 14
    assert "the job failed" in report.warnings


def test_what_never_comes_is_an_error_that_says_so(tmp_path: Path) -> None:
    clock = ScheduledClock(tmp_path, tmp_path / "run", [])
    with pytest.raises(MissingDataError, match="no such folder"):
        follow(tmp_path / "run", ["ExplodingTensor"], clock=clock, idle_timeout=5)
    assert 5 <= clock.now <= 6


def test_an_interruption_ends_with_a_report(finished: Path, tmp_path: Path) -> None:
    clock = ScheduledClock(finished, tmp_path / "run", steady(finished))

    def interrupt() -> None:
        if clock.now > 6:
            raise KeyboardInterrupt

    clock.on_sleep = interrupt
    report = follow(tmp_path / "run", ["VanishingGradient"], clock=clock, poll=POLL)
    assert report.run.last_step == 5
    assert report.outcome("VanishingGradient").status == "fired"
    assert any("interrupted" in warning for warning in report.warnings)


def test_stop_on_first_ends_with_the_first_finding(finished: Path, tmp_path: Path) -> None:
    clock = ScheduledClock(finished, tmp_path / "run", steady(finished))
    report = follow(tmp_path / "run", ["VanishingGradient"], clock=clock, poll=POLL, stop_on_first=True)
    assert clock.now <= 4.1 + POLL
    assert {finding.step for finding in report.outcome("VanishingGradient").findings} == {3}


def test_tensors_and_profiler_output_that_come_one_after_the_other(finished: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    Job().ticks({("gpu0", "GPUUtilization"): [0] * 1300, ("cpu0", "CPUUtilization"): [99] * 1300}).write(
        source
    )
    shutil.copytree(finished, source / "debug-output")
    arrivals = [Arrival(arrival.time, f"debug-output/{arrival.name}") for arrival in steady(finished)]
    metrics = [name for name in files(source) if name.startswith("profiler")]
    metrics.sort(key=lambda name: (name.endswith(END_MARKER), name))
    arrivals += [Arrival(15.0 + number, name) for number, name in enumerate(metrics)]
    clock = ScheduledClock(source, tmp_path / "run", arrivals)
    report = follow(tmp_path / "run", clock=clock, poll=POLL, grace=GRACE)
    assert report.run.has == ["trial", "profiler"]
    assert document(report) == document(evaluate(tmp_path / "run"))
    assert all(one.name.endswith(END_MARKER) for one in clock.rest)


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten minutes on two nodes; the GPU of one idles for a while, and steps have an outlier."""
    job = Job()
    for node in ("algo-1", "algo-2"):
        gpu = [90.0] * 600 + [0.0 if node == "algo-2" else 90.0] * 600
        job.ticks({("gpu0", "GPUUtilization"): gpu, ("cpu0", "CPUUtilization"): [99.0] * 1200}, node=node)
        job.steps([1.0] * 300 + [30.0] + [1.0] * 270, writer=f"27-{node}")
    return Path(job.write(tmp_path_factory.mktemp("profiled") / "job"))


def test_windows_are_judged_as_they_complete(profiled: Path, tmp_path: Path) -> None:
    arrivals = [Arrival(_written(name), name) for name in files(profiled)]
    clock = ScheduledClock(profiled, tmp_path / "run", arrivals)
    told: list[tuple[float, float]] = []
    rule = RuleConfig("LowGPUUtilization", parameters={"threshold_p95": 70, "window": 50})
    report = follow(
        tmp_path / "run",
        [rule],
        clock=clock,
        poll=POLL,
        on_finding=lambda _, finding: told.append((clock.now, (finding.window_end_us or 0) / 1e6 - T0)),
    )
    assert told
    for time, end in told:
        assert end <= time <= end + 2 * 60 + 5, (time, end)
    assert document(report) == document(evaluate(tmp_path / "run", [rule]))


def _written(name: str) -> float:
    """Seconds after T0 at which a file of profiler output is finished."""
    base = Path(name).name
    if base == END_MARKER:
        return 700.0
    if base.count("_"):
        return int(base.split("_")[0]) / 1e6 - T0 + 1
    return int(base.split(".")[0]) - T0 + 61.0


@pytest.mark.parametrize("seed", range(max(4, SCHEDULES // 10)))
def test_profiler_output_in_any_order(profiled: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    arrivals = [
        Arrival(_written(name) + rng.choice([0.0, 0.0, rng.uniform(0, 300)]), name)
        for name in files(profiled)
        if rng.random() > 0.05
    ]
    end = max(one.time for one in arrivals)
    clock = ScheduledClock(profiled, tmp_path / "run", arrivals, (rng.uniform(0, end),))
    while True:
        try:
            report = follow(tmp_path / "run", clock=clock, poll=5.0, grace=GRACE, idle_timeout=400)
            break
        except Crash:
            continue
    found, later = document(report), document(evaluate(tmp_path / "run"))
    found["warnings"] = [one for one in found["warnings"] if "following ended" not in one]
    assert found == later


def test_a_first_step_that_never_comes_is_told_in_the_silence(tmp_path: Path) -> None:
    source = tmp_path / "source"
    job = Job().ticks({("cpu0", "CPUUtilization"): [5.0] * 400}).event("Initialization", 0, 10)
    job.write(source, end=False)
    clock = ScheduledClock(
        source, tmp_path / "run", [Arrival(_written(name), name) for name in files(source)]
    )
    told: list[tuple[float, float | None]] = []
    report = follow(
        tmp_path / "run",
        ["MaxInitializationTime"],
        parameters={"MaxInitializationTime": {"threshold": 10}},
        clock=clock,
        poll=POLL,
        idle_timeout=900,
        on_finding=lambda _, finding: told.append((clock.now, finding.value)),
    )
    ((time, value),) = told
    assert value is not None
    assert 10 < value < 10.1
    assert 10 * 60 < time < 13 * 60
    assert report.outcome("MaxInitializationTime").status == "fired"


def test_a_store_that_is_away_for_a_while_costs_nothing(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ScheduledClock(finished, tmp_path / "run", steady(finished))
    original = LocalStorage.entries

    def entries(self: LocalStorage, folder: str, after: str = "") -> Any:
        if 4 < clock.now < 9:
            raise DataAccessError(folder, "cannot be read: stale file handle")
        return original(self, folder, after)

    monkeypatch.setattr(LocalStorage, "entries", entries)
    waits: set[str] = set()
    report = follow(tmp_path / "run", ["VanishingGradient"], clock=clock, poll=POLL, on_wait=waits.add)
    assert any("stale file handle" in what for what in waits)
    assert document(report) == document(evaluate(tmp_path / "run", ["VanishingGradient"]))
    assert report.run.steps == 12


def test_a_run_that_is_removed_keeps_its_verdicts(finished: Path, tmp_path: Path) -> None:
    clock = ScheduledClock(finished, tmp_path / "run", steady(finished, marker=False))
    clock.at(30, lambda: shutil.rmtree(tmp_path / "run"))
    report = follow(tmp_path / "run", ["VanishingGradient"], clock=clock, poll=POLL, idle_timeout=60)
    assert report.outcome("VanishingGradient").status == "fired"
    assert report.outcome("VanishingGradient").coverage.points == 24
    assert any("could not be read once more" in warning for warning in report.warnings)


def test_a_single_file_is_judged_and_not_waited_for(profiled: Path) -> None:
    (file, *_) = sorted(profiled.glob("profiler-output/system/incremental/*/*.json"))
    clock = ScheduledClock(profiled, profiled, [])
    report = follow(file, ["OverallSystemUsage"], clock=clock, poll=POLL)
    assert clock.now <= 2 * POLL
    assert document(report) == document(evaluate(str(file), ["OverallSystemUsage"]))


def test_a_long_job_is_judged_while_it_is_read(
    profiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever begins to follow late does not hold all data at once."""
    shutil.copytree(profiled, tmp_path / "run")
    opened: list[str] = []
    original = LocalStorage.open

    def spy(self: LocalStorage, name: str) -> Any:
        opened.append(name)
        return original(self, name)

    monkeypatch.setattr(LocalStorage, "open", spy)
    at: list[int] = []
    follow(
        tmp_path / "run",
        [Busy()],
        clock=ScheduledClock(profiled, tmp_path / "run", []),
        on_finding=lambda *_: at.append(len(opened)),
    )
    files_of_one_pass = len(opened) // 2
    assert at[0] < files_of_one_pass / 2


class Busy(ProfilerRule):
    """Fires in every window."""

    def reads(self) -> ScanReads:
        return ScanReads(series=("CPUUtilization",))

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        for series in window.series("CPUUtilization"):
            yield from self.judge(series, "max", float(series.values.max()), ">", 1)
