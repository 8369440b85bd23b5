"""Cutting profiler output into windows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from smdbg_core import Events, Finding, ProfilerRule, RuleRun, ScanReads, ScanWindow, evaluate
from smdbg_core.engine.scan_windows import Demand, ScanWindows
from smdbg_core.runs.profiler import open_profiler
from tests.profiler_job import T0, Job

CPU = frozenset({"CPUUtilization"})
MINUTE = 60_000_000


def windows(path: str, interval: int = MINUTE, phases: tuple[str, ...] = (".",)) -> list[ScanWindow]:
    return [window for _, window in ScanWindows(open_profiler(path), [Demand(interval, CPU, phases)])]


def spans(found: list[ScanWindow]) -> list[int]:
    """Starts of windows, in seconds after T0."""
    return [window.start // 1_000_000 - T0 for window in found]


def test_windows_are_closed_open_and_skip_pauses(tmp_path: Path) -> None:
    job = Job()
    for at in (0, 59.999999, 60, 125, 600):
        job.sample(at, "cpu0", "CPUUtilization", at)
    found = windows(job.write(tmp_path))
    assert spans(found) == [0, 60, 120, 600]
    assert [window.series()[0].values.tolist() for window in found] == [[0, 59.999999], [60], [125], [600]]
    assert all(window.end - window.start == MINUTE for window in found)


def test_events_belong_to_the_window_of_their_end(tmp_path: Path) -> None:
    job = Job().sample(0, "cpu0", "CPUUtilization", 1).event("a", 10, 20).event("a", 30, 60).event("a", 0, 61)
    found = windows(job.write(tmp_path))
    ends = [[(end - T0 * 1_000_000) / 1e6 for e in w.events() for end in e.ends.tolist()] for w in found]
    assert ends == [[20], [60, 61]]


def test_an_event_that_began_long_before_waits_for_its_end(tmp_path: Path) -> None:
    job = Job().event("Step:ModeKeys.TRAIN", 0, 3600).sample(0, "cpu0", "CPUUtilization", 1)
    job.sample(3599, "cpu0", "CPUUtilization", 1)
    found = windows(job.write(tmp_path))
    assert [len(window.steps()) for window in found] == [0, 0, 1]


def test_series_are_sorted_by_node_then_device_as_people_count(tmp_path: Path) -> None:
    job = Job()
    for node in ("algo-10", "algo-2"):
        for device in ("cpu10", "cpu2"):
            job.sample(1, device, "CPUUtilization", 1, node)
    (window,) = windows(job.write(tmp_path))
    assert [(one.node, one.device) for one in window.series()] == [
        ("algo-2", "cpu2"),
        ("algo-2", "cpu10"),
        ("algo-10", "cpu2"),
        ("algo-10", "cpu10"),
    ]
    assert window.nodes == ["algo-2", "algo-10"]
    assert [one.device for one in window.series(node="algo-2")] == ["cpu2", "cpu10"]
    with pytest.raises(ValueError, match="read-only"):
        window.series()[0].values[0] = 3


def test_samples_in_any_order_and_twice_count_once(tmp_path: Path) -> None:
    job = Job()
    times = [n / 2 for n in range(100)]
    random.Random(1).shuffle(times)
    for at in (*times, *times[:20]):
        job.sample(at, "cpu0", "CPUUtilization", at)
    (window,) = windows(job.write(tmp_path))
    assert window.series()[0].values.tolist() == sorted(times)


def test_averages_are_over_the_devices_of_a_tick(tmp_path: Path) -> None:
    job = Job().ticks({("cpu0", "CPUUtilization"): [10, 30], ("cpu1", "CPUUtilization"): [20, 40]})
    job.sample(5, "cpu1", "CPUUtilization", 7)  # the other core is missing
    (window,) = windows(job.write(tmp_path))
    (average,) = window.averages("CPUUtilization")
    assert average.values.tolist() == [15, 35, 7]
    (total,) = window.averages("CPUUtilization", total=True)
    assert total.values.tolist() == [30, 70, 7]


@pytest.mark.parametrize(("late", "ticks"), [(0.02, 3), (0.020001, 6)])
def test_a_tick_is_twenty_milliseconds(tmp_path: Path, late: float, ticks: int) -> None:
    job = Job()
    for at in (0.0, 0.5, 1.0):
        job.sample(at, "cpu0", "CPUUtilization", 1).sample(at + late, "cpu1", "CPUUtilization", 1)
    (window,) = windows(job.write(tmp_path))
    (snapshots,) = window.snapshots("CPUUtilization")
    assert len(snapshots.times) == ticks


def test_samples_without_a_pause_are_cut_at_each_tick(tmp_path: Path) -> None:
    job = Job()
    for number in range(100):
        job.sample(number * 0.01, "cpu0", "CPUUtilization", number)
    (window,) = windows(job.write(tmp_path))
    (snapshots,) = window.snapshots("CPUUtilization")
    assert np.diff(snapshots.times).tolist() == [30_000] * 33
    assert snapshots.devices_where("CPUUtilization", ">=", 0).tolist() == [3] * 33 + [1]


def test_late_data_counts_in_a_later_window_and_is_reported(tmp_path: Path) -> None:
    path = Path(Job().ticks({("cpu0", "CPUUtilization"): [1] * 400}).write(tmp_path))
    files = sorted((path / "profiler-output" / "system").rglob("*.json"))
    first, last = files[0], files[-1]
    lines = first.read_text().splitlines(keepends=True)
    first.write_text("".join(lines[:-3]))
    last.write_text(last.read_text() + "".join(lines[-3:]))
    scan = ScanWindows(open_profiler(str(path)), [Demand(MINUTE, CPU, ())])
    counts = [len(window.series()[0].times) for _, window in scan]
    assert (sum(counts), scan.late) == (400, 3)

    class Reader(Counting):
        pass

    report = evaluate(str(path), [Reader()])
    assert any("3 samples or events came after the end of their scan window" in w for w in report.warnings)


class Counting(ProfilerRule):
    """Counts what it is given."""

    def reads(self) -> tuple[ScanReads, ...]:
        return ScanReads(series=("CPUUtilization",)), ScanReads(phases=("^a",), optional=True)

    def start(self, run: RuleRun) -> None:
        self.seen: list[tuple[int, int, int]] = []

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        series = window.series("CPUUtilization")
        events = sum(len(batch.starts) for batch in window.events(lambda phase: phase.startswith("a")))
        for one in series:
            yield from self.judge(one, "n", len(one.times) + events, ">", 0)


def test_windows_do_not_depend_on_what_other_rules_read(tmp_path: Path) -> None:
    class Other(ProfilerRule):
        """Reads everything else."""

        def reads(self) -> ScanReads:
            return ScanReads(series=("GPUUtilization",), phases=(".",))

        def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
            yield from ()

    job = Job().ticks({("cpu0", "CPUUtilization"): [1] * 300}).event("a", 3, 4)
    job.ticks({("gpu0", "GPUUtilization"): [1] * 300}, start=1000).event("b", 2000, 2001)
    path = job.write(tmp_path)
    alone = evaluate(path, [Counting()]).outcome("Counting")
    together = evaluate(path, [Other(), Counting()]).outcome("Counting")
    assert alone == together
    assert alone.coverage.windows == 3


def test_the_order_of_files_and_workers_does_not_matter(tmp_path: Path) -> None:
    job = Job().sample(0, "cpu0", "CPUUtilization", 1)
    for worker in ("27-algo-1", "28-algo-1", "1-algo-2"):
        job.steps([1.0] * 200, writer=worker)
    found = windows(job.write(tmp_path))
    assert [len(window.steps()) for window in found] == [177, 180, 180, 63]
    (first, *_) = found
    assert [step.worker for step in first.steps()[::59]] == ["algo-1-27", "algo-1-28", "algo-2-1"]
    assert [step.number for step in first.steps()[:3]] == [0, 1, 2]


def test_events_of_one_writer_come_as_one(tmp_path: Path) -> None:
    job = Job().sample(0, "cpu0", "CPUUtilization", 1)
    for second in range(50):
        job.event("a", second, second + 0.5)
    (window,) = windows(job.write(tmp_path))
    (batch,) = window.events()
    assert isinstance(batch, Events)
    assert np.all(np.diff(batch.ends) > 0)
