"""Measuring: a pure function from plain data to statistics, for any executor.

Three ways lead through it. Small tensors of files that are read whole are joined, over all files of a
batch, and measured together. Large ones stream through a buffer that stays in the cache, unless a
statistic needs the whole array. Tensors without a raw value are measured from their saved reductions.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from smdbg_core.engine.plan import FileTask, Item, Reference
from smdbg_core.engine.reductions import derive
from smdbg_core.errors import DataError
from smdbg_core.runs.trial import Damage, RecordError
from smdbg_core.runs.trial.dtypes import widened
from smdbg_core.runs.trial.event_file import EventFileReader
from smdbg_core.runs.trial.payload import Payload, damage_of, locate
from smdbg_core.runs.views import Comparison, Failed, Measurement
from smdbg_core.stats import BLOCK, FusedPass, fused, fused_segments, lookup
from smdbg_core.storage import LocalFile, LocalStorage, open_storage

__all__ = ["Measured", "measure"]

Measured: TypeAlias = list[tuple[list[Measurement | None], list[Damage]]]
"""For each task, its measurements (`None` for a damaged record) and the damage that was met."""

_SMALL = 2**15
"""Tensors of up to this many bytes are joined with others."""

_BUFFER = BLOCK * 4
"""One block of float32: what is read is measured while it is in the second-level cache."""


class _Joined(NamedTuple):
    """Small tensors that are measured together."""

    contents: list[bytes | memoryview]
    sizes: list[int]
    places: list[tuple[int, int, Payload]]
    """Task, item, and where it lies."""


def measure(tasks: Sequence[FileTask]) -> Measured:
    """Measure the items of event files; what is damaged costs only itself."""
    with np.errstate(all="ignore"):
        return _Measuring(tasks).run()


class _Measuring:
    """One call of `measure`."""

    def __init__(self, tasks: Sequence[FileTask]) -> None:
        self._tasks = tasks
        self._results: Measured = []
        self._joined: dict[tuple[Any, ...], _Joined] = defaultdict(lambda: _Joined([], [], []))

    def run(self) -> Measured:
        for number, task in enumerate(self._tasks):
            measurements: list[Measurement | None] = [None] * len(task.items)
            damage: list[Damage] = []
            self._results.append((measurements, damage))
            try:
                with _storage(task.uri).open(task.event_file) as file:
                    self._measure_file(number, task, file)
            except DataError as error:
                damage.append(damage_of(error, task.event_file).damage)
            except OSError as error:
                damage.append(Damage(task.event_file, None, "unreadable", error.strerror or str(error)))
        self._measure_joined()
        return self._results

    def _measure_file(self, number: int, task: FileTask, file: LocalFile) -> None:
        measurements, damage = self._results[number]
        data, payloads = _reader(task.uri).locate(file, task.records)
        content = None if data is None else memoryview(data)
        for index, payload in zip(task.raw, payloads, strict=True):
            try:
                if isinstance(payload, RecordError):
                    raise payload
                references = task.references[index] if task.references else ()
                measurements[index] = self._measure_item(file, content, payload, (number, index), references)
            except RecordError as error:
                damage.append(error.damage)
        for index, item in enumerate(task.items):
            if item.span is None:
                try:
                    measurements[index] = _from_reductions(file, item)
                except RecordError as error:
                    damage.append(error.damage)

    def _measure_item(
        self,
        file: LocalFile,
        content: memoryview | None,
        payload: Payload,
        place: tuple[int, int],
        references: Sequence[Sequence[Reference]],
    ) -> Measurement | None:
        """Measure a tensor now, or join it to those that are measured later."""
        item = self._tasks[place[0]].items[place[1]]
        if payload.values is not None or item.wanted.extras or item.wanted.compares:
            return _whole(file, payload, item, references)
        if payload.nbytes > _SMALL:
            return _measurement(payload, item, self._stream(file, payload, item.wanted.fused))
        joined = self._joined[payload.number, item.wanted.fused]
        end = payload.offset + payload.nbytes
        part = (
            content[payload.offset : end]
            if content is not None
            else file.read(payload.offset, payload.nbytes)
        )
        joined.contents.append(part)
        joined.sizes.append(payload.nbytes // payload.dtype.itemsize)
        joined.places.append((*place, payload))
        return None

    def _measure_joined(self) -> None:
        for (_, names), joined in self._joined.items():
            payload = joined.places[0][2]
            values = payload._replace(shape=(-1,)).array(b"".join(joined.contents))
            rows = fused_segments(values, joined.sizes, names)
            place = names.index("non_finite")
            for (task, index, payload), row in zip(joined.places, rows, strict=True):
                self._results[task][0][index] = Measurement(
                    payload.shape, payload.dtype_name, int(row[place]), row
                )

    def _stream(self, file: LocalFile, payload: Payload, names: tuple[str, ...]) -> tuple[float, ...]:
        """The fused statistics of a tensor that is never held whole."""
        one_pass = _SCRATCH.passes.get(names)
        if one_pass is None:
            one_pass = _SCRATCH.passes[names] = FusedPass(names)
        one_pass.reset()
        buffer, done = _SCRATCH.buffer, 0
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


_SCRATCH = _Scratch()


@lru_cache(maxsize=8)
def _storage(uri: str) -> LocalStorage:
    return open_storage(uri)


@lru_cache(maxsize=8)
def _reader(uri: str) -> EventFileReader:
    """What was learnt of the files of a trial serves the next batch; it is checked wherever it is used."""
    return EventFileReader()


def _measurement(payload: Payload, item: Item, row: tuple[float, ...]) -> Measurement:
    return Measurement(
        payload.shape, payload.dtype_name, int(row[item.wanted.fused.index("non_finite")]), row
    )


def _read(file: LocalFile, payload: Payload) -> NDArray[Any]:
    content = bytearray(payload.nbytes)
    if file.read_into(payload.offset, memoryview(content)) < payload.nbytes:
        raise RecordError(file.name, payload.offset, "cut", "the file has become shorter")
    values = payload.array(content)
    values.flags.writeable = False
    return values


def _whole(
    file: LocalFile, payload: Payload, item: Item, references: Sequence[Sequence[Reference]]
) -> Measurement:
    """Measure a tensor for which a statistic needs the whole array."""
    values = _read(file, payload)
    numeric = values.dtype.kind in "biufc"
    row = fused(values, item.wanted.fused) if numeric else None
    extras = tuple(_call(values, *extra) for extra in item.wanted.extras)
    compares = tuple(
        _compare(values, item, key, found)
        for key, found in zip(
            item.wanted.compares, references or [()] * len(item.wanted.compares), strict=True
        )
    )
    non_finite = int(row[item.wanted.fused.index("non_finite")]) if row else 0
    return Measurement(payload.shape, payload.dtype_name, non_finite, row, extras, compares)


def _call(values: NDArray[Any], name: Hashable, *args: Any) -> Any:
    """A statistic, or what it raised: that belongs to the rule which asked for it."""
    try:
        return lookup(str(name)).function(values, *args)
    except Exception as error:  # noqa: BLE001 - isolation: statistics may be a plugin's
        return Failed(type(error).__name__, str(error))


def _compare(
    values: NDArray[Any], item: Item, key: tuple[Any, ...], references: Sequence[Reference]
) -> tuple[Comparison, ...]:
    found = []
    for reference in references:
        try:
            with _storage(reference.uri).open(reference.event_file) as file:
                other = _read(file, locate(file, item.name, reference.span))
        except (DataError, OSError):
            continue  # named as damage of its own file when that is measured
        found.append(Comparison(reference.mode_step, reference.run, _call(values, key[0], other, *key[1])))
    return tuple(found)


def _from_reductions(file: LocalFile, item: Item) -> Measurement:
    saved = {}
    for reduction, span in item.reductions:
        payload = locate(file, f"smdebug/reductions/{reduction}/{item.name}", span)
        saved[reduction] = float(_read(file, payload).reshape(-1)[0])
    row = derive(item.wanted.fused, saved)
    non_finite = int(row[item.wanted.fused.index("non_finite")])
    return Measurement(item.shape or (), "float64", non_finite, row, from_reductions=True)
