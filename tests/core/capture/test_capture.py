"""Capturing beside a block of code."""

from __future__ import annotations

import resource
import signal
import time
from pathlib import Path

import pytest

from smdbg_core import Capture, ConfigError, open_run
from smdbg_core.runs.profiler import Samples


def samples(folder: Path) -> tuple[set[str], int]:
    profiler = open_run(str(folder)).profiler
    assert profiler is not None
    reader = profiler.reader()
    parts = [batch.data for batch in reader if isinstance(batch.data, Samples)]
    assert profiler.damage == []
    return {key.dimension or key.device for key in reader.keys}, len(set(Samples.join(parts).times.tolist()))


def test_metrics_of_this_machine_are_written(tmp_path: Path) -> None:
    with Capture(tmp_path, 0.1) as capture:
        time.sleep(0.55)
    measures, ticks = samples(tmp_path)
    assert {"CPUUtilization", "MemoryUsedPercent"} <= measures
    assert 4 <= ticks == capture.ticks
    profiler = open_run(str(tmp_path)).profiler
    assert profiler is not None
    assert (profiler.nodes, profiler.ended) == (("algo-1",), True)


def test_an_exception_in_the_block_leaves_the_marker(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Capture(tmp_path, 0.1):
        raise KeyError
    profiler = open_run(str(tmp_path)).profiler
    assert profiler is not None
    assert profiler.ended


@pytest.mark.parametrize(("interval", "node"), [(0.01, "algo-1"), (61, "algo-1"), (0.5, "laptop")])
def test_arguments_that_make_no_sense(tmp_path: Path, interval: float, node: str) -> None:
    with pytest.raises(ConfigError, match="is not"):
        Capture(tmp_path, interval, node=node)


def test_a_full_disk_leaves_whole_lines_and_the_block_undisturbed(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    told: list[str] = []
    try:
        # A limit in the middle of the second tick or of a later one.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limits[1]))
        with Capture(tmp_path, 0.1, on_problem=told.append) as capture:
            time.sleep(0.8)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert len(told) == 1
    assert "cannot be written" in told[0]
    assert capture.lost > 1
    assert samples(tmp_path)[1] == capture.ticks
