"""The fused pass: the statistics that most rules share, in one pass over a tensor.

All of them are over the finite elements; counts tell of the others. Sums of float32 blocks are formed
in short rows, which keeps their relative error near 1e-7, and joined in float64. A block that such
sums cannot represent (non-finite elements, overflow or underflow of squares, a mean that dwarfs the
spread) is done again in float64.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "FUSED", "FusedPass", "fused", "fused_segments"]

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
tensor. Without any finite element, `sum`, `l1` and `l2` are 0 and the others NaN.
"""

BLOCK: Final = 65536
"""Elements of a block: small enough to stay in the second-level cache."""

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

    def add(self, block: Array) -> None:
        """Take in a block: shape (n,), contiguous, any numeric dtype; complex numbers by their modulus."""
        if not block.size:
            return
        self._size += block.size
        kind = block.dtype.kind
        if kind == "c":
            block = np.abs(block)
        elif kind == "f" and block.dtype.itemsize == 2:
            block = block.astype(np.float32)
        if kind not in "fc" or not self._fast(block):
            self._exact(block.astype(np.float64))

    def _fast(self, block: Array) -> bool:
        """Take in a floating-point block by row sums in its own precision, unless that is not enough."""
        n = block.size
        total = squares = mean = m2 = magnitude = 0.0
        low, high = math.inf, -math.inf
        zeros = 0
        with np.errstate(all="ignore"):
            if self._range:
                low, high = float(block.min()), float(block.max())
            if self._moments:
                total, squares = _sum(block), _sum_squares(block)
                mean = total / n
                m2 = squares - total * mean
                # Comparisons with NaN are false, so that NaN takes the exact way as well.
                if not (squares < math.inf and squares >= _UNDERFLOW[block.dtype.itemsize] * n):
                    return squares == 0 and not block.any() and self._add_zeros(n)
                if not squares <= _CANCELLATION * m2:
                    return False
            if self._magnitude:
                magnitudes = np.abs(block, out=self._buffer(n, block.dtype))
                magnitude = _sum(magnitudes)
                if not magnitude < math.inf:
                    return False
            elif not self._moments and not math.isfinite(_sum(block)):
                return False
            if self._zeros:
                zeros = int(np.count_nonzero(np.equal(block, 0, out=self._buffer(n, np.dtype(bool)))))
        self._merge(n, mean, m2)
        self._sum += total
        self._square_sum += squares
        self._abs_sum += magnitude
        self._zero_count += zeros
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
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(values.sum())
            mean = total / values.size
            deviations = values - mean
            # The second term removes what rounding of the mean leaves in the first.
            m2 = float(deviations @ deviations) - float(deviations.sum()) ** 2 / values.size
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
        n = self._finite
        variance = self._m2 / n if n else math.nan
        values = {
            "size": self._size,
            "nan_count": self._nan_count,
            "non_finite": self._size - n,
            "zeros": self._zero_count,
            "min": self._low if n else math.nan,
            "max": self._high if n else math.nan,
            "max_abs": max(-self._low, self._high) if n else math.nan,
            "sum": self._sum,
            "mean": self._mean if n else math.nan,
            "variance": variance,
            "std": math.sqrt(variance) if n else math.nan,
            "l1": self._abs_sum,
            "mean_abs": self._abs_sum / n if n else math.nan,
            "l2": math.sqrt(self._square_sum),
        }
        return tuple(float(values[name]) for name in self.names)


def fused(values: Array, names: Sequence[str] = FUSED) -> tuple[float, ...]:
    """The fused statistics of one array of any shape, in the order of `names`."""
    flat = np.ascontiguousarray(values).reshape(-1)
    one_pass = FusedPass(names)
    for start in range(0, flat.size, BLOCK):
        one_pass.add(flat[start : start + BLOCK])
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
            suspect |= (squares > 1e6 * n * variance) & (magnitude > 0)
            suspect |= (squares < 1e-290) & (magnitude > 0)
        if names & _RANGE:
            columns["min"], columns["max"] = np.minimum.reduceat(x, starts), np.maximum.reduceat(x, starts)
            columns["max_abs"] = np.maximum(-columns["min"], columns["max"])
        if "zeros" in names:
            columns["zeros"] = np.add.reduceat(x == 0, starts, dtype=np.int64).astype(np.float64)
    return columns, suspect


def _sum(values: Array) -> float:
    """Sum of a floating-point block, row by row in its own precision."""
    whole = values.size - values.size % _ROW
    ones = _ones(values.dtype)
    total = float(np.vecdot(values[whole:], ones[: values.size - whole]))
    return total + float(np.vecdot(values[:whole].reshape(-1, _ROW), ones).sum(dtype=np.float64))


def _sum_squares(values: Array) -> float:
    """Sum of squares of a floating-point block, row by row in its own precision."""
    whole = values.size - values.size % _ROW
    rows, rest = values[:whole].reshape(-1, _ROW), values[whole:]
    return float(np.vecdot(rest, rest)) + float(np.vecdot(rows, rows).sum(dtype=np.float64))


@cache
def _ones(dtype: np.dtype[Any]) -> Array:
    return np.ones(_ROW, dtype)
