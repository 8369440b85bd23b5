"""Quantiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdbg_core.stats.registry import statistic

__all__ = ["quantiles"]

_LARGE = 65536
_SAMPLE = 4096


@statistic("quantiles")
def quantiles(values: NDArray[Any], *fractions: float) -> tuple[float, ...]:
    """Quantiles of the finite elements, exact, with linear interpolation between ranks.

    Args:
        values: Any shape, real numbers.
        fractions: Each in [0, 1].

    Returns:
        One value for each fraction; NaN without any finite element.
    """
    flat = values.reshape(-1)
    if flat.dtype.kind == "f":
        finite = np.isfinite(flat)
        if not finite.all():
            flat = flat[finite]
    if not flat.size:
        return (math.nan,) * len(fractions)
    sample = np.sort(flat[:: flat.size // _SAMPLE]) if flat.size >= _LARGE else None
    result = []
    for fraction in fractions:
        position = fraction * (flat.size - 1)
        rank = min(math.floor(position), max(flat.size - 2, 0))
        below, above = _two_ranks(flat, rank, sample)
        result.append(below + (above - below) * (position - rank))
    return tuple(result)


def _two_ranks(flat: NDArray[Any], rank: int, sample: NDArray[Any] | None) -> tuple[float, float]:
    """The elements at `rank` and after it, in sorted order.

    In a large array a sorted sample brackets them first, and only what lies within is partitioned; where
    the bracket misses, the whole array is.
    """
    if flat.size == 1:
        return float(flat[0]), float(flat[0])
    candidates, before = flat, 0
    if sample is not None:
        centre = rank * sample.size / flat.size
        margin = 8 * math.sqrt(max(centre * (1 - rank / flat.size), 1)) + 2
        low = sample[max(0, int(centre - margin))] if centre > margin else None
        high = sample[int(centre + margin)] if centre + margin < sample.size - 1 else None
        within = np.ones(flat.size, bool) if low is None else flat >= low
        count_before = 0 if low is None else flat.size - int(np.count_nonzero(within))
        if high is not None:
            within &= flat <= high
        chosen = flat[within]
        if count_before <= rank and rank + 1 < count_before + chosen.size:
            candidates, before = chosen, count_before
    ordered = np.partition(candidates, rank - before)
    return float(ordered[rank - before]), float(ordered[rank - before + 1 :].min())
