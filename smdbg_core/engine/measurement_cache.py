"""What was measured of event files, kept between evaluations.

Statistics never depend on thresholds, so that a second evaluation of the same files with other
parameters, or one that begins again after a crash, measures nothing twice. An entry is worth something
only for the very file that was measured: its size, time of change and inode, or its entity tag, are part
of the key. Only plain numbers, texts and arrays are kept, in MessagePack; anything else is measured anew.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from smdbg_core.engine.cached_values import UnstorableError, decoded, encoded, plain_number, statistic_key
from smdbg_core.engine.plan import FileTask, Item, Reference
from smdbg_core.runs.views import Comparison, Measurement
from smdbg_core.stats.fused import FUSED_VERSION
from smdbg_core.storage import Storage, Version

__all__ = ["MeasurementCache", "Remembered", "cache_folder"]

LAYOUT: Final = 1
"""Version of what is written; caches of another one are emptied."""

LIMIT: Final = 1 << 30
"""Bytes that all caches in one folder may take; the longest unused go first."""

_FLUSH_AFTER: Final = 1.0
"""Seconds of work that a crash may cost."""

_PENDING: Final = 8 << 20
"""Bytes that wait to be written."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS measured (
    place TEXT PRIMARY KEY,
    version TEXT NOT NULL,
    content BLOB NOT NULL
) WITHOUT ROWID;
"""


class Remembered(NamedTuple):
    """What is known of one event file."""

    measurements: list[Measurement | None]
    start: bytes
    """The first bytes of the file."""


class _Value(msgspec.Struct, array_like=True):
    """What was measured of one tensor."""

    span: tuple[int, int] | None
    reductions: tuple[tuple[str, tuple[int, int]], ...]
    declared_shape: tuple[int, ...] | None
    shape: tuple[int, ...]
    dtype: str
    non_finite: int
    names: tuple[str, ...]
    """Statistics of the fused pass."""

    row: tuple[int | float, ...] | None
    """Their values; `None` for what are no numbers."""

    extras: dict[str, Any]
    compares: dict[str, Any]
    from_reductions: bool


class _Content(msgspec.Struct, array_like=True):
    start: bytes
    values: dict[str, _Value]


class MeasurementCache:
    """The measurements of one trial.

    Whatever goes wrong with the cache itself costs time, never a verdict.

    Args:
        folder: Where caches lie; it is made when something is kept.
        uri: The trial.
        limit: Bytes that all caches in the folder may take.

    Attributes:
        hits: Event files that were not read.
        warnings: What users should know.
    """

    def __init__(self, folder: Path, uri: str, *, limit: int = LIMIT) -> None:
        self.hits = 0
        self.warnings: list[str] = []
        self._folder = folder
        place = uri if "://" in uri else os.path.realpath(uri)
        name = hashlib.sha256(place.encode(errors="surrogatepass")).hexdigest()[:32]
        self._file = folder / f"{name}.sqlite3"
        self._limit = limit
        self._versions: dict[tuple[str, str], Version | None] = {}
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._pending: dict[str, tuple[str, bytes]] = {}
        self._pending_bytes = 0
        self._flushed = time.monotonic()
        self._room = True
        self._decode = msgspec.msgpack.Decoder(_Content).decode

    def find(self, task: FileTask) -> Remembered | None:
        """What a task would measure, if all of it is known."""
        self._versions.clear()
        content = self._load(task.event_file, self._version_of(task.storage, task.event_file))
        if content is None:
            return None
        measurements: list[Measurement | None] = []
        for index, item in enumerate(task.items):
            value = content.values.get(item.name)
            if value is None or (value.span, value.reductions, value.declared_shape) != (
                item.span,
                item.reductions,
                item.shape,
            ):
                return None
            references = task.references[index] if task.references else ()
            known = self._measurement(value, item, references)
            if known is None:
                return None
            measurements.append(known)
        self.hits += 1
        return Remembered(measurements, content.start)

    def store(self, task: FileTask, measurements: Sequence[Measurement | None], start: bytes) -> None:
        """Keep what a task has measured, beside what is known of the same file."""
        self._versions.clear()
        version = self._version_of(task.storage, task.event_file)
        if version is None or not self._room or any(one is None for one in measurements):
            return
        content = self._load(task.event_file, version) or _Content(start, {})
        try:
            for index, (item, measurement) in enumerate(zip(task.items, measurements, strict=True)):
                if measurement is not None:
                    references = task.references[index] if task.references else ()
                    value = self._value(item, measurement, references)
                    content.values[item.name] = _joined(content.values.get(item.name), value)
            encoded = msgspec.msgpack.encode(content)
        except (UnstorableError, OverflowError):
            return
        self._pending[_text(task.event_file)] = _stamp(version), encoded
        self._pending_bytes += len(encoded)
        if time.monotonic() - self._flushed >= _FLUSH_AFTER or self._pending_bytes >= _PENDING:
            self.flush()

    def flush(self) -> None:
        """Write what was stored; while another process writes, it goes on waiting."""
        self._flushed = time.monotonic()
        connection = self._opened(create=True) if self._pending else None
        if connection is None:
            return
        rows = [(place, stamp, content) for place, (stamp, content) in self._pending.items()]
        try:
            with connection:
                connection.executemany("INSERT OR REPLACE INTO measured VALUES (?, ?, ?)", rows)
            self._room = self._file.stat().st_size < self._limit
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                self._give_up(error)
            elif self._pending_bytes < _PENDING:
                return
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
        self._pending.clear()
        self._pending_bytes = 0

    def close(self) -> None:
        """Keep what was stored, and make room where caches have grown beyond the limit."""
        self.flush()
        self._closed = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._prune()

    def _measurement(
        self, value: _Value, item: Item, references: Sequence[Sequence[Reference]]
    ) -> Measurement | None:
        """A measurement with all that is wanted, `None` if something is not known."""
        wanted, row = item.wanted, value.row
        extras: tuple[Any, ...] = ()
        compares: tuple[tuple[Comparison, ...], ...] = ()
        try:
            if row is not None and value.names != wanted.fused:
                row = tuple(row[value.names.index(name)] for name in wanted.fused)
            if wanted.extras:
                extras = tuple(
                    decoded(value.extras[statistic_key(*extra)], extra[0]) for extra in wanted.extras
                )
            if wanted.compares:
                found = zip(wanted.compares, references or [()] * len(wanted.compares), strict=True)
                compares = tuple(self._comparisons(value, key, others) for key, others in found)
        except (KeyError, ValueError, UnstorableError):
            return None
        return Measurement(
            value.shape, value.dtype, value.non_finite, row, extras, compares, value.from_reductions
        )

    def _value(
        self, item: Item, measurement: Measurement, references: Sequence[Sequence[Reference]]
    ) -> _Value:
        wanted = item.wanted
        row = measurement.row
        return _Value(
            item.span,
            item.reductions,
            item.shape,
            measurement.shape,
            measurement.dtype,
            measurement.non_finite,
            wanted.fused,
            None if row is None else tuple(map(plain_number, row)),
            {
                statistic_key(*extra): encoded(one, extra[0])
                for extra, one in zip(wanted.extras, measurement.extras, strict=False)
            },
            {
                self._compare_key(key, found): [
                    (one.mode_step, one.run, encoded(one.value, key[0])) for one in compared
                ]
                for key, found, compared in zip(
                    wanted.compares,
                    references or [()] * len(wanted.compares),
                    measurement.compares,
                    strict=False,
                )
                # What could not be read this time may be there the next.
                if len(compared) == len(found)
            },
            measurement.from_reductions,
        )

    def _comparisons(
        self, value: _Value, key: tuple[Any, ...], references: Sequence[Reference]
    ) -> tuple[Comparison, ...]:
        known = value.compares[self._compare_key(key, references)]
        return tuple(Comparison(step, run, decoded(one, key[0])) for step, run, one in known)

    def _compare_key(self, key: tuple[Any, ...], references: Sequence[Reference]) -> str:
        """A comparison is what it is only beside the very files that it was made with."""
        parts = [statistic_key(key[0], *key[1])]
        for reference in references:
            step, run, storage, event_file, span = reference
            version = self._version_of(storage, event_file)
            if version is None:
                raise UnstorableError
            parts.append(repr((step, run, storage.uri, event_file, span, *version)))
        return "\n".join(parts)

    def _version_of(self, storage: Storage, name: str) -> Version | None:
        """The version of a file; while one task is looked at, each file is asked for once."""
        key = storage.uri, name
        if key not in self._versions:
            self._versions[key] = storage.version(name)
        return self._versions[key]

    def _load(self, place: str, version: Version | None) -> _Content | None:
        if version is None:
            return None
        place, stamp = _text(place), _stamp(version)
        found = self._pending.get(place)
        connection = self._opened(create=False) if found is None else None
        query = "SELECT version, content FROM measured WHERE place = ?"
        try:
            if connection is not None:
                found = connection.execute(query, (place,)).fetchone()
            return self._decode(found[1]) if found is not None and found[0] == stamp else None
        except (sqlite3.Error, msgspec.MsgspecError, TypeError):
            return None

    def _opened(self, *, create: bool) -> sqlite3.Connection | None:
        """The connection, `None` if there is no cache."""
        if self._connection is not None or self._closed or not (create or self._file.exists()):
            return self._connection
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._connection = self._connect()
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        for attempt in (1, 2):
            connection = sqlite3.connect(self._file, timeout=1)
            try:
                # A cache may be lost; it need not wait for the disk.
                connection.execute("PRAGMA synchronous = OFF")
                if connection.execute("PRAGMA user_version").fetchone()[0] != LAYOUT:
                    connection.execute("DROP TABLE IF EXISTS measured")
                    connection.execute(f"PRAGMA user_version = {LAYOUT}")
                connection.execute(_SCHEMA)
                os.utime(self._file)
            except sqlite3.OperationalError:
                connection.close()
                raise
            except sqlite3.DatabaseError:
                connection.close()
                if attempt == 2:
                    raise
                self._file.unlink()  # damaged: nothing in it is worth more than measuring again
            else:
                return connection
        raise AssertionError("the second attempt returns or raises")

    def _give_up(self, error: Exception) -> None:
        self.warnings.append(f"measurements are not kept for next time: {self._file}: {error}")
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._closed = True

    def _prune(self) -> None:
        """Remove the caches that were not used for the longest time, until the others fit."""
        with suppress(OSError):
            files = [(file.stat(), file) for file in self._folder.glob("*.sqlite3")]
            total = sum(status.st_size for status, _ in files)
            for status, file in sorted(files, key=lambda one: one[0].st_mtime):
                if total <= self._limit:
                    break
                file.unlink()
                total -= status.st_size


def cache_folder() -> Path:
    """The folder for what can be made again: `smdbg` below the XDG cache folder."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"
    return root / "smdbg"


def _source(value: _Value) -> tuple[Any, ...]:
    return value.span, value.reductions, value.declared_shape


def _joined(known: _Value | None, new: _Value) -> _Value:
    """What is known of a tensor from several scans; a tensor that lies elsewhere is another one."""
    if known is None or _source(known) != _source(new):
        return new
    names, row = new.names, new.row
    if row is not None and known.row is not None:
        fused = dict(zip(known.names, known.row, strict=True)) | dict(zip(names, row, strict=True))
        names, row = tuple(fused), tuple(fused.values())
    return msgspec.structs.replace(
        new,
        names=names,
        row=row,
        extras=known.extras | new.extras,
        compares=known.compares | new.compares,
    )


def _stamp(version: Version) -> str:
    return f"{version.size} {version.token} {FUSED_VERSION}"


def _text(place: str) -> str:
    """Names of files may hold bytes that are no text; SQLite wants text."""
    return place.encode(errors="surrogatepass").hex() if not place.isascii() else place
