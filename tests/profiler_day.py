"""A generated day of a two-node job with eight GPUs on each node: healthy, or with planted problems."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["PLANTED", "T0", "write_day"]

T0 = 1_700_006_400
"""Start of a minute, in seconds since the epoch."""

PLANTED = {
    "CPUBottleneck",
    "GPUMemoryIncrease",
    "IOBottleneck",
    "LoadBalancing",
    "LowGPUUtilization",
    "MaxInitializationTime",
    "StepOutlier",
}
"""Rules that see the planted problems: a CPU-bound and an I/O-bound hour (in which GPUs are low), memory
that grows on one GPU, one GPU that lags, a start of 25 minutes, and steps of two minutes."""

_HOUR = 3600
_STEP = 20.0


def write_day(
    folder: Path, *, healthy: bool, interval: float = 5.0, cores: int = 4, gpus: int = 8, hours: int = 24
) -> str:
    """Write profiler output below `folder` and return the path.

    Args:
        folder: Where.
        healthy: Without any planted problem.
        interval: Seconds between samples.
        cores: CPU cores of each node.
        gpus: GPUs of each node.
        hours: Length of the job.
    """
    root = folder / "profiler-output"
    for node in (1, 2):
        rng = np.random.default_rng(node)
        for minute in range(hours * 60):
            seconds = minute * 60 + np.arange(0, 60, interval)
            text = "".join(_rows(node, seconds, rng, healthy, cores, gpus))
            at = T0 + minute * 60
            hour = root / "system" / "incremental" / time.strftime("%Y%m%d%H", time.gmtime(at))
            hour.mkdir(parents=True, exist_ok=True)
            (hour / f"{at}.algo-{node}.json").write_text(text)
        _write_steps(root, node, healthy, hours, cores)
    for part in ("system", "framework"):
        (root / part / "training_job_end.ts").touch()
    return str(folder)


def _rows(
    node: int, seconds: np.ndarray, rng: np.random.Generator, healthy: bool, cores: int, gpus: int
) -> Iterator[str]:
    ticks = len(seconds)
    gpu = rng.integers(88, 99, (ticks, gpus))
    memory = np.full((ticks, gpus), 72) + rng.integers(0, 2, (ticks, gpus))
    core = rng.uniform(40, 70, (ticks, cores))
    wait = rng.uniform(0, 3, (ticks, cores))
    gpu[seconds < (1500 if not healthy else 60)] = 0
    if not healthy:
        cpu_bound = (seconds >= 8 * _HOUR) & (seconds < 9 * _HOUR)
        io_bound = (seconds >= 12 * _HOUR) & (seconds < 13 * _HOUR)
        gpu[cpu_bound | io_bound] = rng.integers(0, 8)
        core[cpu_bound] = 99.5
        wait[io_bound] = 85
        if node == 1:
            memory[:, 3] += np.clip((seconds - 20 * _HOUR) / 5 * 14, 0, 27).astype(int)
        else:
            gpu[:, gpus - 1] = np.minimum(gpu[:, gpus - 1], rng.integers(30, 45, ticks))
    for tick, second in enumerate(seconds.tolist()):
        stamp = f"{T0 + second + 0.25:.6f}"
        later = f"{T0 + second + 0.25005:.6f}"
        for index in range(gpus):
            yield _row("gpu", f"gpu{index}", "GPUUtilization", gpu[tick, index], node, stamp)
            yield _row("gpu", f"gpu{index}", "GPUMemoryUtilization", memory[tick, index], node, stamp)
        for index in range(cores):
            yield _row("cpu", f"cpu{index}", "CPUUtilization", core[tick, index], node, later)
            yield _row("cpu", f"cpu{index}", "I/OWaitPercentage", wait[tick, index], node, later)
        yield _row("memory", "MemoryUsedPercent", "", 41.5, node, later)
        yield _row("network", "ReceiveBytesPerSecond", "Algorithm", 1e6 + tick, node, later)


def _row(kind: str, name: str, dimension: str, value: float, node: int, stamp: str) -> str:
    return (
        f'{{"Type":"{kind}","Name":"{name}","Dimension":"{dimension}","Value":{value:.2f},'
        f'"NodeId":"algo-{node}","Timestamp":{stamp}}}\n'
    )


def _write_steps(root: Path, node: int, healthy: bool, hours: int, cores: int) -> None:
    """Steps of 20 seconds, with data loading by as many processes as there are cores."""
    at = 1500.0 if not healthy else 60.0
    slow = set() if healthy else set(range(500, 4000, 60))
    number = 0
    rows: list[dict[str, Any]] = []
    while at < hours * _HOUR:
        duration = 120.0 if number in slow else _STEP + 0.1 * (number % 7)
        rows.append(_event(1, at, at + duration, step_num=str(number)))
        if number < 40:
            rows += [_event(2, at + 0.1, at + 0.3, pid=pid) for pid in range(cores)]
        at += duration
        number += 1
        if number % 20 == 0:
            _write_trace(root, node, rows)
            rows = []
    _write_trace(root, node, rows)


def _event(phase: int, start: float, end: float, **args: Any) -> dict[str, Any]:
    name = "Step:ModeKeys.TRAIN" if phase == 1 else "GetNext"
    return {
        "name": name,
        "pid": phase,
        "ph": "X",
        "ts": round(start * 1e6),
        "dur": round((end - start) * 1e6),
        "args": args,
    }


def _write_trace(root: Path, node: int, events: list[dict[str, Any]]) -> None:
    if not events:
        return
    base = {"start_time_since_epoch_in_micros": T0 * 1_000_000}
    head = [{"name": "process_name", "ph": "M", "pid": 0, "args": base}]
    for pid, phase in ((1, "Step:ModeKeys.TRAIN"), (2, "DataLoaderIter")):
        head.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": phase}})
    end = T0 * 1_000_000 + max(row["ts"] + row["dur"] for row in events)
    hour = root / "framework" / "pevents" / time.strftime("%Y%m%d%H", time.gmtime(end // 1_000_000))
    hour.mkdir(parents=True, exist_ok=True)
    text = "[\n" + ",\n".join(json.dumps(row) for row in [*head, *events]) + "\n]"
    (hour / f"{end}_27-algo-{node}_pythontimeline.json").write_text(text)
