"""GPUMemoryIncrease: the memory footprint of a GPU jumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from smdbg_core import Finding, Measurements, Meta, ProfilerRule, RuleRun, ScanReads, ScanWindow, Series
from smdbg_core.stats import EmpiricalDistribution
from smdbg_profiler_rules.history import box

__all__ = ["GPUMemoryIncrease"]

_SCALE = 1e6
"""Means are of whole millionths of a percent, so that a step of exactly the limit does not fire."""

_PAUSE = 10
"""Sampling intervals after which what came before is no longer recent."""


class GPUMemoryIncrease(ProfilerRule):
    """Fires when the moving average of a GPU's memory utilisation rises by too much.

    Why it matters: memory that keeps growing ends in an out-of-memory error, hours later.
    What to do: look for tensors that are kept from step to step (a loss that is summed with its graph);
    near the limit, use a smaller batch or a larger GPU. Drivers that report the use of the memory
    controller instead of the footprint make this rule fire on normal loads.
    """

    increase: Annotated[
        float, Meta(gt=0, unit="percentage points", description="Rise of the moving average that fires.")
    ] = 5
    patience: Annotated[int, Meta(gt=0, unit="samples", description="Samples before the first verdict.")] = (
        1000
    )
    window: Annotated[int, Meta(gt=0, unit="samples", description="Samples of the moving average.")] = 10
    method: Annotated[
        Literal["lagged_average", "moving_average"],
        Meta(
            local=True,
            description="lagged_average: against the mean of the window - 1 values that end two samples "
            "earlier, as the service computes it. moving_average: against the moving average one sample "
            "earlier, as it documents.",
        ),
    ] = "lagged_average"

    def reads(self) -> ScanReads:
        """GPU memory utilisation."""
        return ScanReads(series=("GPUMemoryUtilization",))

    def start(self, run: RuleRun) -> None:
        """A footprint for each GPU."""
        self._gpus: dict[tuple[str, str], _Footprint] = {}
        self._fired = 0
        self._datapoints = 0
        self._details: dict[str, Any] = {}

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Judge the steepest rise of the window; every sample over the limit is counted."""
        for series in window.series("GPUMemoryUtilization"):
            footprint = self._gpus.setdefault((series.node, series.device), _Footprint(self.window))
            before = footprint.whole.size
            rises = footprint.rises(series, self.method)
            self._datapoints = before + len(rises)
            # Sample number n is judged when n is more than `patience`.
            rises[: max(0, self.patience - before)] = np.nan
            most = float(np.fmax.reduce(rises))
            if most != most:
                footprint.whole.add(series.values)
                self.skip(series, "fewer samples than patience", self._datapoints, self.patience + 1)
                continue
            fired = np.flatnonzero(rises > self.increase) if most > self.increase else np.empty(0, np.int64)
            last = int(fired[-1]) + 1 if len(fired) else 0
            footprint.whole.add(series.values[:last])
            if last:
                self._fired += len(fired)
                self._details.setdefault(series.node, {})[series.device] = {
                    "increase": float(rises[last - 1]),
                    "gpu_max": footprint.whole.max,
                    "p05": footprint.whole.quantiles(0.05)[0],
                    **box(footprint.whole),
                }
                self._details.pop("last_timestamp", None)
                self._details["last_timestamp"] = window.start
            footprint.whole.add(series.values[last:])
            message = f"the mean of {self.window} samples rose by {most:.4g} percentage points at once"
            if len(fired) > 1:
                message += f", at {len(fired)} samples"
            yield from self.judge(series, "increase", most, ">", self.increase, message=message)

    def measurements(self) -> Measurements:
        """The latest rise of each GPU that fired, and its box plot."""
        return Measurements(
            triggered=self._fired,
            violations=self._fired,
            datapoints=self._datapoints,
            details=self._details,
        )


class _Footprint:
    """Memory of one GPU: all of it as a distribution, and the latest samples."""

    def __init__(self, window: int) -> None:
        self.whole = EmpiricalDistribution()
        self._window = window
        self._recent = np.empty(0, np.int64)
        self._last: int | None = None
        self._pause: float | None = None

    def rises(self, series: Series, method: str) -> NDArray[np.float64]:
        """For each sample, how far the average rose; NaN while too few samples are recent."""
        last = int(series.times[0]) if self._last is None else self._last
        gaps = np.diff(np.concatenate([[last], series.times]))
        if self._pause is None and len(gaps) > 1:
            self._pause = _PAUSE * float(np.median(gaps[1:]))
        self._last = int(series.times[-1])
        values = np.rint(series.values * _SCALE).astype(np.int64)
        if self._pause is None or int(gaps.max()) <= self._pause:
            return self._part(values, method)
        found = []
        for number, part in enumerate(np.split(values, np.flatnonzero(gaps > self._pause))):
            if number:
                self._recent = np.empty(0, np.int64)
            found.append(self._part(part, method))
        return np.concatenate(found)

    def _part(self, values: NDArray[np.int64], method: str) -> NDArray[np.float64]:
        window = self._window
        known = np.concatenate([self._recent, values])
        self._recent = known[-(window + 1) :]
        result = np.full(len(values), np.nan)
        # The sample with index i is the newest of i + 1, and more than window + 1 are needed.
        newest = np.arange(max(window + 1, len(known) - len(values)), len(known))
        if not len(newest):
            return result
        sums = np.concatenate([[0], np.cumsum(known)])
        now = (sums[newest + 1] - sums[newest + 1 - window]) / window
        if method == "moving_average":
            before = (sums[newest] - sums[newest - window]) / window
        elif window == 1:
            before = known[newest - 1].astype(np.float64)
        else:
            # The values n-w-1 .. n-3 of n values: the newest one has the index n-1.
            before = (sums[newest - 1] - sums[newest - window]) / (window - 1)
        result[newest - (len(known) - len(values))] = (now - before) / _SCALE
        return result
