"""How often units were active, over the last saved steps."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdbg_core import TensorView

__all__ = ["RecentActivity"]

_Counts = tuple[NDArray[np.int64], int]


class RecentActivity:
    """Sums the activity of every unit over a window, so that small batches do not decide.

    Args:
        window: How many saved steps of a mode are added up.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._recent: dict[tuple[str, str, str], deque[_Counts]] = {}

    def add(self, tensor: TensorView, activity: Any) -> _Counts | None:
        """Active counts by unit and the number of samples; `None` until the window is full."""
        counts = np.asarray(activity.counts)
        recent = self._recent.setdefault(
            (tensor.name, tensor.worker, tensor.mode), deque(maxlen=self._window)
        )
        if recent and recent[0][0].shape != counts.shape:
            recent.clear()
        recent.append((counts, activity.samples))
        if len(recent) < self._window:
            return None
        return np.sum([counts for counts, _ in recent], axis=0), sum(samples for _, samples in recent)
