"""Event files: many tensors of one file, found with as little work as possible.

The headers of a record repeat from step to step but for the wall time and the step. What was decoded
once is remembered for the same tensor, and taken where all of its bytes are equal again. For files of one
layout that are read whole, the headers of all records are a template, compared at once. Where a byte
differs the record is decoded, so that what was learnt can never stand in for something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdbg_core.runs.damage import RecordError
from smdbg_core.runs.trial.index import Span
from smdbg_core.runs.trial.payload import Payload, locate, locate_in
from smdbg_core.runs.trial.records import CONSTANT_FOOTER, FOOTER, HEADER
from smdbg_core.storage import File

__all__ = ["EventFileReader", "Record"]

WHOLE = 2**20
"""Files up to this size are read whole."""

_TEMPLATES = 32
"""How many templates are kept; one takes some ten bytes for each byte of headers in a file."""

_HEADS = 4096
"""How many headers of records are kept."""

Record = tuple[str, Span]
"""Name of a tensor, and where the index says that its record lies."""

_Read = Callable[[int, int], bytes | bytearray]
"""Reads from an offset so many bytes."""


class _Template(NamedTuple):
    records: tuple[Record, ...]
    positions: NDArray[np.intp]
    expected: NDArray[np.uint8]
    payloads: list[Payload | RecordError]


class _Head(NamedTuple):
    """The headers of a record, but for its wall time and step."""

    begin: bytes
    """Length, its checksum, and the tag of the wall time."""

    after_step: int
    rest: bytes
    """From there up to the elements."""

    payload: Payload


class EventFileReader:
    """Finds tensors in event files; one object for files of the same trial."""

    def __init__(self) -> None:
        self._templates: dict[int, _Template] = {}
        self._heads: dict[tuple[str, int], _Head] = {}
        self._before: tuple[Record, ...] | None = None

    def locate(
        self, file: File, records: tuple[Record, ...]
    ) -> tuple[bytearray | None, Sequence[Payload | RecordError]]:
        """Find and check records of an open file.

        Args:
            file: The event file.
            records: What to find. Pass the same object for files of the same layout.

        Returns:
            The content of the file, if it was read whole, and for each record where its elements lie,
            or what is wrong with it.
        """
        file.expect(span for _, span in records)
        if file.size > WHOLE or not file.holds(0, file.size):
            return None, [self._locate_large(file, name, span) for name, span in records]
        data = bytearray(file.size)
        del data[file.read_into(0, memoryview(data)) :]
        template = self._templates.get(id(records))
        if template is not None and _fits(template, data):
            return data, template.payloads
        payloads = [self._locate_within(data, file.name, name, span) for name, span in records]
        if records is self._before:
            self._keep_template(data, records, payloads)
        self._before = records
        return data, payloads

    def _keep_template(
        self, data: bytearray, records: tuple[Record, ...], payloads: list[Payload | RecordError]
    ) -> None:
        """Learn a template from the second file of a layout: many layouts have no second one."""
        learnt = _learn(data, records, payloads)
        if learnt is not None:
            if len(self._templates) >= _TEMPLATES:
                self._templates.clear()
            self._templates[id(records)] = learnt

    def locate_one(self, file: File, name: str, span: Span) -> Payload:
        """Find and check one record.

        Raises:
            RecordError: It is not what the index says.
        """
        found = self._locate_large(file, name, span)
        if isinstance(found, RecordError):
            raise found
        return found

    def _locate_large(self, file: File, name: str, span: Span) -> Payload | RecordError:
        """Find a record of a file that is not read whole."""
        payload: Payload | RecordError | None = self._recall(name, span, file.size, file.read)
        if payload is None:
            payload = _attempt(file, name, span)
            self._remember(name, span, payload, file.read)
        return payload

    def _locate_within(self, data: bytearray, file: str, name: str, span: Span) -> Payload | RecordError:
        """Find a record in the content of a file."""

        def read(start: int, length: int) -> bytearray:
            return data[start : start + length]

        payload: Payload | RecordError | None = self._recall(name, span, len(data), read)
        if payload is None:
            payload = _attempt_in(data, file, name, span)
            self._remember(name, span, payload, read)
        return payload

    def _recall(self, name: str, span: Span, size: int, read: _Read) -> Payload | None:
        """The tensor, if the record's headers are those that were learnt from the same tensor."""
        start, length = span
        head = self._heads.get((name, length))
        if head is None or start + length > size:
            return None
        found = read(start, head.after_step + len(head.rest))
        if (
            found.startswith(head.begin)
            and found[head.after_step :] == head.rest
            and _after_step(found, HEADER) == head.after_step
            and read(start + length - FOOTER, FOOTER) == CONSTANT_FOOTER
        ):
            return head.payload._replace(offset=start + len(found))
        return None

    def _remember(self, name: str, span: Span, payload: Payload | RecordError, read: _Read) -> None:
        if isinstance(payload, RecordError) or payload.values is not None:
            return
        found = bytes(read(span[0], payload.offset - span[0]))
        after_step = _after_step(found, HEADER)
        if after_step is not None:
            if len(self._heads) >= _HEADS:
                self._heads.clear()
            self._heads[name, span[1]] = _Head(found[: HEADER + 1], after_step, found[after_step:], payload)


def _fits(template: _Template, data: bytearray) -> bool:
    if template.positions[-1] >= len(data):
        return False
    content = np.frombuffer(data, np.uint8)
    return bool((content[template.positions] == template.expected).all())


def _learn(
    data: bytearray, records: tuple[Record, ...], payloads: list[Payload | RecordError]
) -> _Template | None:
    """The bytes that mark these records, if all of them are sound and plain."""
    positions: list[NDArray[np.intp]] = []
    for (_, (start, length)), payload in zip(records, payloads, strict=True):
        if isinstance(payload, RecordError) or payload.values is not None:
            return None
        end = start + length
        after_step = _after_step(data, start + HEADER)
        if after_step is None or data[end - FOOTER : end] != CONSTANT_FOOTER:
            return None
        positions.append(np.arange(start, start + HEADER + 1))
        positions.append(np.arange(after_step, payload.offset))
        positions.append(np.arange(end - FOOTER, end))
    if not positions:
        return None
    marks = np.unique(np.concatenate(positions))
    return _Template(records, marks, np.frombuffer(data, np.uint8)[marks], payloads)


def _after_step(data: bytes | bytearray, message: int) -> int | None:
    """Where the fields after wall time and step begin; `None` if the message begins otherwise."""
    at = message + 9
    if at >= len(data) or data[message] != 0x09:
        return None
    if data[at] == 0x10:
        at += 1
        while at < len(data) and data[at] >= 0x80:
            at += 1
        at += 1
    return at


def _attempt(file: File, name: str, span: Span) -> Payload | RecordError:
    try:
        return locate(file, name, span)
    except RecordError as error:
        return error


def _attempt_in(data: bytearray, file: str, name: str, span: Span) -> Payload | RecordError:
    if not data:
        return RecordError(file, None, "empty", "the file is empty")
    try:
        return locate_in(data, span[0], file, name, span)
    except RecordError as error:
        return error
