"""Whole histories of values in bounded memory, exact where the values lie on a grid."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["EmpiricalDistribution"]

_DISTINCT: Final = 1 << 16
_BITS: Final = 12


class EmpiricalDistribution:
    """How often each value occurred: a histogram with one bin for each distinct value.

    Percentages with two decimals have at most 10,001 distinct values, so that quantiles over days of
    samples are exact. Beyond `distinct` different values they are rounded to 12 significant bits, which
    bounds the memory and puts quantiles within 0.02 %; the extremes stay exact.

    Args:
        distinct: How many different values are told apart exactly.

    Attributes:
        size: How many values were counted.
    """

    def __init__(self, distinct: int = _DISTINCT) -> None:
        self.size = 0
        self._distinct = distinct
        self._least = math.inf
        self._greatest = -math.inf
        self._values = np.empty(0, np.float64)
        self._counts = np.empty(0, np.int64)
        self._new: list[NDArray[np.float64]] = []
        self._waiting = 0
        self._coarse = False

    @property
    def min(self) -> float:
        """The least value; infinite without values."""
        self._settle()
        return self._least

    @property
    def max(self) -> float:
        """The greatest value; minus infinite without values."""
        self._settle()
        return self._greatest

    def add(self, values: ArrayLike) -> None:
        """Count more values.

        Args:
            values: Any shape; finite numbers.
        """
        added = np.asarray(values, np.float64).reshape(-1)
        if not added.size:
            return
        self.size += added.size
        self._new.append(added)
        self._waiting += added.size
        if self._waiting > max(4096, len(self._values)):
            self._settle()

    def merge(self, other: EmpiricalDistribution) -> None:
        """Count what another history has counted."""
        other._settle()
        self._settle()
        self.size += other.size
        self._least, self._greatest = min(self.min, other.min), max(self.max, other.max)
        self._join(other._values, other._counts)

    def quantiles(self, *fractions: float) -> tuple[float, ...]:
        """Quantiles with linear interpolation between ranks; NaN without values."""
        self._settle()
        if not self.size:
            return (math.nan,) * len(fractions)
        ends = np.cumsum(self._counts)
        found = []
        for fraction in fractions:
            position = (self.size - 1) * fraction
            rank = math.floor(position)
            low, high = np.searchsorted(ends, [rank, min(rank + 1, self.size - 1)], side="right")
            below, above = float(self._values[low]), float(self._values[high])
            found.append(min(max(below + (above - below) * (position - rank), self.min), self.max))
        return tuple(found)

    def above(self, limit: float) -> int:
        """How many values lie above `limit`."""
        self._settle()
        return int(self._counts[np.searchsorted(self._values, limit, side="right") :].sum())

    def histogram(self, bins: int, below: float = math.inf) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Counts in equal bins from the least to the greatest value, and their edges.

        Args:
            bins: How many.
            below: Only values less than this.

        Returns:
            Counts, shape (bins,), and edges, shape (bins + 1,). Where all values are equal the bins
            span one unit around them; without values the counts are zero.
        """
        self._settle()
        chosen = self._values < below
        weights = self._counts[chosen].astype(np.float64)
        counts, edges = np.histogram(self._values[chosen], bins=bins, weights=weights)
        return np.rint(counts).astype(np.int64), edges

    def _settle(self) -> None:
        if self._new:
            values, counts = np.unique(np.concatenate(self._new), return_counts=True)
            self._new, self._waiting = [], 0
            self._least = min(self._least, float(values[0]))
            self._greatest = max(self._greatest, float(values[-1]))
            self._join(values, counts)

    def _join(self, values: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        values = np.concatenate([self._values, values])
        counts = np.concatenate([self._counts, counts])
        if self._coarse or len(values) > 2 * self._distinct:
            self._coarse = True
            mantissa, exponent = np.frexp(values)
            values = np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS)
        self._values, rows = np.unique(values, return_inverse=True)
        self._counts = np.bincount(rows, weights=counts, minlength=len(self._values)).astype(np.int64)
