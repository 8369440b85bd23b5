"""Framework events: trace-event files in, columns out.

The files are arrays of Chrome trace events. A row of metadata maps a `pid` to a phase, which is what
SageMaker's profiler means by it: not a process. Times are microseconds since a base that another
row of metadata gives.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from smdbg_core.runs.damage import Damage
from smdbg_core.runs.profiler.files import ProfilerFile, Source
from smdbg_core.runs.profiler.lines import blocks
from smdbg_core.storage import File

__all__ = ["Args", "Events", "EventsReader", "Row"]

UNKNOWN_PHASE: Final = "Unknown"
_LATEST: Final = 1e17
_WHOLE: Final = 1 << 26
"""Bytes of an array that are decoded at once, where its lines mean nothing."""

"""Microseconds since the epoch beyond which a time is no time."""


class Args(msgspec.Struct, gc=False):
    """The arguments of an event that rules use."""

    start_time_since_epoch_in_micros: float | None = None
    name: Any = None
    step_num: int | float | str | None = None
    pid: int | float | str | None = None
    worker_id: int | float | str | None = None
    num_workers: int | float | str | None = None
    pin_memory: bool | str | None = None


class Row(msgspec.Struct, gc=False):
    """One trace event as it is written."""

    ph: str = ""
    name: str = ""
    pid: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0
    args: Args | None = None


class Events(NamedTuple):
    """Events of one writer, one row each, in columns of one length."""

    worker: str
    node: str
    source: Source
    phases: NDArray[np.object_]
    names: NDArray[np.object_]
    starts: NDArray[np.int64]
    """Microseconds since the epoch."""

    ends: NDArray[np.int64]
    args: NDArray[np.object_]
    """`Args` of each event, or `None`."""

    def take(self, rows: NDArray[Any]) -> Events:
        """The same columns, only these rows."""
        return self._replace(
            phases=self.phases[rows],
            names=self.names[rows],
            starts=self.starts[rows],
            ends=self.ends[rows],
            args=self.args[rows],
        )

    @staticmethod
    def join(parts: Sequence[Events]) -> Events:
        """All rows of parts from one writer, in order of time."""
        whole = parts[0]._replace(
            phases=np.concatenate([part.phases for part in parts]),
            names=np.concatenate([part.names for part in parts]),
            starts=np.concatenate([part.starts for part in parts]),
            ends=np.concatenate([part.ends for part in parts]),
            args=np.concatenate([part.args for part in parts]),
        )
        return whole.take(np.lexsort((whole.starts, whole.ends)))

    def __bool__(self) -> bool:
        return bool(len(self.starts))


class _Columns:
    """Columns while they grow."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.names: list[str] = []
        self.starts: list[float] = []
        self.durations: list[float] = []
        self.args: list[Args | None] = []


