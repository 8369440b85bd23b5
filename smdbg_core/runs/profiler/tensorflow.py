"""TensorFlow's detailed profiling: gzipped Chrome traces, placed in time by a file beside them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from smdbg_core.runs.damage import Damage
from smdbg_core.runs.profiler.events import Events, EventsReader, Row
from smdbg_core.runs.profiler.files import ProfilerFile, worker_of
from smdbg_core.storage import File

__all__ = ["TensorflowPlace", "TensorflowReader", "place_of"]

_METADATA = re.compile(r"(.+)_(\d{16})_(\d{16})\.metadata", re.DOTALL)
_LARGEST: Final = 1 << 29
"""Bytes of JSON that are decoded at most; a few kilobytes can claim to unpack to terabytes."""

_BLOCK: Final = 1 << 20


class TensorflowPlace(NamedTuple):
    """When and where the traces of one folder were recorded."""

    folder: str
    start: int
    """Microseconds since the epoch, to which the times in the trace are relative."""

    node: str
    worker: str

    def apply(self, file: ProfilerFile) -> ProfilerFile:
        """The trace file, placed."""
        return file._replace(time=self.start, node=self.node, worker=self.worker)


class _Trace(msgspec.Struct, gc=False):
    traceEvents: list[Row]  # noqa: N815 - the format's name


def place_of(name: str) -> TensorflowPlace | None:
    """What a `.metadata` file says by its name, `None` for any other file."""
    folder, _, base = name.rpartition("/")
    matched = _METADATA.fullmatch(base)
    return TensorflowPlace(folder, int(matched[2]), *worker_of(matched[1])) if matched else None


class TensorflowReader:
    """Reads gzipped traces.

    Attributes:
        damage: What could not be read, one entry for each place.
    """

    def __init__(self) -> None:
        self.damage: list[Damage] = []
        self._decoder = msgspec.json.Decoder(_Trace)
        self._events = EventsReader()

    def read(self, entry: ProfilerFile, file: File) -> Iterator[Events]:
        """The events of one trace; without a place in time they begin at zero."""
        content = self._unpack(entry.name, file)
        if content is None:
            return
        try:
            rows = self._decoder.decode(content).traceEvents
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            self.damage.append(Damage(entry.name, None, "not JSON", str(error)))
            return
        events = self._events.columns(rows, entry, base=entry.time)
        self.damage += self._events.damage
        self._events.damage.clear()
        if events:
            yield events

    def _unpack(self, name: str, file: File) -> bytearray | None:
        unpacker = zlib.decompressobj(wbits=31)
        content = bytearray()
        offset = 0
        try:
            while offset < file.size and not unpacker.eof:
                chunk = file.read(offset, _BLOCK)
                if not chunk:
                    break
                offset += len(chunk)
                content += unpacker.decompress(chunk, _LARGEST - len(content) + 1)
                if len(content) > _LARGEST:
                    self.damage.append(Damage(name, None, "length", f"unpacks to more than {_LARGEST} bytes"))
                    return None
        except zlib.error as error:
            self.damage.append(Damage(name, offset, "not gzip", str(error)))
            return None
        if not unpacker.eof:
            self.damage.append(Damage(name, offset, "cut", "the compressed data is not complete"))
            return None
        return content
