"""What CPUBottleneck and IOBottleneck share: GPUs idle while cores are busy with something else."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdbg_core import Events, Finding, Measurements, Meta, ProfilerRule, RuleRun, ScanReads, ScanWindow
from smdbg_profiler_rules.breakdown import Breakdown

__all__ = ["Bottleneck"]

_LISTED = 100_000
"""How many bottleneck snapshots are listed; all are counted."""


class Bottleneck(ProfilerRule):
    """Counts the snapshots in which at least one GPU is idle and at least one core is over a limit."""

    measure: ClassVar[str]
    """Dimension of the cores."""

    core_limit: ClassVar[str]
    """Name of the parameter that limits the cores."""

    said: ClassVar[str]
    """What the cores do, in words."""

    def reads(self) -> tuple[ScanReads, ...]:
        """Utilisation of GPUs and cores; events for the breakdown."""
        needed = ScanReads(series=("GPUUtilization", self.measure))
        return needed, ScanReads(phases=(".",), optional=True)

    window: Annotated[
        int | None,
        Meta(
            gt=0,
            unit="snapshots",
            local=True,
            description="Judge the share of about so many latest snapshots; by default of all since the job "
            "began, which cannot see a bad hour late in a long job.",
        ),
    ] = None

    @abstractmethod
    def limits(self) -> tuple[float, float, float, int]:
        """Share of snapshots, limits of GPU and core, all in percent, and the patience."""

    def start(self, run: RuleRun) -> None:
        """Counters since the beginning of the job."""
        self._snapshots = self._low = self._bottlenecks = self._fired = 0
        self._recent: deque[tuple[int, int]] = deque()
        self._listed: list[NDArray[np.int64]] = []
        self._room = _LISTED
        self._greatest: dict[tuple[str, str], float] = {}
        self._breakdown = Breakdown()
        self._instants = np.empty(0, np.int64)

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Count the ticks of the window, then judge the share so far."""
        share, gpu_limit, core_limit, patience = self.limits()
        before = self._snapshots, self._bottlenecks
        instants = []
        for ticks in window.snapshots("GPUUtilization", self.measure):
            gpus = ticks.devices_where("GPUUtilization", "<", gpu_limit)
            cores = ticks.devices_where(self.measure, ">", core_limit)
            both = np.flatnonzero((gpus > 0) & (cores > 0))
            self._snapshots += len(ticks.times)
            self._low += int(np.count_nonzero(gpus))
            self._bottlenecks += len(both)
            instants.append(ticks.times[both])
            listed = both[: self._room]
            self._room -= len(listed)
            if len(listed):
                self._listed.append(np.stack([ticks.times[listed], gpus[listed], cores[listed]], axis=1))
        for series in window.series("GPUUtilization"):
            gpu = series.node, series.device
            self._greatest[gpu] = max(self._greatest.get(gpu, 0.0), float(series.values.max()))
        place = window.place(f"GPUUtilization and {self.measure}")
        if self._snapshots <= patience:
            self.skip(place, "fewer snapshots than patience", self._snapshots, patience + 1)
        else:
            snapshots, bottlenecks = self._judged(self._snapshots - before[0], self._bottlenecks - before[1])
            percent = 100 * bottlenecks / snapshots
            so_far = "so far" if self.window is None else "of late"
            message = (
                f"{percent:.4g} % of {snapshots} snapshots {so_far} have an idle GPU and {self.said}, "
                f"more than {share:g} %{self._unused()}"
            )
            found = self.judge(place, "share of snapshots", percent, ">", share, message=message)
            if found:
                self._fired += 1
                self._instants = np.sort(np.concatenate([self._instants, *instants]))
            yield from found
        self._breakdown.add(self._held_up(window))

    def _judged(self, snapshots: int, bottlenecks: int) -> tuple[int, int]:
        """Snapshots and bottlenecks that the verdict is about, those of this window added."""
        if self.window is None:
            return self._snapshots, self._bottlenecks
        self._recent.append((snapshots, bottlenecks))
        while sum(count for count, _ in self._recent) - self._recent[0][0] >= self.window:
            self._recent.popleft()
        return sum(count for count, _ in self._recent), sum(count for _, count in self._recent)

    def _held_up(self, window: ScanWindow) -> Iterator[Events]:
        """Events during which a bottleneck was seen in a window in which the rule fired."""
        if not len(self._instants):
            return
        for events in window.events():
            after_start = np.searchsorted(self._instants, events.starts, side="right")
            before_end = np.searchsorted(self._instants, events.ends, side="left")
            rows = before_end > after_start
            if rows.any():
                yield events.take(rows)

    def _unused(self) -> str:
        idle = [f"{gpu} of {node}" for (node, gpu), greatest in self._greatest.items() if not greatest]
        return f"; never used: {', '.join(idle)}" if idle else ""

    def measurements(self) -> Measurements:
        """Counts, the listed bottlenecks and, once it fired, what they held up."""
        bottlenecks = {
            repr(time / 1e6): {"GPUs": gpus, "CPUs": cores}
            for part in self._listed
            for time, gpus, cores in part.tolist()
        }
        details: dict[str, Any] = {"low_gpu_utilization": self._low, "bottlenecks": bottlenecks}
        if self._fired:
            details |= self._breakdown.details()
        return Measurements(
            triggered=self._fired,
            violations=self._bottlenecks,
            datapoints=self._snapshots,
            details=details,
            # The service's report files name the core's limit before the GPU's.
            parameters={
                name: self.parameters[name]
                for name in ("threshold", self.core_limit, "gpu_threshold", "patience")
            },
        )
