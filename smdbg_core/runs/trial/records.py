"""Records: the TFRecord framing of event files.

A record is the length of its payload (8 bytes), the masked CRC-32C of these bytes, the payload, and a
footer. Hooks write the same constant as every footer instead of the payload's checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import crc32c

from smdbg_core.runs.damage import RecordError

__all__ = [
    "CONSTANT_FOOTER",
    "FOOTER",
    "HEADER",
    "START",
    "check_footer",
    "check_header",
    "header",
    "masked",
    "masked_crc",
    "records",
]

HEADER: Final = 12
START: Final = HEADER + 9
"""Bytes at the beginning of an event file up to the end of its wall time."""

FOOTER: Final = 4
CONSTANT_FOOTER: Final = b"\xb3\xc0\x2d\x06"
"""Masked CRC-32C of the text `0x12345678`, little-endian."""


def masked_crc(data: bytes | bytearray | memoryview) -> int:
    """CRC-32C of the data, rotated and offset as TFRecords have it."""
    return masked(crc32c.crc32c(data))


def masked(crc: int) -> int:
    """A checksum as TFRecords store it."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def header(length: int) -> bytes:
    """The header of a record with a payload of `length` bytes."""
    size = struct.pack("<Q", length)
    return size + struct.pack("<I", masked_crc(size))


def check_header(
    data: bytes | bytearray | memoryview, file: str, offset: int, expected: int | None = None
) -> int:
    """The payload's length from a record's first 12 bytes.

    Raises:
        RecordError: The checksum of the length is wrong, or it is not `expected`.
    """
    length = int(struct.unpack_from("<Q", data)[0])
    if struct.unpack_from("<I", data, 8)[0] != masked_crc(data[:8]):
        raise RecordError(file, offset, "checksum", "the checksum of the record's length is wrong")
    if expected is not None and length != expected:
        raise RecordError(file, offset, "length", f"the record has {length} bytes, the index says {expected}")
    return length


def check_footer(
    footer: bytes | bytearray | memoryview, payload: bytes | bytearray | memoryview, file: str, offset: int
) -> None:
    """Check a record's last 4 bytes: the constant, or the true checksum of the payload.

    Raises:
        RecordError: They are neither.
    """
    if footer != CONSTANT_FOOTER and struct.unpack("<I", footer)[0] != masked_crc(payload):
        raise RecordError(
            file, offset, "checksum", "the record's footer is neither the constant nor its checksum"
        )


def records(
    data: bytes | bytearray | memoryview, file: str
) -> Iterator[tuple[int, bytes | bytearray | memoryview]]:
    """The records of a whole event file, one after the other: offset and payload.

    Raises:
        RecordError: At the first record that is damaged; where the next one begins is then unknown.
    """
    at = 0
    while at < len(data):
        if len(data) - at < HEADER + FOOTER:
            raise RecordError(file, at, "cut", f"{len(data) - at} bytes are left, too few for a record")
        length = check_header(data[at : at + HEADER], file, at)
        end = at + HEADER + length
        if length > len(data) - at - HEADER - FOOTER:
            raise RecordError(
                file, at, "cut", f"a record of {length} bytes reaches beyond the end of the file"
            )
        payload = data[at + HEADER : end]
        check_footer(data[end : end + FOOTER], payload, file, at)
        yield at, payload
        at = end + FOOTER
