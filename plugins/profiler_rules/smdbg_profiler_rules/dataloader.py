"""Dataloader: too few or too many data loader processes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from smdbg_core import Finding, Measurements, Meta, ProfilerRule, RuleRun, ScanReads, ScanWindow, constraint
from smdbg_core.stats import EmpiricalDistribution
from smdbg_profiler_rules.data_waiting import DataWaiting

__all__ = ["Dataloader"]

_COUNTED = ("DataLoaderWorker", "DataLoaderIter")
_SETTINGS = "DataLoaderIterInitialize"
_BINS = 100
_MIN_STEPS = 10
"""Steps from which on waiting for data is judged: the first batches always have to be waited for."""

_UNTOLD = "not recorded: a trace does not tell how many processes load data"


class Dataloader(ProfilerRule):
    """Fires when data loader processes are far from the CPU cores in number, or training waits for data.

    Why it matters: too few processes leave cores idle while training waits for data; too many get in
    each other's way and use up memory.
    What to do: set the number of workers near the number of cores, and pin memory for transfers to a GPU.
    """

    presets: ClassVar = {"recommended": {"max_waiting": 50}}

    min_threshold: Annotated[
        int, Meta(gt=0, unit="percent of cores", description="Fewer processes than this fire.")
    ] = 70
    max_threshold: Annotated[
        int, Meta(gt=0, unit="percent of cores", description="More processes than this fire.")
    ] = 200
    min_buckets: Annotated[
        int,
        Meta(
            gt=0,
            unit="seconds",
            local=True,
            description="More seconds with data loading than this are needed.",
        ),
    ] = 10

    max_waiting: Annotated[
        float | None,
        Meta(
            gt=0,
            le=100,
            unit="percent",
            local=True,
            description="Share of a training loop's time spent waiting for data above which it fires; "
            "without it waiting is not judged, as by the service.",
        ),
    ] = None

    @constraint("min_threshold", "max_threshold")
    def _thresholds_in_order(self) -> str | None:
        if self.min_threshold > self.max_threshold:
            return f"min_threshold={self.min_threshold} is above max_threshold={self.max_threshold}"
        return None

    def reads(self) -> tuple[ScanReads, ...]:
        """Cores, and events of data loading."""
        return (
            ScanReads(series=("CPUUtilization",), optional=True),
            ScanReads(phases=("^DataLoader",)),
            ScanReads(phases=("^Dataset", "Prefetch", "^Step:ModeKeys"), optional=True),
        )

    def start(self, run: RuleRun) -> None:
        """Processes by second, durations and settings."""
        self._cores: dict[str, set[str]] = {}
        self._processes: dict[str, dict[int, set[int | str]]] = {}
        self._untold: set[str] = set()
        self._waiting = DataWaiting()
        self._durations = EmpiricalDistribution()
        self._settings: dict[str, Any] = {}
        self._prefetch = False
        self._violations = 0
        self._median = 0

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Take in the events; when any came, judge the number of processes and the waiting."""
        for series in window.series("CPUUtilization"):
            self._cores.setdefault(series.node, set()).add(series.device)
        self._waiting.add(window)
        if not self._learn(window):
            return
        if self.max_waiting is not None:
            yield from self._judge_waiting(window, self.max_waiting)
        for node in sorted(self._untold):
            self.skip(window.place("data loader processes", node=node), _UNTOLD)
        for node, buckets in self._processes.items():
            cores = self._cores_of(node)
            place = window.place("data loader processes", node=node)
            if not cores:
                self.skip(place, "not measured: no samples of CPUUtilization, which tell the number of cores")
                continue
            if len(buckets) <= self.min_buckets:
                self.skip(place, "fewer seconds with data loading", len(buckets), self.min_buckets + 1)
                continue
            self._median = int(statistics.median(map(len, buckets.values())))
            yield from self._judge(window, node, cores)

    def _judge_waiting(self, window: ScanWindow, limit: float) -> Iterator[Finding]:
        for share in self._waiting.shares(_MIN_STEPS):
            place = window.place("waiting for data", node=share.node, worker=share.worker)
            message = f"{share.percent:.3g} % of the time of {share.steps} steps is spent waiting for data"
            found = self.judge(place, "percent", share.percent, ">", limit, message=message)
            self._violations += len(found)
            yield from found

    def _learn(self, window: ScanWindow) -> int:
        """Take in the events of the window; how many count."""
        counted = 0
        for events in window.events():
            self._prefetch |= any("Prefetch" in name for name in set(events.names.tolist()))
        for events in window.events(lambda phase: phase == _SETTINGS or phase in _COUNTED):
            rows = zip(
                events.phases.tolist(),
                events.names.tolist(),
                events.starts.tolist(),
                events.ends.tolist(),
                events.args.tolist(),
                strict=True,
            )
            buckets = self._processes.setdefault(events.node, {})
            for phase, name, start, end, args in rows:
                if phase == _SETTINGS and args is not None:
                    pinned, workers = args.pin_memory, args.num_workers
                    self._settings |= {"pin_memory": pinned} if pinned is not None else {}
                    self._settings |= {"num_workers": workers} if workers is not None else {}
                elif phase in _COUNTED:
                    counted += 1
                    self._durations.add((end - start) / 1e6)
                    if "MultiProcessing" in name and events.source == "pytorch":
                        # The process that waits is not the one that loads.
                        self._untold.add(events.node)
                        continue
                    process = args.pid if args is not None and args.pid is not None else events.worker
                    buckets.setdefault(start // 1_000_000, set()).add(process)
            if not buckets:
                del self._processes[events.node]
        return counted

    def _cores_of(self, node: str) -> int:
        """Cores of the node that a trace names; with one machine there is no doubt which it is."""
        cores = self._cores.get(node) or (next(iter(self._cores.values())) if len(self._cores) == 1 else ())
        return len(cores)

    def _judge(self, window: ScanWindow, node: str, cores: int) -> Iterator[Finding]:
        place = window.place("data loader processes", node=node)
        advice = f"set num_workers near {cores}"
        if str(self._settings.get("num_workers")) == "0":
            advice += " (it is 0: data is loaded in the training process)"
        message = f"{self._median} data loader processes on {cores} cores; {advice}"
        few, many = cores * self.min_threshold / 100, cores * self.max_threshold / 100
        for comparison, limit in (("<", few), (">", many)):
            found = self.judge(place, "processes", self._median, comparison, limit, message=message)
            self._violations += len(found)
            yield from found

    def measurements(self) -> Measurements:
        """Settings, processes and the histogram of loading times."""
        details: dict[str, Any] = {}
        if self._durations.size:
            probs, edges = self._durations.histogram(_BINS)
            p25, p50, p95 = self._durations.quantiles(0.25, 0.5, 0.95)
            details = dict(self._settings)
            if self._prefetch:
                details["prefetch"] = True
            details |= {
                "cores": max(map(self._cores_of, self._processes), default=0),
                "dataloaders": self._median,
                "dataloading_time": {
                    "p25": p25,
                    "p50": p50,
                    "p95": p95,
                    "probs": probs.tolist(),
                    "binedges": edges.tolist(),
                },
            }
        return Measurements(
            triggered=int(self._violations > 0),
            violations=self._violations,
            datapoints=self._durations.size,
            details=details,
        )
