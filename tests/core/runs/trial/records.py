"""Event records and index files made by hand, for what no writer writes."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import crc32c

from smdbg_core.runs.trial.records import CONSTANT_FOOTER, masked

__all__ = ["event", "field", "number", "record", "tensor", "write_step"]


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field_number: int, value: int) -> bytes:
    return varint(field_number << 3) + varint(value % 2**64)


def field(field_number: int, content: bytes) -> bytes:
    return varint(field_number << 3 | 2) + varint(len(content)) + content


def tensor(dtype: int, shape: tuple[int, ...], content: bytes = b"", extra: bytes = b"") -> bytes:
    dims = b"".join(field(2, number(1, size)) for size in shape)
    return number(1, dtype) + field(2, dims) + extra + (field(4, content) if content else b"")


def event(values: dict[str, bytes], *, step: int = 0, mode: str = "1", mode_step: str = "0") -> bytes:
    """An Event with one Value for each tensor."""
    plugins = field(1, field(1, b"mode_step") + field(2, mode_step.encode()))
    plugins += field(1, field(1, b"mode") + field(2, mode.encode()))
    summary = b"".join(
        field(1, field(1, name.encode()) + field(8, message) + field(9, plugins))
        for name, message in values.items()
    )
    return b"\x09" + struct.pack("<d", 1.5e9) + number(2, step) + field(5, summary)


def record(payload: bytes, *, footer: bytes | None = CONSTANT_FOOTER) -> bytes:
    """A record; without a footer, its true checksum."""
    size = struct.pack("<Q", len(payload))
    head = size + struct.pack("<I", masked(crc32c.crc32c(size)))
    return head + payload + (struct.pack("<I", masked(crc32c.crc32c(payload))) if footer is None else footer)


def write_step(
    folder: Path,
    records: dict[str, bytes],
    *,
    step: int = 0,
    worker: str = "worker_0",
    index: dict[str, Any] | None = None,
) -> None:
    """One step with whole records by tensor name; `index` overrides parts of the index file."""
    name = f"events/{step:012d}/{step:012d}_{worker}.tfevents"
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(records.values()))
    payload, at = [], 0
    for tensor_name, content in records.items():
        payload.append({"tensorname": tensor_name, "start_idx": at, "length": len(content)})
        at += len(content)
    document = {
        "meta": {"mode": "TRAIN", "mode_step": step, "event_file_name": name},
        "tensor_payload": payload,
        "shape_payload": [],
    }
    document |= index or {}
    target = folder / "index" / f"{step // 1000:09d}" / f"{step:012d}_{worker}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document))
