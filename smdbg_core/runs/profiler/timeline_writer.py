"""Writing framework events: steps, phases and data loading of any training loop."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Literal, Self

from smdbg_core.runs.profiler.files import END_MARKER

__all__ = ["TimelineWriter"]

_CLOSE_SECONDS: Final = 60
_CLOSE_BYTES: Final = 10 * 2**20


class TimelineWriter:
    """Writes a timeline of trace events; use it in a `with` statement.

        with TimelineWriter("run/profiler-output") as timeline:
            for number, batch in enumerate(loader):
                with timeline.step(number, mode="TRAIN"):
                    with timeline.phase("Forward"):
                        loss = model(batch)

    Files rotate as those of SageMaker's hook do: after a minute or 10 MiB a file is closed and renamed
    to the time of its last event; until then it is named `.tmp` and is not read. Several threads may
    write.

    Args:
        folder: Root of the profiler output; made if it is not there.
        node: Name of the machine, `algo-<n>`.
        rank: Rank or number of the process; its process id by default.
        end: Write the end marker on leaving.
    """

    def __init__(
        self, folder: str | Path, node: str = "algo-1", *, rank: int | None = None, end: bool = True
    ) -> None:
        self._root = Path(folder) / "framework"
        self._worker = f"{os.getpid() if rank is None else rank}-{node.replace('_', '-')}"
        self._end = end
        self._lock = threading.Lock()
        self._file: IO[str] | None = None
        self._phases: dict[str, int] = {}
        self._base = self._last = self._size = 0
        self._opened = 0.0
        # Durations come from the monotonic clock: the wall clock may be set while training runs.
        self._offset = time.time_ns() - time.perf_counter_ns()

    def now(self) -> int:
        """Microseconds since the epoch, from a clock that never goes back."""
        return (time.perf_counter_ns() + self._offset) // 1000

    @contextmanager
    def step(
        self, number: int, *, mode: Literal["TRAIN", "EVAL", "PREDICT", "GLOBAL"] = "TRAIN"
    ) -> Iterator[None]:
        """Time one training step."""
        with self.phase(f"Step:ModeKeys.{mode}", step_num=str(number)):
            yield

    @contextmanager
    def loading(self, *, worker: int = 0) -> Iterator[None]:
        """Time the fetching of one batch.

        Args:
            worker: Number of the data loader process that fetches.
        """
        with self.phase("DataLoaderIter", name="DataLoaderIter::GetNext", worker_id=worker):
            yield

    @contextmanager
    def phase(self, phase: str, *, name: str | None = None, **args: Any) -> Iterator[None]:
        """Time a phase; it is written when it ends, also by an exception.

        Args:
            phase: Category of the event, such as `Forward`.
            name: What happened in it; the phase by default.
            args: Stored with the event; values that JSON has.
        """
        start = self.now()
        try:
            yield
        finally:
            self.add(phase, start, self.now(), name=name, **args)

    def settings(self, *, num_workers: int, pin_memory: bool) -> None:
        """Record how the data loader is configured."""
        now = self.now()
        self.add("DataLoaderIterInitialize", now, now, num_workers=num_workers, pin_memory=pin_memory)

    def add(self, phase: str, start: int, end: int, *, name: str | None = None, **args: Any) -> None:
        """Write an event that was timed elsewhere.

        Args:
            phase: Category of the event.
            start: Microseconds since the epoch.
            end: The same, not before `start`.
            name: What happened; the phase by default.
            args: Stored with the event.
        """
        with self._lock:
            file = self._file or self._open(start)
            row: dict[str, Any] = {
                "name": name or phase,
                "pid": self._pid(file, phase),
                "ph": "X",
                "ts": start - self._base,
                "dur": max(0, end - start),
                "args": {"pid": os.getpid(), **args},
            }
            self._size += file.write(json.dumps(row) + ",\n")
            self._last = max(self._last, end)
            if time.monotonic() - self._opened > _CLOSE_SECONDS or self._size > _CLOSE_BYTES:
                self._rotate()

    def _open(self, start: int) -> IO[str]:
        self._root.mkdir(parents=True, exist_ok=True)
        self._file = (self._root / f"{self._worker}_pythontimeline.tmp").open("w", encoding="utf-8")
        self._opened = time.monotonic()
        self._phases, self._size, self._last = {}, 0, 0
        self._base = start
        args = {"start_time_since_epoch_in_micros": start}
        first = {"name": "process_name", "ph": "M", "pid": 0, "args": args}
        self._file.write("[\n" + json.dumps(first) + ",\n")
        return self._file

    def _pid(self, file: IO[str], phase: str) -> int:
        if phase not in self._phases:
            self._phases[phase] = pid = len(self._phases) + 1
            file.write(
                json.dumps({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": phase}}) + ",\n"
            )
        return self._phases[phase]

    def _rotate(self) -> None:
        if self._file is None:
            return
        # The last row ends with a comma; an array does not.
        self._file.seek(self._file.tell() - 2)
        self._file.write("\n]")
        self._file.close()
        hour = time.strftime("%Y%m%d%H", time.gmtime(self._last // 1_000_000))
        folder = self._root / "pevents" / hour
        folder.mkdir(parents=True, exist_ok=True)
        Path(self._file.name).replace(folder / f"{self._last:016}_{self._worker}_pythontimeline.json")
        self._file = None

    def close(self) -> None:
        """End writing: the open file is completed and named."""
        with self._lock:
            self._rotate()
            if self._end:
                self._root.mkdir(parents=True, exist_ok=True)
                (self._root / END_MARKER).write_text("END")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
