"""Quantiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdbg_core.stats.registry import statistic

__all__ = ["quantiles"]


@statistic("quantiles")
def quantiles(values: NDArray[Any], *fractions: float) -> tuple[float, ...]:
    """Quantiles of the finite elements, by partition, with linear interpolation between ranks.

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
    positions = [fraction * (flat.size - 1) for fraction in fractions]
    ranks = sorted({rank for p in positions for rank in (math.floor(p), math.ceil(p))})
    ordered = np.partition(flat, ranks)
    result = []
    for position in positions:
        low = math.floor(position)
        below, above = float(ordered[low]), float(ordered[math.ceil(position)])
        result.append(below + (above - below) * (position - low))
    return tuple(result)
