"""Functions over short series of numbers: averages, changes, spread, outliers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["exponential_average", "moving_average", "outliers", "relative_change", "robust_spread"]


def moving_average(values: Sequence[float], width: int) -> NDArray[np.float64]:
    """Mean of each value and the `width - 1` before it; the first ones over what there is.

    Args:
        values: Shape (n,).
        width: At least 1.
    """
    data = np.asarray(values, dtype=np.float64)
    sums = np.cumsum(data)
    sums[width:] = sums[width:] - sums[:-width]
    return sums / np.minimum(np.arange(1, len(data) + 1), width)


def exponential_average(values: Sequence[float], weight: float) -> NDArray[np.float64]:
    """Exponentially weighted mean, corrected for its start.

    Args:
        values: Shape (n,).
        weight: Weight of a new value, in (0, 1].
    """
    result, total, mass = [], 0.0, 0.0
    for value in values:
        total = (1 - weight) * total + weight * value
        mass = (1 - weight) * mass + weight
        result.append(total / mass)
    return np.asarray(result, dtype=np.float64)


def relative_change(before: float, after: float) -> float:
    """`(after - before) / |before|`; 0 for no change at all, infinite for a change from zero."""
    if after == before:
        return 0.0
    if before == 0:
        return math.copysign(math.inf, after) if after == after else math.nan
    return (after - before) / abs(before)


def robust_spread(values: Sequence[float]) -> float:
    """Median absolute deviation, scaled to the standard deviation of a normal distribution."""
    from scipy.stats import median_abs_deviation

    return float(median_abs_deviation(values, scale="normal")) if len(values) else math.nan


def outliers(values: Sequence[float], factor: float, *, robust: bool = False) -> NDArray[np.intp]:
    """Indexes of the values more than `factor` spreads above the centre.

    Args:
        values: Shape (n,).
        factor: How many spreads.
        robust: Median and `robust_spread` instead of mean and standard deviation.
    """
    data = np.asarray(values, dtype=np.float64)
    if not data.size:
        return np.empty(0, dtype=np.intp)
    centre = float(np.median(data) if robust else data.mean())
    spread = robust_spread(values) if robust else float(data.std())
    return np.flatnonzero(data > centre + factor * spread)
