"""What rules keep of one series: all of it as a distribution, and the latest values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smdbg_core.stats import EmpiricalDistribution, quantiles

__all__ = ["History", "box"]


class History:
    """The values of one series so far.

    Args:
        window: How many of the latest values are kept as they came.
    """

    def __init__(self, window: int) -> None:
        self.whole = EmpiricalDistribution()
        self.recent = np.empty(0, np.float64)
        self._window = window

    @property
    def size(self) -> int:
        """How many values there were."""
        return self.whole.size

    def add(self, values: NDArray[np.float64]) -> None:
        """Append values, shape (n,)."""
        self.whole.add(values)
        self.recent = np.concatenate([self.recent, values])[-self._window :]

    def recent_quantile(self, fraction: float) -> float:
        """Quantile of the latest values, with linear interpolation between ranks."""
        return quantiles(self.recent, fraction)[0]


def box(whole: EmpiricalDistribution) -> dict[str, float]:
    """The box plot of all values: quartiles, 95th percentile, whiskers of 1.5 times the spread."""
    p25, p50, p75, p95 = whole.quantiles(0.25, 0.5, 0.75, 0.95)
    spread = 1.5 * (p75 - p25)
    return {
        "p25": p25,
        "p50": p50,
        "p75": p75,
        "p95": p95,
        "upper": min(p75 + spread, whole.max),
        "lower": max(p25 - spread, whole.min),
    }
