"""Measuring: a pure function from plain data to statistics, for any executor.

Three ways lead through it. Small tensors of files that are read whole are joined, over all files of a
batch, and measured together. Large ones stream through a buffer that stays in the cache, unless a
statistic needs the whole array. Tensors without a raw value are measured from their saved reductions.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from smdbg_core.discovery.loader import import_file
from smdbg_core.engine.plan import FileTask, Item, Reference
from smdbg_core.engine.recent import RecentArrays
from smdbg_core.engine.reductions import derive
from smdbg_core.errors import DataError
from smdbg_core.runs.damage import damage_of
from smdbg_core.runs.trial import Damage, RecordError
from smdbg_core.runs.trial.dtypes import STORED_AS, widened
from smdbg_core.runs.trial.event_file import EventFileReader
from smdbg_core.runs.trial.payload import Payload, locate
from smdbg_core.runs.trial.records import START
from smdbg_core.runs.views import Comparison, Failed, Measurement
from smdbg_core.stats import BLOCK, FusedPass, fused, fused_segments, lookup
from smdbg_core.storage import File

__all__ = ["Measured", "MeasuredFile", "measure"]


class MeasuredFile(NamedTuple):
    """What came of one task."""

    measurements: list[Measurement | None]
    """`None` for a damaged record."""

    damage: list[Damage]
    start: bytes
    """The first bytes of the file, with the time when it was written; empty where they are not at hand."""


Measured: TypeAlias = list[MeasuredFile]
"""One for each task."""

_SMALL = 2**15
"""Tensors of up to this many bytes are joined with others."""

_RECENT = 2**24
"""Bytes of whole tensors that each thread keeps, to compare the next step with."""

_BUFFER = BLOCK * 4
"""Bytes that are read at once, one block of float32: measured while it is in the second-level cache."""

_ALIGNED = 8192
"""Tensors are read in equal parts of a multiple of so many bytes, rather than in whole buffers and a rest."""


class _Group(NamedTuple):
    """Small tensors of one file that are measured together: one type, the same statistics."""

    key: tuple[int, tuple[str, ...]]
    """Number of the type, and names of the statistics."""

    places: list[tuple[int, tuple[int, ...], str]]
    """Items, their shapes and types."""

    slices: list[slice]
    """Their bytes in the file."""

    sizes: list[int]


class _Joined(NamedTuple):
    """Groups of one key from all files of a batch."""

    contents: list[bytes]
    sizes: list[int]
    groups: list[tuple[int, _Group]]
    """Task and group."""


def measure(tasks: Sequence[FileTask]) -> Measured:
    """Measure the items of event files; what is damaged costs only itself."""
    for module, file in {module for task in tasks for module in task.modules}:
        if module not in sys.modules:
            _bring(module, file)
    with np.errstate(all="ignore"):
        return _Measuring(tasks).run()


def _bring(module: str, file: str) -> None:
    """Import the module of a plugin's statistic: by name, or by file where the configuration named a file."""
    with suppress(Exception):  # the rule is told that the statistic is unknown
        try:
            import_module(module)
        except ModuleNotFoundError:
            import_file(module, file)