class EventsReader:
    """Reads trace files; what one file leaves open goes on in the next file of the same writer.

    Attributes:
        damage: What could not be read, one entry for each place.
        unpaired: How many ends had no beginning.
    """

    def __init__(self) -> None:
        self.damage: list[Damage] = []
        self.unpaired = 0
        self._array = msgspec.json.Decoder(list[Row])
        self._one = msgspec.json.Decoder(Row)
        self._open: dict[tuple[str, Source | None], dict[str, list[tuple[str, float, Args | None]]]] = {}

    def read(self, entry: ProfilerFile, file: File) -> Iterator[Events]:
        """The events of a trace file, in blocks, in the order of the file."""
        writer = entry.worker, entry.source
        stacks = self._open.setdefault(writer, defaultdict(list))
        mapper = _Mapper(stacks)
        # Horovod leaves the array open when its process ends.
        for rows in self._rows(entry.name, file, must_close=entry.source != "horovod"):
            events = self._columns(mapper.take(rows), entry)
            if events:
                yield events
        self.unpaired += mapper.unpaired

    def columns(self, rows: Sequence[Row], entry: ProfilerFile, *, base: int = 0) -> Events:
        """Events from rows that were decoded elsewhere, with times relative to `base`."""
        mapper = _Mapper(defaultdict(list), base)
        events = self._columns(mapper.take(rows), entry)
        self.unpaired += mapper.unpaired
        return events

    def _rows(self, name: str, file: File, *, must_close: bool) -> Iterator[list[Row]]:
        """Rows block by block: these writers put each event on a line of its own."""
        whole: list[bytes] | None = []
        taken, last = 0, b""
        for offset, block in blocks(file):
            taken += len(block)
            last = block[-64:].rstrip() or last
            rows = self._block(block)
            if rows is not None:
                whole = None
                yield rows
                continue
            rows, damage = self._line_by_line(name, offset, block)
            if whole is not None and not rows and taken <= _WHOLE:
                # Perhaps an array that is laid out otherwise: it is tried as a whole, within reason.
                whole.append(block)
                continue
            if whole:
                rows, damage = self._line_by_line(name, 0, b"".join(whole) + block)
            whole = None
            self.damage += damage
            yield rows
        if whole:
            yield self._as_a_whole(name, b"".join(whole))
        elif not taken:
            self.damage.append(Damage(name, None, "empty", "the file is empty"))
        elif must_close and not last.endswith(b"]") and not any(one.file == name for one in self.damage):
            self.damage.append(Damage(name, taken, "cut", "the array of events is not closed"))

    def _block(self, block: bytes) -> list[Row] | None:
        if block[:1] == b"[" and block[-1:] == b"]":
            with suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                return self._array.decode(block)
        inner = block.strip().removeprefix(b"[").removesuffix(b"]").strip().removesuffix(b",")
        try:
            return self._array.decode(b"[" + inner + b"]")
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None

    def _line_by_line(self, name: str, offset: int, block: bytes) -> tuple[list[Row], list[Damage]]:
        rows, damage = [], []
        for line in block.splitlines(keepends=True):
            text = line.strip().removeprefix(b"[").strip()
            text = text.removesuffix(b"]").strip().removesuffix(b",")
            if text:
                try:
                    rows.append(self._one.decode(text))
                except msgspec.ValidationError as error:
                    damage.append(Damage(name, offset, "row", str(error)))
                except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
                    kind = "cut" if "truncated" in str(error) else "not JSON"
                    damage.append(Damage(name, offset, kind, str(error)))
            offset += len(line)
        return rows, damage

    def _as_a_whole(self, name: str, content: bytes) -> list[Row]:
        try:
            return self._array.decode(content)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            kind = "cut" if "truncated" in str(error) else "not JSON"
            self.damage.append(Damage(name, 0, kind, str(error)))
            return []

    def _columns(self, columns: _Columns, entry: ProfilerFile) -> Events:
        starts = np.array(columns.starts, np.float64)
        durations = np.array(columns.durations, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            ends = starts + durations
        good = None
        # Comparisons with NaN are false, so that this holds for none.
        if len(starts) and not (starts.min() >= 0 and durations.min() >= 0 and ends.max() < _LATEST):
            good = (starts >= 0) & (durations >= 0) & (ends < _LATEST)
            starts, ends = np.where(good, starts, 0), np.where(good, ends, 0)
            lost = f"{np.count_nonzero(~good)} events at no time"
            self.damage.append(Damage(entry.name, None, "row", lost))
        if entry.source == "horovod" and entry.time:
            # An early writer gave readiness ticks the time until now as their duration.
            ends = np.maximum(np.minimum(ends, entry.time), starts)
        events = Events(
            entry.worker,
            entry.node,
            entry.source or "python",
            _objects(columns.phases),
            _objects(columns.names),
            np.rint(starts).astype(np.int64),
            np.rint(ends).astype(np.int64),
            _objects(columns.args),
        )
        return events if good is None else events.take(good)


class _Mapper:
    """Makes events of rows: keeps base time, phases and open events of one file."""

    def __init__(self, stacks: dict[str, list[tuple[str, float, Args | None]]], base: float = 0.0) -> None:
        self.unpaired = 0
        self._base = base
        self._phases: dict[int | str | None, str] = {}
        self._stacks = stacks

    def take(self, rows: Sequence[Row]) -> _Columns:
        columns = _Columns()
        start = 0
        for index in [index for index, row in enumerate(rows) if row.ph != "X"]:
            if index > start:
                self._complete(rows[start:index], columns)
            self._other(rows[index], columns)
            start = index + 1
        if start < len(rows):
            self._complete(rows[start:], columns)
        return columns

    def _other(self, row: Row, columns: _Columns) -> None:
        if row.ph == "M":
            self._learn(row)
        elif row.ph == "B":
            self._stacks[self._phase(row)].append((row.name, self._base + row.ts, row.args))
        elif row.ph == "E":
            self._close(row, columns)

    def _complete(self, run: Sequence[Row], columns: _Columns) -> None:
        phases, base = self._phases, self._base
        try:
            columns.phases += [phases[row.pid] for row in run]
        except KeyError:
            columns.phases += [self._phase(row) for row in run]
        columns.names += [row.name for row in run]
        columns.starts += [base + row.ts for row in run]
        columns.durations += [row.dur for row in run]
        columns.args += [row.args for row in run]

    def _close(self, row: Row, columns: _Columns) -> None:
        """An end: the innermost open event of its phase is complete."""
        phase = self._phase(row)
        end = self._base + row.ts
        if not self._stacks[phase]:
            self.unpaired += 1
            return
        name, start, args = self._stacks[phase].pop()
        if end < start:
            self.unpaired += 1
            return
        columns.phases.append(phase)
        columns.names.append(name)
        columns.starts.append(start)
        columns.durations.append(end - start)
        columns.args.append(args or row.args)

    def _phase(self, row: Row) -> str:
        return self._phases.get(row.pid, UNKNOWN_PHASE)

    def _learn(self, row: Row) -> None:
        if row.name != "process_name" or row.args is None:
            return
        start = row.args.start_time_since_epoch_in_micros
        if start is not None and math.isfinite(start):
            self._base = start
        elif isinstance(row.args.name, str):
            self._phases[row.pid] = row.args.name


def _objects(values: list[Any]) -> NDArray[np.object_]:
    column = np.empty(len(values), np.object_)  # holds `None` everywhere
    if values.count(None) < len(values):
        column[:] = values
    return column
