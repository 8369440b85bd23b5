"""The fused pass: the statistics that most rules share, in one pass over a tensor.

All of them are over the finite elements; counts tell of the others. Sums of float32 blocks are formed
in short rows, which keeps their relative error near 1e-7, and joined in float64. A block that such
sums cannot represent (non-finite elements, overflow or underflow of squares, a mean that dwarfs the
spread) is done again in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "FUSED", "FUSED_VERSION", "FusedPass", "fused", "fused_segments"]

FUSED: Final = (
    "size",
    "nan_count",
    "non_finite",
    "zeros",
    "min",
    "max",
    "max_abs",
    "sum",
    "mean",
    "variance",
    "std",
    "l1",
    "mean_abs",
    "l2",
)
"""Names of the statistics, in the order of results.

`size` counts all elements, `nan_count` NaN, `non_finite` NaN and infinities, `zeros` zeros of either
sign. `variance` and `std` are of the population (divisor n); `l1` and `l2` are norms of the flattened
tensor. Without any finite element, `sum`, `l1` and `l2` are 0 and the others NaN. Squares are of float64:
magnitudes beyond 1e150 or below 1e-150 leave its range.
"""

FUSED_VERSION: Final = 1
"""Changes when the same tensor gives another value; caches depend on it."""

BLOCK: Final = 196608
"""Elements of a block: 768 KiB of float32, which a second-level cache of 1 MiB holds."""

_ROW = 2048
_MOMENTS = frozenset({"sum", "mean", "variance", "std", "l2"})
_RANGE = frozenset({"min", "max", "max_abs"})
_MAGNITUDE = frozenset({"l1", "mean_abs"})
_CANCELLATION = 16.0
"""Squares may exceed squared deviations by this factor before a block is done again in float64."""

_UNDERFLOW = {4: 1e-30, 8: 1e-290}
"""Mean squares below this have lost digits, by the size of the floating-point type."""

Array = NDArray[Any]


class FusedPass:
    """Statistics of one tensor, fed block by block.

    Args:
        names: Names out of `FUSED`; only what they need is computed.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.names = tuple(names)
        wanted = frozenset(self.names)
        self._moments = bool(wanted & _MOMENTS)
        self._range = bool(wanted & _RANGE)
        self._magnitude = bool(wanted & _MAGNITUDE)
        self._zeros = "zeros" in wanted
        self._scratch: dict[Any, Array] = {}
        self.reset()

    def reset(self) -> None:
        """Forget all blocks."""
        self._size = self._finite = 0
        self._nan_count = self._zero_count = 0
        self._low, self._high = math.inf, -math.inf
        self._sum = self._square_sum = self._abs_sum = 0.0
        self._mean = self._m2 = 0.0

    def add(self, values: Array, *, overwrite: bool = False) -> None:
        """Take in elements.

        Args:
            values: Shape (n,), contiguous, any numeric dtype; complex numbers count by their modulus.
            overwrite: Whether the array may serve as scratch memory, which is faster.
        """
        with np.errstate(all="ignore"):
            for start in range(0, values.size, BLOCK):
                self.add_block(values[start : start + BLOCK], overwrite)

    def add_block(self, block: Array, overwrite: bool = False) -> None:
        """Take in up to `BLOCK` elements, inside `numpy.errstate(all="ignore")`: what `add` repeats."""
        self._size += block.size
        kind = block.dtype.kind
        if kind == "c":
            block = np.abs(block)
        elif kind == "f" and block.dtype.itemsize == 2:
            block = block.astype(np.float32)
        if kind not in "fc" or not self._fast(block, overwrite):
            self._exact(block.astype(np.float64))

    def _fast(self, block: Array, overwrite: bool) -> bool:
        """Take in a floating-point block by row sums in its own precision, unless that is not enough."""
        n = block.size
        total = squares = mean = m2 = magnitude = 0.0
        low, high = math.inf, -math.inf
        zeros = 0
        if self._range:
            low, high = float(block.min()), float(block.max())
            if not (-math.inf < low and high < math.inf):
                return False
        if self._moments:
            total, squares = _sum(block), _sum_squares(block)
            mean = total / n
            m2 = squares - total * mean
            # Comparisons with NaN are false, so that NaN takes the exact way as well.
            if not (squares < math.inf and squares >= _UNDERFLOW[block.dtype.itemsize] * n):
                return squares == 0 and not block.any() and self._add_zeros(n)
            if not squares <= _CANCELLATION * m2:
                return False
        if self._zeros and not self._magnitude:
            zeros = int(np.count_nonzero(np.equal(block, 0, out=self._buffer(n, np.dtype(bool)))))
        if self._magnitude:
            magnitudes = _magnitudes(block, block if overwrite else self._buffer(n, block.dtype))
            magnitude = _sum(magnitudes)
            if self._zeros and not magnitudes.min() > 0:
                zeros = n - int(np.count_nonzero(magnitudes.view(_SIGN_MASKS[block.dtype.itemsize][0])))
            if not magnitude < math.inf:
                if not overwrite:
                    return False
                # The signs are gone, but a range that was asked for has been found.
                before = self._low, self._high
                self._exact(block.astype(np.float64))
                self._low, self._high = min(before[0], low), max(before[1], high)
                return True
        elif not (self._moments or self._range) and not math.isfinite(_sum(block)):
            return False
        if self._moments:
            self._merge(n, mean, m2)
            self._sum += total
            self._square_sum += squares
        else:
            self._finite += n
        self._abs_sum += magnitude
        self._zero_count += zeros
        if self._range:
            self._low, self._high = min(self._low, low), max(self._high, high)
        return True

    def _add_zeros(self, n: int) -> bool:
        self._merge(n, 0.0, 0.0)
        self._zero_count += n
        self._low, self._high = min(self._low, 0.0), max(self._high, 0.0)
        return True

    def _exact(self, values: Array) -> None:
        """Take in a float64 block that may hold anything."""
        finite = np.isfinite(values)
        if not finite.all():
            self._nan_count += int(np.count_nonzero(np.isnan(values)))
            values = values[finite]
        if not values.size:
            return
        self._zero_count += values.size - int(np.count_nonzero(values))
        self._low, self._high = min(self._low, float(values.min())), max(self._high, float(values.max()))
        total = float(values.sum())
        mean = total / values.size
        deviations = values - mean
        # The second term removes what rounding of the mean leaves in the first.
        # A product overflows to infinity; a power of a Python float raises.
        rest = float(deviations.sum())
        m2 = float(deviations @ deviations) - rest * rest / values.size
        self._merge(values.size, mean, max(m2, 0.0))
        self._sum += total
        self._square_sum += float(values @ values)
        self._abs_sum += float(np.abs(values).sum())

    def _merge(self, n: int, mean: float, m2: float) -> None:
        """Join the moments of a block (Chan, Golub and LeVeque 1979)."""
        before, self._finite = self._finite, self._finite + n
        delta = mean - self._mean
        self._mean += delta * n / self._finite
        self._m2 += m2 + delta * delta * before * n / self._finite

    def _buffer(self, n: int, dtype: np.dtype[Any]) -> Array:
        buffer = self._scratch.get(dtype)
        if buffer is None or buffer.size < n:
            buffer = self._scratch[dtype] = np.empty(max(n, BLOCK), dtype)
        return buffer[:n]

    def result(self) -> tuple[float, ...]:
        """The statistics of all blocks so far, in the order of `names`."""
        return tuple(float(_RESULTS[name](self, self._finite)) for name in self.names)


