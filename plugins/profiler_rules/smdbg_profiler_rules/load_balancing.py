"""LoadBalancing: GPUs that do unequal work."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from smdbg_core import Finding, Measurements, Meta, ProfilerRule, RuleRun, ScanReads, ScanWindow
from smdbg_core.stats import jensen_shannon_distances

__all__ = ["LoadBalancing"]

_EDGES = np.arange(0, 102, 2)
_LISTED = 20


class LoadBalancing(ProfilerRule):
    """Fires when the utilisation of two GPUs is distributed differently.

    Why it matters: in synchronous training all GPUs wait for the slowest, and an unused one is paid for.
    What to do: check how batches are divided, that every GPU is used, and that no process does extra work;
    consider another distribution strategy.
    """

    threshold: Annotated[
        float,
        Meta(
            ge=0,
            le=100,
            description="Jensen-Shannon distance of two histograms (0 to 0.83) above which it fires.",
        ),
    ] = 0.5
    patience: Annotated[int, Meta(gt=0, unit="samples", description="Samples before the first verdict.")] = (
        1000
    )

    def reads(self) -> ScanReads:
        """GPU utilisation."""
        return ScanReads(series=("GPUUtilization",))

    def start(self, run: RuleRun) -> None:
        """A histogram for each GPU."""
        self._workloads: dict[tuple[str, str], NDArray[np.int64]] = {}
        self._fired = 0
        self._datapoints = 0
        self._distances: dict[tuple[tuple[str, str], tuple[str, str]], float] = {}

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Take in the window, then judge every pair of GPUs."""
        for series in window.series("GPUUtilization"):
            counts, _ = np.histogram(np.clip(series.values, 0, 100), bins=_EDGES)
            place = series.node, series.device
            self._workloads[place] = self._workloads.get(place, 0) + counts.astype(np.int64)
            self._datapoints = int(self._workloads[place].sum())
        if len(self._workloads) < 2:
            self.skip(None, "not applicable: one GPU has nothing to be balanced with")
            return
        ready = [place for place, counts in self._workloads.items() if counts.sum() > self.patience]
        if len(ready) < 2:
            have = sorted(int(counts.sum()) for counts in self._workloads.values())[-2]
            self.skip(None, "fewer samples than patience", have, self.patience + 1)
            return
        distances = jensen_shannon_distances(np.stack([self._workloads[place] for place in ready]))
        self._distances = {}
        for one, other in combinations(range(len(ready)), 2):
            distance = float(distances[one, other])
            if distance > self.threshold:
                self._distances[ready[one], ready[other]] = distance
            found = self._judge(window, ready[one], ready[other], distance)
            self._fired += len(found)
            yield from found

    def _judge(
        self, window: ScanWindow, one: tuple[str, str], other: tuple[str, str], distance: float
    ) -> tuple[Finding, ...]:
        second = other[1] if one[0] == other[0] else "/".join(other)
        place = window.place(f"{one[1]} and {second}", node=one[0])
        message = None
        if distance > self.threshold:
            message = f"utilisation is distributed differently: distance {distance:.4g} > {self.threshold:g}"
            unused = ["/".join(gpu) for gpu in (one, other) if not self._workloads[gpu][1:].any()]
            message += f"; unused: {', '.join(unused)}" if unused else ""
        return self.judge(place, "distance", distance, ">", self.threshold, message=message)

    def measurements(self) -> Measurements:
        """Histograms, and the largest distances over the threshold."""
        details: dict[str, Any] = {}
        for (node, gpu), counts in self._workloads.items():
            details.setdefault(node, {"workloads": {}})["workloads"][gpu] = counts.tolist()
        largest = sorted(self._distances.items(), key=lambda one: -one[1])[:_LISTED]
        for ((node, gpu), (other_node, other_gpu)), distance in largest:
            second = other_gpu if node == other_node else f"{other_node}/{other_gpu}"
            details[node].setdefault("distances", {}).setdefault(gpu, {})[second] = distance
        return Measurements(
            triggered=self._fired, violations=self._fired, datapoints=self._datapoints, details=details
        )
