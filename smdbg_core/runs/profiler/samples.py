"""System metrics: JSON lines in, columns out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from smdbg_core.runs.damage import Damage
from smdbg_core.runs.profiler.lines import blocks
from smdbg_core.storage import File

__all__ = ["Samples", "SamplesReader", "SeriesKey"]

_LATEST: Final = 1e11
"""Seconds since the epoch beyond which a timestamp is no time."""


class SeriesKey(NamedTuple):
    """What a series measures, and where."""

    node: str
    device: str
    """`cpu0`, `gpu1`, or the name of a measure that has no device, such as `MemoryUsedPercent`."""

    dimension: str
    """`CPUUtilization`, `GPUMemoryUtilization`, ...; empty for memory and I/O."""

    type: str
    """`cpu`, `gpu`, `memory`, `i/o` or `network`."""

    def is_any_of(self, measures: Collection[str]) -> bool:
        """Whether one of `measures` names this series: by its dimension, or by its name if it has none."""
        return (self.dimension or self.device) in measures


class Samples(NamedTuple):
    """Samples of many series, one row each, in columns of one length."""

    codes: NDArray[np.int32]
    """Numbers of the series, as the reader's table has them."""

    times: NDArray[np.int64]
    """Microseconds since the epoch."""

    values: NDArray[np.float64]

    def take(self, rows: slice | NDArray[Any]) -> Samples:
        """The same columns, only these rows."""
        return Samples(self.codes[rows], self.times[rows], self.values[rows])

    @staticmethod
    def join(parts: Sequence[Samples]) -> Samples:
        """All rows, in the order of the parts."""
        return Samples(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.values for part in parts]),
        )


class _Row(msgspec.Struct, gc=False):
    """A line of a metrics file."""

    Timestamp: float
    Value: float
    Type: str = ""
    Name: str = ""
    Dimension: str = ""
    NodeId: str = ""


class _Table(dict[tuple[str, str, str, str], int]):
    """Numbers for series, given out as they are met."""

    def __missing__(self, key: tuple[str, str, str, str]) -> int:
        self[key] = len(self)
        return self[key]


class SamplesReader:
    """Reads files of metrics; series keep their numbers over all files.

    Args:
        measures: Only series of these dimensions (or names, where there is no dimension) are
            kept; `None` keeps all.

    Attributes:
        damage: What could not be read, one entry for each place.
        dropped: How many samples were left out because their value was no finite number.
    """

    def __init__(self, measures: Collection[str] | None = None) -> None:
        self.damage: list[Damage] = []
        self.dropped = 0
        self._measures = None if measures is None else frozenset(measures)
        self._table = _Table()
        self._decoder = msgspec.json.Decoder(_Row)
        self._wanted = np.empty(0, np.bool_)

    def series(self) -> list[SeriesKey]:
        """Series by number."""
        return [SeriesKey(*key) for key in self._table]

    def read(self, name: str, file: File) -> Iterator[Samples]:
        """The samples of a file, in blocks and in the order of the file."""
        if not file.size:
            self.damage.append(Damage(name, None, "empty", "the file is empty"))
        for offset, block in blocks(file):
            rows = self._rows(name, offset, block)
            if rows:
                yield self._columns(rows)

    def _rows(self, name: str, offset: int, block: bytes) -> list[_Row]:
        try:
            return self._decoder.decode_lines(block)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            # One bad line fails them all: take them one by one.
            return [*self._line_by_line(name, offset, block)]

    def _line_by_line(self, name: str, offset: int, block: bytes) -> Iterator[_Row]:
        for line in block.splitlines(keepends=True):
            if line.strip():
                try:
                    yield self._decoder.decode(line)
                except msgspec.ValidationError as error:
                    if "`$.Value`" in str(error) or "`Value`" in str(error):
                        self.dropped += 1
                    self.damage.append(Damage(name, offset, "row", str(error)))
                except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
                    kind = "cut" if "truncated" in str(error) else "not JSON"
                    self.damage.append(Damage(name, offset, kind, str(error)))
            offset += len(line)

    def _columns(self, rows: list[_Row]) -> Samples:
        count = len(rows)
        table = self._table
        codes = np.fromiter(
            [table[row.NodeId, row.Name, row.Dimension, row.Type] for row in rows], np.int32, count
        )
        seconds = np.fromiter([row.Timestamp for row in rows], np.float64, count)
        values = np.fromiter([row.Value for row in rows], np.float64, count)
        # Six decimals survive a double at today's dates: rounding gives the microsecond that was written.
        good = (seconds >= 0) & (seconds < _LATEST) & np.isfinite(values)
        kept = good & self._wanted_codes()[codes]
        if not good.all():
            self.dropped += count - int(np.count_nonzero(good))
        if not kept.all():
            codes, seconds, values = codes[kept], seconds[kept], values[kept]
        return Samples(codes, np.rint(seconds * 1e6).astype(np.int64), values)

    def _wanted_codes(self) -> NDArray[np.bool_]:
        if len(self._wanted) < len(self._table):
            wanted = self._measures
            self._wanted = np.array(
                [wanted is None or key.is_any_of(wanted) for key in self.series()], np.bool_
            )
        return self._wanted
