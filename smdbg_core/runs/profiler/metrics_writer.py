"""Writing system metrics in the format that the readers, and SageMaker's own tools, read."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from smdbg_core.runs.profiler.files import END_MARKER

__all__ = ["MetricsWriter"]

Measured = tuple[str, str, str, float]


class MetricsWriter:
    """Writes system metrics as JSON lines, a file for each minute; use it in a `with` statement.

    Each tick is flushed, so that a crash loses at most the line that was being written.

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
        self._minute: int | None = None
        self._file: IO[str] | None = None

    def tick(self, seconds: float, measured: Iterable[Measured]) -> None:
        """Write the samples of one moment.

        Args:
            seconds: Since the epoch.
            measured: `(type, name, dimension, value)` of each sample, such as
                `("gpu", "gpu0", "GPUUtilization", 97)`; values that are no finite numbers are left out.
        """
        lines = [
            json.dumps(
                {
                    "Type": kind,
                    "Name": name,
                    "Dimension": dimension,
                    "Value": round(float(value), 2),
                    "NodeId": self._node,
                    "Timestamp": round(seconds, 6),
                }
            )
            for kind, name, dimension, value in measured
            if math.isfinite(value)
        ]
        if lines:
            file = self._open(int(seconds) // 60 * 60)
            file.write("\n".join(lines) + "\n")
            file.flush()

    def _open(self, minute: int) -> IO[str]:
        if self._file is None or minute != self._minute:
            self._close()
            folder = self._root / "incremental" / time.strftime("%Y%m%d%H", time.gmtime(minute))
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / f"{minute}.{self._node}.json").open("a", encoding="utf-8")
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
