"""Histograms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdbg_core.stats.registry import statistic

__all__ = ["Histogram", "histogram"]


class Histogram(NamedTuple):
    """Counts in equal bins over `[low, high]`, and what lies outside."""

    counts: tuple[int, ...]
    below: int
    above: int
    non_finite: int


@statistic("histogram")
def histogram(values: NDArray[Any], bins: int, low: float, high: float) -> Histogram:
    """Counts in `bins` equal bins; the last one includes `high`.

    Args:
        values: Any shape, real numbers.
        bins: How many, at least 1.
        low: Lower end.
        high: Upper end, above `low`.
    """
    flat = values.reshape(-1).astype(np.float64)
    finite = flat[np.isfinite(flat)]
    counts, _ = np.histogram(finite, bins=bins, range=(low, high))
    below = int(np.count_nonzero(finite < low))
    above = int(np.count_nonzero(finite > high))
    return Histogram(tuple(counts.tolist()), below, above, flat.size - finite.size)