_RESULTS: Final[dict[str, Callable[[FusedPass, int], float]]] = {
    "size": lambda p, n: p._size,
    "nan_count": lambda p, n: p._nan_count,
    "non_finite": lambda p, n: p._size - n,
    "zeros": lambda p, n: p._zero_count,
    "min": lambda p, n: p._low if n else math.nan,
    "max": lambda p, n: p._high if n else math.nan,
    "max_abs": lambda p, n: max(-p._low, p._high) if n else math.nan,
    "sum": lambda p, n: p._sum,
    "mean": lambda p, n: p._mean if n else math.nan,
    "variance": lambda p, n: p._m2 / n if n else math.nan,
    "std": lambda p, n: math.sqrt(p._m2 / n) if n else math.nan,
    "l1": lambda p, n: p._abs_sum,
    "mean_abs": lambda p, n: p._abs_sum / n if n else math.nan,
    "l2": lambda p, n: math.sqrt(p._square_sum),
}


def fused(values: Array, names: Sequence[str] = FUSED) -> tuple[float, ...]:
    """The fused statistics of one array of any shape, in the order of `names`."""
    flat = np.ascontiguousarray(values).reshape(-1)
    one_pass = FusedPass(names)
    one_pass.add(flat)
    return one_pass.result()


def fused_segments(
    values: Array, sizes: Sequence[int], names: Sequence[str] = FUSED
) -> list[tuple[float, ...]]:
    """The fused statistics of many small tensors that lie one after the other.

    Args:
        values: Shape (sum of sizes,), any numeric dtype.
        sizes: Elements of each tensor.
        names: Names out of `FUSED`.

    Returns:
        One tuple for each tensor, as `fused` gives it.
    """
    if not len(sizes):
        return []
    counts = np.asarray(sizes, dtype=np.int64)
    ends = np.cumsum(counts)
    starts = ends - counts
    if values.dtype.kind == "c" or not counts.all():
        return [fused(values[a:b], names) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    columns, suspect = _segment_columns(values.astype(np.float64), starts, counts, frozenset(names))
    rows = list(zip(*(columns[name].tolist() for name in names), strict=True))
    for index in np.flatnonzero(suspect).tolist():
        rows[index] = fused(values[starts[index] : ends[index]], names)
    return rows


def _segment_columns(
    x: Array, starts: Array, counts: Array, names: frozenset[str]
) -> tuple[dict[str, Array], Array]:
    """Columns by statistic, and the segments that need the exact way of a single tensor."""
    n = counts.astype(np.float64)
    columns: dict[str, Array] = {"size": n}
    with np.errstate(all="ignore"):
        magnitude = np.add.reduceat(np.abs(x), starts)
        suspect = ~np.isfinite(magnitude)
        columns["nan_count"] = columns["non_finite"] = np.zeros(len(counts))
        columns["l1"], columns["mean_abs"] = magnitude, magnitude / n
        if names & _MOMENTS:
            columns["sum"] = np.add.reduceat(x, starts)
            columns["mean"] = mean = columns["sum"] / n
            squares = np.add.reduceat(np.square(x), starts)
            columns["l2"] = np.sqrt(squares)
            columns["variance"] = variance = np.maximum(squares / n - np.square(mean), 0.0)
            columns["std"] = np.sqrt(variance)
            # Subtracting nearly equal numbers, and squares beyond the range of float64.
            suspect |= (squares > 1e6 * n * variance) & (magnitude > 0) & (counts > 1)
            suspect |= (squares < 1e-290) & (magnitude > 0)
        if names & _RANGE:
            columns["min"], columns["max"] = np.minimum.reduceat(x, starts), np.maximum.reduceat(x, starts)
            columns["max_abs"] = np.maximum(-columns["min"], columns["max"])
        if "zeros" in names:
            columns["zeros"] = np.add.reduceat(x == 0, starts, dtype=np.int64).astype(np.float64)
    return columns, suspect


def _magnitudes(values: Array, out: Array) -> Array:
    """Absolute values; clearing the sign bits takes half the time of `numpy.abs`."""
    integer, mask = _SIGN_MASKS[values.dtype.itemsize]
    np.bitwise_and(values.view(integer), mask, out=out.view(integer))
    return out


_SIGN_MASKS: Final[dict[int, tuple[Any, Any]]] = {
    4: (np.int32, np.int32(2**31 - 1)),
    8: (np.int64, np.int64(2**63 - 1)),
}


def _sum(values: Array) -> float:
    """Sum of a floating-point block, row by row in its own precision."""
    rest = values.size % _ROW
    ones = _ones(values.dtype)
    if not rest:
        return float(sum(np.vecdot(values.reshape(-1, _ROW), ones).tolist()))
    rows = values[:-rest].reshape(-1, _ROW)
    return float(sum(np.vecdot(rows, ones).tolist())) + float(np.vecdot(values[-rest:], ones[:rest]))


def _sum_squares(values: Array) -> float:
    """Sum of squares of a floating-point block, row by row in its own precision."""
    rest = values.size % _ROW
    rows = values[: values.size - rest].reshape(-1, _ROW)
    tail = values[values.size - rest :]
    return float(sum(np.vecdot(rows, rows).tolist())) + float(np.vecdot(tail, tail))


@cache
def _ones(dtype: np.dtype[Any]) -> Array:
    return np.ones(_ROW, dtype)
