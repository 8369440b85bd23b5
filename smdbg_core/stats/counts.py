"""Counts of exact values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdbg_core.stats.registry import statistic

__all__ = ["value_counts"]


@statistic("value_counts")
def value_counts(values: NDArray[Any], *targets: float) -> tuple[int, ...]:
    """How many elements equal each target exactly.

    Args:
        values: Any shape and numeric dtype.
        targets: Values to look for; NaN equals nothing.
    """
    return tuple(int(np.count_nonzero(values == target)) for target in targets)
