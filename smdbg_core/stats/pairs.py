"""Pairwise statistics: one tensor against another value of the same tensor."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdbg_core.stats.registry import statistic

__all__ = ["Closeness", "DifferenceNorms", "closeness", "difference_norms"]

_BLOCK = 65536
"""Elements of a block; three blocks of float32 fit into a second-level cache of 1 MiB."""


class DifferenceNorms(NamedTuple):
    """Norms of a change and of what was changed, over the flattened tensors."""

    l2_difference: float
    l2_other: float
    l1_difference: float
    l1_other: float


class Closeness(NamedTuple):
    """How far two tensors differ."""

    all_close: bool
    max_abs_difference: float
    """Largest absolute difference; NaN where it cannot be formed."""

    differing: int
    """Elements beyond the tolerance."""

    size: int


@statistic("difference_norms", pairwise=True)
def difference_norms(current: NDArray[Any], other: NDArray[Any], order: int = 2) -> DifferenceNorms | None:
    """Norms of `current - other` and of `other`.

    Args:
        current: Any shape, numbers.
        other: The same shape.
        order: 2 for the Euclidean norms alone, 1 for the sums of magnitudes alone; the others are NaN.

    Returns:
        `None` when the shapes differ. Norms are NaN or infinite where an element is.
    """
    if current.shape != other.shape:
        return None
    now, before = current.reshape(-1), other.reshape(-1)
    if now.dtype.kind not in "fc" or now.dtype.itemsize == 2 or now.dtype != before.dtype:
        target = np.complex128 if "c" in (now.dtype.kind, before.dtype.kind) else np.float64
        now, before = now.astype(target), before.astype(target)
    sums = [0.0] * 4
    scratch = np.empty(min(_BLOCK, now.size), now.dtype)
    with np.errstate(all="ignore"):
        for start in range(0, now.size, _BLOCK):
            reference = before[start : start + _BLOCK]
            change = np.subtract(now[start : start + _BLOCK], reference, out=scratch[: reference.size])
            if order == 2:
                sums[0] += _squares(change)
                sums[1] += _squares(reference)
            else:
                sums[2] += float(np.abs(change).sum(dtype=np.float64))
                sums[3] += float(np.abs(reference).sum(dtype=np.float64))
    if order == 2:
        return DifferenceNorms(math.sqrt(sums[0]), math.sqrt(sums[1]), math.nan, math.nan)
    return DifferenceNorms(math.nan, math.nan, sums[2], sums[3])


def _squares(values: NDArray[Any]) -> float:
    """Sum of squares; in float64 where squares leave the range of float32."""
    rows = values.size // 2048 * 2048
    total = float(np.vecdot(values[rows:], values[rows:]).real)
    if rows:
        total += float(
            np.vecdot(values[:rows].reshape(-1, 2048), values[:rows].reshape(-1, 2048)).real.sum(
                dtype=np.float64
            )
        )
    if values.dtype == np.float32 and not (1e-30 * values.size <= total < math.inf):
        wide = values.astype(np.float64)
        return float(wide @ wide)
    return total


@statistic("closeness", pairwise=True)
def closeness(
    current: NDArray[Any],
    other: NDArray[Any],
    rtol: float,
    atol: float,
    equal_nan: bool = False,
    reference: str = "current",
) -> Closeness:
    """Whether `|current - other| <= atol + rtol * |reference|` holds for all elements.

    The bound is that of `numpy.allclose`, which is not symmetric: `reference` is `"current"` or
    `"other"`. Strings are compared for equality. Different shapes are not close.
    """
    if current.shape != other.shape:
        return Closeness(False, math.nan, max(current.size, other.size), current.size)
    if "U" in (current.dtype.kind, other.dtype.kind):
        differing = int(np.count_nonzero(current != other))
        return Closeness(not differing, 0.0 if not differing else math.nan, differing, current.size)
    wide = np.complex128 if "c" in (current.dtype.kind, other.dtype.kind) else np.float64
    now, before = current.reshape(-1), other.reshape(-1)
    largest, differing = 0.0, 0
    with np.errstate(all="ignore"):
        for start in range(0, now.size, _BLOCK):
            a, b = now[start : start + _BLOCK].astype(wide), before[start : start + _BLOCK].astype(wide)
            difference = np.abs(a - b)
            bound = atol + rtol * np.abs(a if reference == "current" else b)
            equal = a == b
            if equal_nan:
                equal |= np.isnan(a) & np.isnan(b)
            # Infinities are close only to themselves, which `equal` has covered.
            close = equal | ((difference <= bound) & np.isfinite(bound))
            differing += close.size - int(np.count_nonzero(close))
            difference[equal] = 0.0
            largest = float(np.maximum(largest, difference.max(initial=0.0)))
    return Closeness(not differing, largest, differing, current.size)
