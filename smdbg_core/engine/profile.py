"""The shape of profiler output: nodes, series, ticks, workers, phases."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from smdbg_core.runs.profiler import Events, Profiler, Samples, SeriesKey

__all__ = ["Node", "Profile"]


class Node:
    """What was sampled on one machine.

    Attributes:
        name: Name of the node.
        measures: Dimensions (or names) of its series.
        interval: Seconds between ticks, the median; `None` if there are fewer than two ticks.
        ticks: How many times were sampled.
        lost: How many are missing between the first and the last, by that interval.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.measures: set[str] = set()
        self.interval: float | None = None
        self.ticks = self.lost = 0

    def count(self, times: NDArray[np.int64]) -> None:
        """Count ticks by the times of one series."""
        times = np.unique(times)
        self.ticks = len(times)
        pauses = np.diff(times)
        if not len(pauses):
            return
        interval = float(np.median(pauses))
        self.interval = interval / 1e6
        missing = np.rint(pauses / interval) - 1
        self.lost = int(missing[missing > 0].sum())


class Profile:
    """The shape of profiler output, read in one pass.

    Attributes:
        nodes: By name.
        workers: For each writer of events, how many there are of each phase.
        dropped: Samples without a finite value or a time.
    """

    def __init__(self, profiler: Profiler) -> None:
        self.nodes: dict[str, Node] = {}
        self.workers: dict[str, Counter[str]] = {}
        reader = profiler.reader()
        leading: dict[str, int] = {}
        times: dict[str, list[NDArray[np.int64]]] = {}
        known = 0
        for _, data in reader:
            if isinstance(data, Samples):
                keys = reader.keys
                for code, key in enumerate(keys[known:], start=known):
                    self._meet(code, key, leading)
                known = len(keys)
                for name, code in leading.items():
                    times.setdefault(name, []).append(data.times[data.codes == code])
            elif isinstance(data, Events):
                self.workers.setdefault(data.worker or data.node or "events", Counter()).update(
                    data.phases.tolist()
                )
        for name, parts in times.items():
            self.nodes[name].count(np.concatenate(parts))
        self.dropped = reader.dropped

    def _meet(self, code: int, key: SeriesKey, leading: dict[str, int]) -> None:
        node = self.nodes.setdefault(key.node, Node(key.node))
        node.measures.add(key.dimension or key.device)
        # One series of each node tells the ticks: those of a tick are not taken at one time exactly.
        leading.setdefault(key.node, code)
