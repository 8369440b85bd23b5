"""Grids: values by subject and position, gathered into a bounded number of buckets."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from smdbg_core.evidence import Axis, Subject, Track, Tracks

__all__ = ["Grid"]

_PENDING = 8192
"""Points that wait until they are taken in together: one at a time would cost ten times as much."""


class Grid:
    """Lowest, highest and mean value of each subject in each bucket.

    Args:
        axis: What positions are.
        buckets: At most so many for each subject.
        subjects: At most so many; of later ones only those that violate a limit are kept, half as
            many again.
        origin: The first position; by default that of the first point.
    """

    def __init__(self, axis: Axis, buckets: int, subjects: int, origin: int | None = None) -> None:
        self._axis = axis
        self._buckets = buckets
        self._most = subjects
        self._origin = origin
        self._width = 1
        self._rows: dict[Hashable, int] = {}
        self._omitted: set[Hashable] = set()
        self._violated: set[int] = set()
        self._lowest = np.empty((0, buckets))
        self._highest = np.empty((0, buckets))
        self._total = np.empty((0, buckets))
        self._count = np.empty((0, buckets), np.int32)
        self._bad = np.empty((0, buckets), np.int32)
        self._pending: list[tuple[int, int, float]] = []

    def row(self, key: Hashable, violated: bool = False) -> int | None:
        """The row of a subject, `None` if it is beyond the bound."""
        row = self._rows.get(key)
        if row is None:
            most = self._most * 3 // 2 if violated else self._most
            if len(self._rows) >= most:
                if len(self._omitted) < 1_000_000:
                    self._omitted.add(key)
                return None
            self._omitted.discard(key)
            row = self._rows[key] = len(self._rows)
        if violated:
            self._violated.add(row)
        return row

    def add(self, row: int, position: int, value: float) -> None:
        """Take in one value."""
        self._pending.append((row, position, value))
        if len(self._pending) >= _PENDING:
            self._flush()

    def add_all(
        self, rows: NDArray[np.int64], positions: NDArray[np.int64], values: NDArray[np.float64]
    ) -> None:
        """Take in one value of each row at each position."""
        if not len(rows):
            return
        if self._origin is None:
            self._origin = int(positions.min())
        self._make_room(int(positions.max()))
        columns = np.maximum(positions - self._origin, 0) // self._width
        cells = rows * self._buckets + columns
        finite = np.isfinite(values)
        if not finite.all():
            np.add.at(self._bad.reshape(-1), cells[~finite], 1)
            cells, values = cells[finite], values[finite]
        np.minimum.at(self._lowest.reshape(-1), cells, values)
        np.maximum.at(self._highest.reshape(-1), cells, values)
        np.add.at(self._total.reshape(-1), cells, values)
        np.add.at(self._count.reshape(-1), cells, 1)

    def tracks(self, subjects: Sequence[Subject] | None = None) -> Tracks:
        """What was gathered.

        Args:
            subjects: For each row, what it is about; by default the keys of the rows.
        """
        self._flush()
        origin = self._origin or 0
        keys = list(self._rows) if subjects is None else subjects
        found = []
        for key, row in zip(keys, self._rows.values(), strict=False):
            if row >= len(self._count):
                continue
            filled = np.flatnonzero(self._count[row] + self._bad[row])
            if not len(filled):
                continue
            count = self._count[row, filled]
            some = count > 0
            found.append(
                Track(
                    subject=key,  # type: ignore[arg-type]
                    positions=origin + filled * self._width,
                    lowest=np.where(some, self._lowest[row, filled], np.nan),
                    highest=np.where(some, self._highest[row, filled], np.nan),
                    mean=np.where(some, self._total[row, filled] / np.maximum(count, 1), np.nan),
                    non_finite=self._bad[row, filled],
                    violated=row in self._violated,
                )
            )
        return Tracks(self._axis, self._width, found, len(self._omitted))

    def _flush(self) -> None:
        if self._pending:
            rows, positions, values = zip(*self._pending, strict=True)
            self._pending = []
            self.add_all(
                np.array(rows, np.int64), np.array(positions, np.int64), np.array(values, np.float64)
            )

    def _make_room(self, position: int) -> None:
        if len(self._rows) > len(self._count):
            rows = max(len(self._rows), min(2 * len(self._count), self._most * 3 // 2))
            more = (rows - len(self._count), self._buckets)
            self._lowest = np.concatenate([self._lowest, np.full(more, np.inf)])
            self._highest = np.concatenate([self._highest, np.full(more, -np.inf)])
            self._total = np.concatenate([self._total, np.zeros(more)])
            self._count = np.concatenate([self._count, np.zeros(more, np.int32)])
            self._bad = np.concatenate([self._bad, np.zeros(more, np.int32)])
        times = 1
        while (position - (self._origin or 0)) // (self._width * times) >= self._buckets:
            times *= 2
        if times > 1:
            self._width *= times
            self._lowest = self._joined(self._lowest, np.minimum, times, np.inf)
            self._highest = self._joined(self._highest, np.maximum, times, -np.inf)
            self._total = self._joined(self._total, np.add, times, 0)
            self._count = self._joined(self._count, np.add, times, 0)
            self._bad = self._joined(self._bad, np.add, times, 0)

    def _joined(self, cells: NDArray, join: np.ufunc, times: int, empty: float) -> NDArray:  # type: ignore[type-arg]
        """Each `times` neighbouring buckets as one."""
        starts = np.arange(0, self._buckets, min(times, self._buckets))
        joined = np.full_like(cells, empty)
        if len(cells):
            joined[:, : len(starts)] = join.reduceat(cells, starts, axis=1)
        return joined
