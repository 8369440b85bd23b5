"""Reading large line-wise JSON files in blocks, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from smdbg_core.storage import File

__all__ = ["BLOCK", "blocks"]

BLOCK: Final = 1 << 20
_LONGEST_LINE = 1 << 26


def blocks(file: File, size: int = BLOCK) -> Iterator[tuple[int, bytes]]:
    """Offset and content of successive blocks, each of whole lines; the last may lack its line end.

    A line longer than 64 MiB is cut there.
    """
    start, rest = 0, b""
    offset = 0
    while offset < file.size:
        chunk = file.read(offset, size)
        if not chunk:
            break  # shorter than it was when it was opened
        offset += len(chunk)
        end = chunk.rfind(b"\n") + 1 if offset < file.size else len(chunk)
        if not end and len(rest) < _LONGEST_LINE:
            rest += chunk
            continue
        block = rest + chunk[:end] if end else rest + chunk
        yield start, block
        start += len(block)
        rest = chunk[end:] if end else b""
    if rest:
        yield start, rest
