"""Writing framework events: steps, phases and data loading of any training loop."""

from __future__ import annotations

import os
import threading
import time
import warnings
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Literal, Self

import msgspec

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

    Attributes:
        lost: How often something could not be written.
    """

    def __init__(
        self, folder: str | Path, node: str = "algo-1", *, rank: int | None = None, end: bool = True
    ) -> None:
        self._root = Path(folder) / "framework"
        self._worker = f"{os.getpid() if rank is None else rank}-{node.replace('_', '-')}"
        self._end = end
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._encode = msgspec.json.Encoder().encode
        self._process = os.getpid()
        self._named = 0
        self.lost = 0
        self._phases: dict[str, int] = {}
        self._base = self._last = self._size = 0
        self._opened = 0.0
        # Durations come from the monotonic clock: the wall clock may be set while training runs.
        self._offset = time.time_ns() - time.perf_counter_ns()
        self._began: int | None = self.now()

    def now(self) -> int:
        """Microseconds since the epoch, from a clock that never goes back."""
        return (time.perf_counter_ns() + self._offset) // 1000

    def step(
        self, number: int, *, mode: Literal["TRAIN", "EVAL", "PREDICT", "GLOBAL"] = "TRAIN"
    ) -> AbstractContextManager[None]:
        """Time one training step.

        The time from the making of the writer to the first step is written as the phase
        `Initialization`.
        """
        if self._began is not None:
            began, self._began = self._began, None
            self.add("Initialization", began, self.now())
        phase = f"Step:ModeKeys.{mode}"
        return _Timed(self, phase, phase, {"step_num": str(number)})

    def loading(self, *, worker: int = 0) -> AbstractContextManager[None]:
        """Time the fetching of one batch.

        Args:
            worker: Number of the data loader process that fetches.
        """
        return _Timed(self, "DataLoaderIter", "DataLoaderIter::GetNext", {"worker_id": worker})

    def phase(self, phase: str, *, name: str | None = None, **args: Any) -> AbstractContextManager[None]:
        """Time a phase; it is written when it ends, also by an exception.

        Args:
            phase: Category of the event, such as `Forward`.
            name: What happened in it; the phase by default.
            args: Stored with the event; values that JSON has.
        """
        return _Timed(self, phase, name or phase, args)

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
        self._add(phase, name or phase, start, end, args)

    def _add(self, phase: str, name: str, start: int, end: int, args: dict[str, Any]) -> None:
        args["pid"] = self._process
        with self._lock:
            try:
                file = self._file or self._open(start)
                pid = self._phases.get(phase) or self._declare(file, phase)
                row = {
                    "name": name,
                    "pid": pid,
                    "ph": "X",
                    "ts": start - self._base,
                    "dur": end - start if end > start else 0,
                    "args": args,
                }
                self._size += file.write(self._encode(row) + b",\n")
                if end > self._last:
                    self._last = end
                if self._size > _CLOSE_BYTES or time.monotonic() - self._opened > _CLOSE_SECONDS:
                    self._rotate()
            except OSError as error:
                self._complain(error)

    def _open(self, start: int) -> IO[bytes]:
        self._root.mkdir(parents=True, exist_ok=True)
        self._file = (self._root / f"{self._worker}_pythontimeline.tmp").open("wb")
        self._opened = time.monotonic()
        self._phases, self._size, self._last = {}, 0, 0
        self._base = start
        args = {"start_time_since_epoch_in_micros": start}
        first = {"name": "process_name", "ph": "M", "pid": 0, "args": args}
        self._file.write(b"[\n" + self._encode(first) + b",\n")
        return self._file

    def _declare(self, file: IO[bytes], phase: str) -> int:
        self._phases[phase] = pid = len(self._phases) + 1
        row = {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": phase}}
        file.write(self._encode(row) + b",\n")
        return pid

    def _rotate(self) -> None:
        if self._file is None:
            return
        file, self._file = self._file, None
        # The last row ends with a comma; an array does not.
        file.seek(file.tell() - 2)
        file.write(b"\n]")
        file.close()
        # An event that encloses the last one may end in the same microsecond, in the next file.
        self._named = last = max(self._last, self._named + 1)
        folder = self._root / "pevents" / time.strftime("%Y%m%d%H", time.gmtime(last // 1_000_000))
        folder.mkdir(parents=True, exist_ok=True)
        Path(file.name).replace(folder / f"{last:016}_{self._worker}_pythontimeline.json")

    def _complain(self, error: OSError) -> None:
        """Training goes on where its timeline cannot be written; that is told once."""
        self.lost += 1
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
        if self.lost == 1:
            text = f"the timeline cannot be written to {self._root}: {error.strerror or error}"
            with suppress(RuntimeWarning):  # where warnings are errors
                warnings.warn(text, RuntimeWarning, stacklevel=4)

    def close(self) -> None:
        """End writing: the open file is completed and named."""
        with self._lock:
            try:
                self._rotate()
                if self._end:
                    self._root.mkdir(parents=True, exist_ok=True)
                    (self._root / END_MARKER).write_text("END")
            except OSError as error:
                self._complain(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Timed:
    """Times a block. A class costs a third of what a generator does, in every step."""

    __slots__ = ("_args", "_name", "_phase", "_start", "_writer")

    def __init__(self, writer: TimelineWriter, phase: str, name: str, args: dict[str, Any]) -> None:
        self._writer = writer
        self._phase = phase
        self._name = name
        self._args = args

    def __enter__(self) -> None:
        self._start = self._writer.now()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        writer = self._writer
        writer._add(self._phase, self._name, self._start, writer.now(), self._args)
