"""Reading large line-wise JSON files in blocks, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from smdbg_core.runs.damage import RecordError
from smdbg_core.storage import File

__all__ = ["BLOCK", "blocks"]

BLOCK: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 26


def blocks(file: File, size: int = BLOCK) -> Iterator[tuple[int, bytes]]:
    """Offset and content of successive blocks, each of whole lines; the last may lack its line end.

    Raises:
        RecordError: A line is longer than 64 MiB; all before it has been given.
    """
    start, rest = 0, b""
    offset = 0
    while offset < file.size:
        chunk = file.read(offset, size)
        if not chunk:
            break  # shorter than it was when it was opened
        offset += len(chunk)
        end = chunk.rfind(b"\n") + 1 if offset < file.size else len(chunk)
        if not end:
            rest += chunk
            if len(rest) > _LONGEST_LINE:
                raise RecordError(file.name, start, "length", f"a line of more than {_LONGEST_LINE} bytes")
            continue
        block = rest + chunk[:end]
        yield start, block
        start += len(block)
        rest = chunk[end:]
    if rest:
        yield start, rest
