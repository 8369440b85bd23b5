"""A builder of small profiler outputs."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

__all__ = ["T0", "ProfilerBuilder"]

T0: Final = 1_700_000_040
"""Start of a minute, in seconds since the epoch."""

_TYPES: Final = {"cpu": "cpu", "gpu": "gpu", "Mem": "memory", "Rec": "network", "Tra": "network"}


class ProfilerBuilder:
    """Samples and events, written as the service's profiler writes them.

    Values are written as they are given, so that a test can plant what a profiler would never write.
    """

    def __init__(self) -> None:
        self._samples: dict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
        self._events: dict[tuple[str, str], list[tuple[str, str, int, int, dict[str, Any]]]] = defaultdict(
            list
        )

    def series(
        self,
        measure: str,
        values: Sequence[float],
        *,
        device: str | None = None,
        node: str = "algo-1",
        start: float = 0.0,
        interval: float = 0.5,
    ) -> Self:
        """One series.

        Args:
            measure: A dimension such as `GPUUtilization`, or the name of what has none, such as
                `MemoryUsedPercent`.
            values: Sampled one after the other.
            device: `gpu0`, `cpu3`, ...; by default the first of its kind.
            node: The machine.
            start: Seconds after `T0`.
            interval: Seconds between samples.
        """
        name, dimension = _place(measure, device)
        return self.ticks({(name, dimension): values}, start=start, interval=interval, node=node)

    def sample(self, at: float, device: str, dimension: str, value: Any, node: str = "algo-1") -> Self:
        """One sample, `at` seconds after `T0`."""
        when = T0 + at
        row = {
            "Type": _TYPES.get(device[:3], "i/o"),
            "Name": device,
            "Dimension": dimension,
            "Value": value,
            "NodeId": node,
            "Timestamp": round(when, 6),
        }
        self._samples[int(when) // 60 * 60, node].append(row)
        return self

    def ticks(
        self,
        values: Mapping[tuple[str, str], Sequence[float]],
        *,
        start: float = 0.0,
        interval: float = 0.5,
        node: str = "algo-1",
    ) -> Self:
        """A series for each `(device, dimension)`, sampled together."""
        for number, row in enumerate(zip(*values.values(), strict=True)):
            at = start + number * interval
            for (device, dimension), value in zip(values, row, strict=True):
                late = 0.0005 if device.startswith("cpu") else 0.0
                self.sample(at + late, device, dimension, value, node)
        return self

    def event(
        self,
        phase: str,
        start: float,
        end: float,
        *,
        name: str | None = None,
        writer: str = "27-algo-1",
        suffix: str = "pythontimeline",
        **args: Any,
    ) -> Self:
        """One event, `start` and `end` in seconds after `T0`."""
        first, last = round((T0 + start) * 1e6), round((T0 + end) * 1e6)
        self._events[writer, suffix].append((phase, name or phase, first, last, args))
        return self

    def steps(
        self, seconds: Sequence[float], *, mode: str = "TRAIN", start: float = 0.0, **options: Any
    ) -> Self:
        """Steps one after the other."""
        at = start
        for number, duration in enumerate(seconds):
            self.event(f"Step:ModeKeys.{mode}", at, at + duration, step_num=str(number), **options)
            at += duration
        return self

    def write(self, folder: Path, *, end: bool = True) -> str:
        """Write everything below `folder/profiler-output`; return `folder`."""
        root = folder / "profiler-output"
        for (minute, node), rows in self._samples.items():
            hour = root / "system" / "incremental" / time.strftime("%Y%m%d%H", time.gmtime(minute))
            hour.mkdir(parents=True, exist_ok=True)
            (hour / f"{minute}.{node}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for (writer, suffix), events in self._events.items():
            by_minute: dict[int, list[Any]] = defaultdict(list)
            for event in sorted(events, key=lambda one: one[3]):
                by_minute[event[3] // 60_000_000].append(event)
            for group in by_minute.values():
                self._trace(root, writer, suffix, group)
        if end:
            for part in ("system", "framework"):
                (root / part).mkdir(parents=True, exist_ok=True)
                (root / part / "training_job_end.ts").write_text("END")
        return str(folder)

    @staticmethod
    def _trace(root: Path, writer: str, suffix: str, events: Sequence[Any]) -> None:
        base = min(event[2] for event in events)
        phases = {phase: number for number, phase in enumerate(dict.fromkeys(e[0] for e in events), start=1)}
        rows: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros": base}}
        ]
        rows += [
            {"name": "process_name", "ph": "M", "pid": number, "args": {"name": phase}}
            for phase, number in phases.items()
        ]
        rows += [
            {"name": name, "pid": phases[phase], "ph": "X", "ts": first - base, "dur": last - first}
            | ({"args": args} if args else {})
            for phase, name, first, last, args in events
        ]
        end = max(event[3] for event in events)
        hour = root / "framework" / "pevents" / time.strftime("%Y%m%d%H", time.gmtime(end // 1_000_000))
        hour.mkdir(parents=True, exist_ok=True)
        text = "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"
        (hour / f"{end}_{writer}_{suffix}.json").write_text(text)


def _place(measure: str, device: str | None) -> tuple[str, str]:
    """Name and dimension of a series."""
    if measure.startswith("GPU"):
        return device or "gpu0", measure
    if measure in ("CPUUtilization", "I/OWaitPercentage"):
        return device or "cpu0", measure
    return (measure, "") if device is None else (device, measure)
