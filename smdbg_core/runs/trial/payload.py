"""Payloads: where the elements of a tensor lie in an event file.

Finding them takes decoding the record's headers. Files of one layout repeat those headers byte for
byte, so what was learnt from one file is a template for the next, taken only where all bytes agree.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdbg_core.runs.damage import RecordError
from smdbg_core.runs.trial.dtypes import NAME_OF, STORED_AS, STRING, widened
from smdbg_core.runs.trial.records import CONSTANT_FOOTER, FOOTER, HEADER, check_footer, check_header
from smdbg_core.runs.trial.wire import TensorValue, WireError, decode_event
from smdbg_core.storage import File

__all__ = ["HEAD", "Payload", "locate", "locate_in"]

HEAD = 4096
"""Bytes from which the headers of a large record are decoded; names and shapes longer than that are
decoded from the whole record."""


class Payload(NamedTuple):
    """The elements of one tensor."""

    offset: int
    """Where they begin in the file."""

    nbytes: int
    dtype: np.dtype[Any]
    """How they lie there."""

    number: int
    """Number of the type; tells bfloat16 from uint16."""

    shape: tuple[int, ...]
    values: NDArray[Any] | None = None
    """Elements that are no plain bytes: strings, numbers of a typed field."""

    def array(self, content: bytes | bytearray | memoryview) -> NDArray[Any]:
        """The tensor, from the bytes at `offset`; writable where they are."""
        if self.values is not None:
            return self.values
        return widened(np.frombuffer(content, self.dtype), self.number).reshape(self.shape)

    @property
    def dtype_name(self) -> str:
        """Name of the tensor's NumPy type as a reader gets it."""
        return str(self.values.dtype) if self.values is not None else NAME_OF[self.number]


def locate(file: File, name: str, span: tuple[int, int]) -> Payload:
    """Find and check one tensor of an open file.

    Args:
        file: The event file.
        name: Name of the tensor.
        span: Offset and length of its record, from the index.

    Raises:
        RecordError: The record is not what the index says.
    """
    start, length = span
    if length < HEADER + FOOTER or start < 0:
        raise RecordError(file.name, start, "length", f"the index gives a record of {length} bytes")
    if not file.size:
        raise RecordError(file.name, None, "empty", "the file is empty")
    if start + length > file.size:
        detail = f"the record ends at byte {start + length}, the file at {file.size}"
        raise RecordError(file.name, start, "cut", detail)
    if length <= HEAD:
        return locate_in(file.read(start, length), 0, file.name, name, span)
    head = file.read(start, HEAD)
    footer = file.read(start + length - FOOTER, FOOTER)
    check_header(head[:HEADER], file.name, start, length - HEADER - FOOTER)
    if footer != CONSTANT_FOOTER:
        return locate_in(file.read(start, length), 0, file.name, name, span)
    try:
        payload = _payload(head[HEADER:], length - HEADER - FOOTER, file.name, name, start)
    except RecordError:
        payload = None
    # Elements in fields of their own, such as strings, go on behind the head.
    if payload is None or payload.values is not None:
        return locate_in(file.read(start, length), 0, file.name, name, span)
    return payload


def locate_in(
    data: bytes | bytearray | memoryview, base: int, file: str, name: str, span: tuple[int, int]
) -> Payload:
    """Find and check one tensor in bytes that hold its whole record.

    Args:
        data: Bytes of the file.
        base: Where the record begins in `data`.
        file: Name of the file, for complaints.
        name: Name of the tensor.
        span: Offset and length of the record in the file.

    Raises:
        RecordError: The record is not what the index says.
    """
    start, length = span
    if length < HEADER + FOOTER or base + length > len(data):
        detail = f"the record ends at byte {start + length}, beyond the end of the file"
        raise RecordError(file, start, "cut", detail)
    check_header(data[base : base + HEADER], file, start, length - HEADER - FOOTER)
    payload = memoryview(data)[base + HEADER : base + length - FOOTER]
    check_footer(data[base + length - FOOTER : base + length], payload, file, start)
    return _payload(payload, len(payload), file, name, start)


def _payload(message: bytes | memoryview, length: int, file: str, name: str, start: int) -> Payload:
    try:
        values = decode_event(message, length)
    except WireError as error:
        raise RecordError(file, start, "wire", str(error)) from None
    for value in values:
        if value.name == name:
            return _describe(value, file, start)
    found = ", ".join(repr(value.name) for value in values[:3]) or "no tensor"
    raise RecordError(file, start, "name", f"the index says {name!r}, the record holds {found}")


def _describe(value: TensorValue, file: str, start: int) -> Payload:
    if value.strings or (value.dtype in (STRING, 7) and value.content is None and value.numbers is None):
        try:
            texts = np.array([text.decode() for text in value.strings], dtype=np.str_)
        except UnicodeDecodeError:
            raise RecordError(file, start, "wire", "a string is not UTF-8") from None
        return Payload(start, 0, texts.dtype, STRING, texts.shape, texts)
    dtype = STORED_AS.get(value.dtype)
    if dtype is None:
        raise RecordError(file, start, "dtype", f"no type has the number {value.dtype}")
    if value.numbers is not None and not (value.content and value.content[1]):
        numbers = np.array(value.numbers[1], dtype=value.numbers[0])
        return Payload(start, 0, numbers.dtype, value.dtype, numbers.shape, numbers)
    offset, nbytes = value.content or (0, 0)
    expected = math.prod(value.shape) * dtype.itemsize
    if expected != nbytes:
        detail = f"shape {value.shape} of {dtype} takes {expected} bytes, not {nbytes}"
        raise RecordError(file, start, "shape", detail)
    return Payload(start + HEADER + offset, nbytes, dtype, value.dtype, value.shape)
