"""Durations of the steps of one worker and mode: exact statistics in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from smdbg_core import Step
from smdbg_core.stats import EmpiricalDistribution

__all__ = ["StepDurations"]

_DISTINCT = 1 << 20
_SLOWEST = 100_000
_BINS = 100
_SECOND = 1e6


class StepDurations:
    """All durations so far, in whole microseconds, and the numbers of the slowest steps.

    Args:
        warmup: How many steps at the beginning are left out.
    """

    def __init__(self, warmup: int) -> None:
        self.all = EmpiricalDistribution(_DISTINCT)
        self._warmup = warmup
        self._sum = 0
        self._squares = 0
        self._slowest = np.empty((2, 0), np.int64)
        self._met = 0

    @property
    def size(self) -> int:
        """How many steps are counted."""
        return self.all.size

    def add(self, steps: Sequence[Step]) -> None:
        """Count steps, in order of time."""
        numbered = [
            (step.end - step.start, self._met + index if step.number is None else step.number)
            for index, step in enumerate(steps)
        ]
        self._met += len(numbered)
        numbered = numbered[max(0, self._warmup - (self._met - len(numbered))) :]
        if not numbered:
            return
        self._sum += sum(duration for duration, _ in numbered)
        self._squares += sum(duration * duration for duration, _ in numbered)
        added = np.array(numbered, np.int64).T
        self.all.add(added[0])
        self._slowest = np.concatenate([self._slowest, added], axis=1)
        if self._slowest.shape[1] > 2 * _SLOWEST:
            order = np.argsort(self._slowest[0], kind="stable")[-_SLOWEST:]
            self._slowest = self._slowest[:, np.sort(order)]

    @property
    def mean(self) -> float:
        """Seconds."""
        return self._sum / self.size / _SECOND

    @property
    def deviation(self) -> float:
        """Standard deviation of the population, in seconds."""
        variance = self._squares * self.size - self._sum * self._sum
        return math.sqrt(variance) / self.size / _SECOND

    def outliers(self, limit: float) -> int:
        """How many steps lasted longer than `limit` seconds."""
        return self.all.above(limit * _SECOND)

    def outlier_numbers(self, limit: float) -> list[str]:
        """Numbers of the steps that lasted longer than `limit` seconds: unique, sorted, as text."""
        numbers = self._slowest[1][self._slowest[0] > limit * _SECOND]
        return [str(number) for number in np.unique(numbers).tolist()]

    def details(self, limit: float, phase: str) -> dict[str, Any]:
        """The block that the service's report file has for a worker."""
        p99, p95, p50 = self.all.quantiles(0.99, 0.95, 0.5)
        counts, edges = self.all.histogram(_BINS, below=limit * _SECOND)
        return {
            "step_stats": {
                "mean": self.mean,
                "max": self.all.max / _SECOND,
                "p99": p99 / _SECOND,
                "p95": p95 / _SECOND,
                "p50": p50 / _SECOND,
                "min": self.all.min / _SECOND,
            },
            "number_of_outliers": self.outliers(limit),
            "phase": phase,
            "stddev": round(self.deviation, 2),
            "probs": counts.tolist(),
            "binedges": (edges / _SECOND).tolist(),
            "step_numbers": self.outlier_numbers(limit),
        }
