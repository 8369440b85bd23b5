"""The part of protobuf's wire format that event files need, decoded without a runtime.

Field numbers are those of TensorFlow's Event, Summary, TensorProto and TensorShapeProto messages, with
the repeated plugin data that smdebug writes. Fields may come in any order; unknown ones are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["TensorValue", "WireError", "decode_event"]

_MAX_DIMENSIONS = 64
_MODES = {b"1": "TRAIN", b"2": "EVAL", b"3": "PREDICT", b"4": "GLOBAL"}


class WireError(ValueError):
    """The bytes are no such message."""


class TensorValue(NamedTuple):
    """One tensor of an event, without its elements."""

    name: str
    dtype: int
    shape: tuple[int, ...]
    content: tuple[int, int] | None
    """Where the elements lie in the message: offset and length."""

    strings: tuple[bytes, ...]
    numbers: tuple[str, tuple[float, ...]] | None
    """Elements that were written as numbers of a typed field: its NumPy type and the elements."""

    wall_time: float
    step: int
    mode: str
    mode_step: int


class _Field(NamedTuple):
    number: int
    wire: int
    value: int
    """The value of a varint, else where the bytes of the field begin."""

    end: int
    """Where they end."""


def decode_event(data: bytes | memoryview, length: int | None = None) -> list[TensorValue]:
    """The tensors of one Event message.

    Args:
        data: The message, or its beginning.
        length: Bytes of the whole message. Fields that reach beyond `data` are located, not decoded,
            and nothing after them is looked at.

    Raises:
        WireError: The bytes are no such message.
    """
    end = len(data) if length is None else length
    wall_time, step = 0.0, 0
    found: list[tuple[str, _Tensor | None, tuple[str, int] | None]] = []
    for field in _fields(data, 0, end):
        if field.number == 1 and field.wire == 1:
            if field.end > len(data):
                message = "a wall time that is cut"
                raise WireError(message)
            wall_time = struct.unpack_from("<d", data, field.value)[0]
        elif field.number == 2 and field.wire == 0:
            step = _signed(field.value)
        elif field.number == 5 and field.wire == 2:
            found += [
                _decode_value(data, value)
                for value in _fields(data, field.value, field.end)
                if value.number == 1 and value.wire == 2
            ]
    values = []
    for name, tensor, mode in found:
        if tensor is None:
            continue
        at = mode or ("GLOBAL", step)
        values.append(
            TensorValue(
                name,
                tensor.dtype,
                tensor.shape,
                tensor.content,
                tensor.strings,
                tensor.numbers,
                wall_time,
                step,
                *at,
            )
        )
    return values


class _Tensor(NamedTuple):
    dtype: int
    shape: tuple[int, ...]
    content: tuple[int, int] | None
    strings: tuple[bytes, ...]
    numbers: tuple[str, tuple[float, ...]] | None


def _decode_value(
    data: bytes | memoryview, field: _Field
) -> tuple[str, _Tensor | None, tuple[str, int] | None]:
    """Name, tensor and mode of one Summary.Value."""
    name, tensor, mode = "", None, None
    for inner in _fields(data, field.value, field.end):
        if inner.wire != 2:
            continue
        if inner.number == 1:
            try:
                name = bytes(data[inner.value : inner.end]).decode()
            except UnicodeDecodeError:
                message = "the name of a tensor is not UTF-8"
                raise WireError(message) from None
        elif inner.number == 8:
            tensor = _decode_tensor(data, inner)
        elif inner.number == 9:
            mode = _decode_mode(data, inner)
    return name, tensor, mode


def _decode_tensor(data: bytes | memoryview, field: _Field) -> _Tensor:
    dtype = 0
    shape: tuple[int, ...] = ()
    content: tuple[int, int] | None = None
    strings: list[bytes] = []
    numbers: tuple[str, tuple[float, ...]] | None = None
    for inner in _fields(data, field.value, field.end):
        if inner.number == 1 and inner.wire == 0:
            dtype = inner.value
        elif inner.number == 2 and inner.wire == 2:
            shape = _decode_shape(data, inner)
        elif inner.number == 4 and inner.wire == 2:
            content = inner.value, inner.end - inner.value
        elif inner.number == 8 and inner.wire == 2:
            strings.append(bytes(data[inner.value : inner.end]))
        elif inner.number in _PACKED and inner.wire == 2:
            numbers = _decode_packed(data, inner)
    return _Tensor(dtype, shape, content, tuple(strings), numbers)


def _decode_shape(data: bytes | memoryview, field: _Field) -> tuple[int, ...]:
    shape = []
    for dimension in _fields(data, field.value, field.end):
        if dimension.number != 2 or dimension.wire != 2:
            continue
        sizes = [
            f.value for f in _fields(data, dimension.value, dimension.end) if f.number == 1 and f.wire == 0
        ]
        size = _signed(sizes[-1]) if sizes else 0
        if size < 0:
            message = f"a dimension of {size}"
            raise WireError(message)
        shape.append(size)
    if len(shape) > _MAX_DIMENSIONS:
        message = f"{len(shape)} dimensions"
        raise WireError(message)
    return tuple(shape)


_PACKED = {5: ("<f4", "f"), 6: ("<f8", "d"), 7: ("<i4", None), 10: ("<i8", None), 11: ("?", None)}
"""Typed fields of TensorProto by number: NumPy type, and struct code of fixed-size elements."""


def _decode_packed(data: bytes | memoryview, field: _Field) -> tuple[str, tuple[float, ...]]:
    dtype, code = _PACKED[field.number]
    if code is not None:
        size = struct.calcsize(code)
        count, rest = divmod(field.end - field.value, size)
        if rest or field.end > len(data):
            message = "a packed field of a broken length"
            raise WireError(message)
        return dtype, struct.unpack_from(f"<{count}{code}", data, field.value)
    elements, at = [], field.value
    while at < field.end:
        value, at = _varint(data, at, field.end)
        elements.append(_signed(value))
    return dtype, tuple(elements)


def _decode_mode(data: bytes | memoryview, field: _Field) -> tuple[str, int] | None:
    """Mode and mode step from the plugin data of a SummaryMetadata."""
    found: dict[bytes, bytes] = {}
    for plugin in _fields(data, field.value, field.end):
        if plugin.number == 1 and plugin.wire == 2:
            parts = {f.number: bytes(data[f.value : f.end]) for f in _fields(data, plugin.value, plugin.end)}
            found[parts.get(1, b"")] = parts.get(2, b"")
    mode, mode_step = _MODES.get(found.get(b"mode", b"")), found.get(b"mode_step", b"")
    return (mode, int(mode_step)) if mode and mode_step.isdigit() and len(mode_step) < 20 else None


def _fields(data: bytes | memoryview, start: int, end: int) -> Iterator[_Field]:
    """The fields of the message in `data[start:end]`; it ends early where `data` does."""
    at = start
    while at < end and at < len(data):
        tag, at = _varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at, end)
            yield _Field(number, wire, value, at)
            continue
        if wire == 2:
            size, at = _varint(data, at, end)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            message = f"wire type {wire}"
            raise WireError(message)
        if not number or size > end - at:
            message = f"field {number} of {size} bytes reaches beyond its message"
            raise WireError(message)
        yield _Field(number, wire, at, at + size)
        at += size


def _varint(data: bytes | memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= end or at >= len(data) or shift > 63:
            message = "a broken number"
            raise WireError(message)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