class _Measuring:
    """One call of `measure`."""

    def __init__(self, tasks: Sequence[FileTask]) -> None:
        self._tasks = tasks
        self._results: Measured = []
        self._joined: dict[tuple[int, tuple[str, ...]], _Joined] = defaultdict(lambda: _Joined([], [], []))
        self._groupings: dict[int, tuple[Any, list[_Group], list[tuple[int, Payload | RecordError]]]] = {}

    def run(self) -> Measured:
        for number, task in enumerate(self._tasks):
            measurements: list[Measurement | None] = [None] * len(task.items)
            damage: list[Damage] = []
            self._results.append(MeasuredFile(measurements, damage, b""))
            try:
                with task.storage.open(task.event_file) as file:
                    self._measure_file(number, task, file)
                    if file.holds(0, START):
                        start = file.read(0, START)
                        self._results[number] = MeasuredFile(measurements, damage, start)
            except DataError as error:
                damage.append(damage_of(error, task.event_file).damage)
            except OSError as error:
                damage.append(Damage(task.event_file, None, "unreadable", error.strerror or str(error)))
        self._measure_joined()
        return self._results

    def _measure_file(self, number: int, task: FileTask, file: File) -> None:
        measurements, damage, _ = self._results[number]
        spans = [span for item in task.items for _, span in item.reductions]
        file.expect([*(span for _, span in task.records), *spans])
        data, payloads = _reader(task.storage.uri).locate(file, task.records)
        content = None if data is None else memoryview(data)
        groups, alone = self._grouped(task, payloads)
        for group in groups:
            joined = self._joined[group.key]
            if content is None:
                joined.contents.extend(file.read(part.start, part.stop - part.start) for part in group.slices)
            else:
                joined.contents.append(b"".join(map(content.__getitem__, group.slices)))
            joined.sizes.extend(group.sizes)
            joined.groups.append((number, group))
        for index, payload in alone:
            item = task.items[index]
            try:
                if isinstance(payload, RecordError):
                    raise payload
                if payload.values is not None or item.wanted.extras or item.wanted.compares:
                    references = task.references[index] if task.references else ()
                    measurements[index] = _whole(file, payload, item, references, task)
                else:
                    row = self._stream(file, payload, item.wanted.fused)
                    measurements[index] = _measurement(payload, item.wanted.fused, row)
            except RecordError as error:
                damage.append(error.damage)
        for index, item in enumerate(task.items):
            if item.span is None:
                try:
                    measurements[index] = _from_reductions(file, item)
                except RecordError as error:
                    damage.append(error.damage)

    def _grouped(
        self, task: FileTask, payloads: Sequence[Payload | RecordError]
    ) -> tuple[list[_Group], list[tuple[int, Payload | RecordError]]]:
        """The small tensors of a file in groups, and the others; files of one layout share the answer."""
        known = self._groupings.get(id(payloads))
        if known is not None and known[0] is payloads:
            return known[1], known[2]
        groups: dict[tuple[int, tuple[str, ...]], _Group] = {}
        alone: list[tuple[int, Payload | RecordError]] = []
        for index, payload in zip(task.raw, payloads, strict=True):
            wanted = task.items[index].wanted
            if (
                isinstance(payload, RecordError)
                or payload.values is not None
                or payload.nbytes > _SMALL
                or wanted.extras
                or wanted.compares
            ):
                alone.append((index, payload))
                continue
            key = payload.number, wanted.fused
            group = groups.setdefault(key, _Group(key, [], [], []))
            group.places.append((index, payload.shape, payload.dtype_name))
            group.slices.append(slice(payload.offset, payload.offset + payload.nbytes))
            group.sizes.append(payload.nbytes // payload.dtype.itemsize)
        self._groupings[id(payloads)] = payloads, list(groups.values()), alone
        return list(groups.values()), alone

    def _measure_joined(self) -> None:
        for (number, names), joined in self._joined.items():
            content = b"".join(joined.contents)
            values = widened(np.frombuffer(content, STORED_AS[number]), number)
            rows = iter(fused_segments(values, joined.sizes, names))
            place = names.index("non_finite")
            for task, group in joined.groups:
                measurements = self._results[task].measurements
                for (index, shape, dtype), row in zip(group.places, rows, strict=False):
                    measurements[index] = Measurement(shape, dtype, int(row[place]), row)

    def _stream(self, file: File, payload: Payload, names: tuple[str, ...]) -> tuple[float, ...]:
        """The fused statistics of a tensor that is never held whole."""
        one_pass = _SCRATCH.passes.get(names)
        if one_pass is None:
            one_pass = _SCRATCH.passes[names] = FusedPass(names)
        one_pass.reset()
        parts = -(-payload.nbytes // _BUFFER)
        size = -(-payload.nbytes // parts // _ALIGNED) * _ALIGNED
        buffer, done = _SCRATCH.buffer[:size], 0
        while done < payload.nbytes:
            chunk = buffer[: payload.nbytes - done]
            got = file.read_into(payload.offset + done, chunk)
            if got < len(chunk):
                raise RecordError(file.name, payload.offset + done, "cut", "the file has become shorter")
            done += got
            one_pass.add_block(widened(np.frombuffer(chunk, payload.dtype), payload.number), overwrite=True)
        return one_pass.result()


class _Scratch(threading.local):
    """Memory that each thread uses again: fresh pages cost as much as measuring what is read into them."""

    def __init__(self) -> None:
        self.buffer = np.empty(_BUFFER, np.uint8).data
        self.passes: dict[tuple[str, ...], FusedPass] = {}
        self.recent = RecentArrays(_RECENT)


_SCRATCH = _Scratch()


@lru_cache(maxsize=8)
def _reader(uri: str) -> EventFileReader:
    """What was learnt of the files of a trial serves the next batch; it is checked wherever it is used."""
    return EventFileReader()


def _measurement(payload: Payload, names: tuple[str, ...], row: tuple[float, ...]) -> Measurement:
    return Measurement(payload.shape, payload.dtype_name, int(row[names.index("non_finite")]), row)


def _read(file: File, payload: Payload, key: Hashable) -> NDArray[Any]:
    """The whole tensor; it is kept under the key for a while."""
    content = _SCRATCH.recent.memory(payload.nbytes)
    if file.read_into(payload.offset, content) < payload.nbytes:
        raise RecordError(file.name, payload.offset, "cut", "the file has become shorter")
    values = payload.array(content)
    values.flags.writeable = False
    _SCRATCH.recent.put(key, values, content)
    return values


def _whole(
    file: File, payload: Payload, item: Item, references: Sequence[Sequence[Reference]], task: FileTask
) -> Measurement:
    """Measure a tensor for which a statistic needs the whole array."""
    key = task.session, task.storage.uri, file.name, item.span
    values = _read(file, payload, key)
    _SCRATCH.recent.pin(key)
    numeric = values.dtype.kind in "biufc"
    row = fused(values, item.wanted.fused) if numeric else None
    extras = tuple(_call(values, *extra) for extra in item.wanted.extras)
    compares = tuple(
        _compare(values, item, one, found, task.session)
        for one, found in zip(
            item.wanted.compares, references or [()] * len(item.wanted.compares), strict=True
        )
    )
    non_finite = int(row[item.wanted.fused.index("non_finite")]) if row else 0
    return Measurement(payload.shape, payload.dtype_name, non_finite, row, extras, compares)


def _call(values: NDArray[Any], name: Hashable, *args: Any) -> Any:
    """A statistic, or what it raised: that belongs to the rule which asked for it."""
    try:
        found = lookup(str(name)).function(values, *args)
        # The memory behind the values is used again; what a statistic returns must not change with it.
        return found.copy() if isinstance(found, np.ndarray) and found.base is not None else found
    except Exception as error:  # noqa: BLE001 - isolation: statistics may be a plugin's
        return Failed(type(error).__name__, str(error))


def _compare(
    values: NDArray[Any], item: Item, key: tuple[Any, ...], references: Sequence[Reference], session: int
) -> tuple[Comparison, ...]:
    found = []
    for reference in references:
        place = session, reference.storage.uri, reference.event_file, reference.span
        other = _SCRATCH.recent.get(place)
        if other is None:
            try:
                with reference.storage.open(reference.event_file) as file:
                    file.expect([reference.span])
                    payload = _reader(reference.storage.uri).locate_one(file, item.name, reference.span)
                    other = _read(file, payload, place)
            except (DataError, OSError):
                continue  # named as damage of its own file when that is measured
        found.append(Comparison(reference.mode_step, reference.run, _call(values, key[0], other, *key[1])))
    return tuple(found)


def _from_reductions(file: File, item: Item) -> Measurement:
    saved = {}
    for reduction, span in item.reductions:
        payload = locate(file, f"smdebug/reductions/{reduction}/{item.name}", span)
        saved[reduction] = float(payload.array(file.read(payload.offset, payload.nbytes)).reshape(-1)[0])
    row = derive(item.wanted.fused, saved, item.shape)
    non_finite = int(row[item.wanted.fused.index("non_finite")])
    return Measurement(item.shape or (), "float64", non_finite, row, from_reductions=True)
