"""Writing system metrics in the format that the readers, and SageMaker's own tools, read."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from smdbg_core.runs.profiler.files import END_MARKER

__all__ = ["MetricsWriter"]

Measured = tuple[str, str, str, float]


class MetricsWriter:
    """Writes system metrics as JSON lines, a file for each minute; use it in a `with` statement.

    Each tick is written at once and as a whole, so that a crash or a full disk leaves readable files.

    Args:
        folder: Root of the profiler output; made if it is not there.
        node: Name of the machine, `algo-<n>`: tools for the format know machines by such names.
        end: Write the end marker on leaving, as a finished job has it.

    Raises:
        ValueError: Another form of `node`.
        OSError: The folder cannot be written.
    """

    def __init__(self, folder: str | Path, node: str = "algo-1", *, end: bool = True) -> None:
        if not node.startswith("algo-") or not node.removeprefix("algo-").isdecimal():
            message = f"node {node!r} is not algo-<number>"
            raise ValueError(message)
        self._root = Path(folder) / "system"
        self._node = node
        self._end = end
        self._encoder = msgspec.json.Encoder()
        self._minute: int | None = None
        self._file: IO[bytes] | None = None

    def tick(self, seconds: float, measured: Iterable[Measured]) -> None:
        """Write the samples of one moment.

        Args:
            seconds: Since the epoch.
            measured: `(type, name, dimension, value)` of each sample, such as
                `("gpu", "gpu0", "GPUUtilization", 97)`; values that are no finite numbers are left out.

        Raises:
            OSError: The tick cannot be written; later ones may be.
        """
        rows = [
            {
                "Type": kind,
                "Name": name,
                "Dimension": dimension,
                "Value": round(float(value), 2),
                "NodeId": self._node,
                "Timestamp": round(seconds, 6),
            }
            for kind, name, dimension, value in measured
            if math.isfinite(value)
        ]
        if rows:
            self._write(self._open(int(seconds) // 60 * 60), self._encoder.encode_lines(rows))

    def _write(self, file: IO[bytes], lines: bytes) -> None:
        """All lines or none: a full disk leaves no half of a line behind."""
        size = os.fstat(file.fileno()).st_size
        try:
            written = file.write(lines)
            while written < len(lines):
                written += file.write(lines[written:])
        except OSError:
            with suppress(OSError):
                file.truncate(size)
            raise

    def _open(self, minute: int) -> IO[bytes]:
        if self._file is None or minute != self._minute:
            self._close()
            folder = self._root / "incremental" / time.strftime("%Y%m%d%H", time.gmtime(minute))
            folder.mkdir(parents=True, exist_ok=True)
            # Without a buffer nothing is held back that a failed write would leave for the next one.
            self._file = (folder / f"{minute}.{self._node}.json").open("ab", buffering=0)
            self._minute = minute
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """End writing; leaves the end marker if it is wanted."""
        self._close()
        if self._end:
            self._root.mkdir(parents=True, exist_ok=True)
            (self._root / END_MARKER).write_text("END")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
