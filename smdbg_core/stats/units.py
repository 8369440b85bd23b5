"""Statistics by unit or channel: along one axis of a batch."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdbg_core.stats.registry import statistic

__all__ = ["Activity", "ChannelSums", "active_counts", "channel_sums"]


class Activity(NamedTuple):
    """In how many samples of a batch each unit was active."""

    counts: NDArray[np.int64]
    """Shape (units,)."""

    samples: int


class ChannelSums(NamedTuple):
    """Sums of a batch of images by channel."""

    sums: tuple[float, ...]
    counts: tuple[int, ...]
    """Elements of each channel."""

    images: int


@statistic("active_counts")
def active_counts(
    values: NDArray[Any], low: float | None, high: float | None, unit_axis: int | None = None
) -> Activity:
    """Count for each unit the samples in which `low < value < high`.

    Args:
        values: The batch axis comes first; fewer than two dimensions are a batch of one.
        low: Exclusive lower bound, or none. NaN lies within no bounds.
        high: Exclusive upper bound, or none.
        unit_axis: Axis whose positions are the units, each active where any of its elements is;
            by default every position after the batch axis is a unit.

    Raises:
        IndexError: The array has no such axis, or it is the batch axis.
    """
    batch = values.reshape(1, -1) if values.ndim < 2 else values
    # NaN is unequal to itself, and so lies within no bounds.
    active: Any = np.equal(batch, batch) if low is None else np.greater(batch, low)
    if high is not None:
        active &= batch < high
    if unit_axis is not None and values.ndim >= 2:
        axis = unit_axis + batch.ndim if unit_axis < 0 else unit_axis
        if not 0 < axis < batch.ndim:
            message = f"axis {unit_axis} of shape {values.shape} is no axis of units"
            raise IndexError(message)
        others = tuple(a for a in range(1, batch.ndim) if a != axis)
        active = active.any(axis=others)
    return Activity(
        np.count_nonzero(active.reshape(len(batch), math.prod(active.shape[1:])), axis=0), len(batch)
    )


@statistic("channel_sums")
def channel_sums(values: NDArray[Any], axis: int) -> ChannelSums:
    """Sums and element counts by channel.

    Args:
        values: The batch axis comes first; up to two dimensions have one channel. Of complex numbers the
            modulus counts.
        axis: The channel axis, may be negative.

    Raises:
        IndexError: The array has no such axis, or it is the batch axis.
    """
    data = np.atleast_1d(np.abs(values) if values.dtype.kind == "c" else values)
    if data.ndim <= 2:
        return ChannelSums((float(data.sum(dtype=np.float64)),), (data.size,), len(data))
    channel = axis + data.ndim if axis < 0 else axis
    if not 0 < channel < data.ndim:
        message = f"axis {axis} of shape {values.shape} is no channel axis"
        raise IndexError(message)
    sums = data.sum(axis=tuple(a for a in range(data.ndim) if a != channel), dtype=np.float64)
    each = data.size // max(1, data.shape[channel])
    return ChannelSums(tuple(sums.tolist()), (each,) * data.shape[channel], len(data))
