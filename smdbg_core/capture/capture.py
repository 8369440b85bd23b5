"""Capturing system metrics beside whatever else a process does."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from smdbg_core.capture.sampler import Sampler
from smdbg_core.errors import ConfigError
from smdbg_core.runs.profiler.metrics_writer import MetricsWriter

__all__ = ["Capture"]

_SHORTEST = 0.1
_LONGEST = 60.0


class Capture:
    """Writes system metrics of this machine while a `with` block runs.

        with Capture("run/profiler-output"):
            train()

    A thread reads the machine's counters and writes a tick at a time. Failing to write never disturbs
    the block: it is told once, and capturing goes on when the disk takes data again. Leaving the block
    writes the end marker.

    Args:
        folder: Root of the profiler output; made if it is not there.
        interval: Seconds between ticks, 0.1 to 60.
        node: Name of the machine, `algo-<n>`; each machine of a job has its own.
        on_problem: Told what cannot be written, once; by default a `RuntimeWarning`.

    Attributes:
        ticks: How many ticks were written.
        lost: How many could not be written.

    Raises:
        ConfigError: psutil is not installed, or an argument makes no sense.
    """

    def __init__(
        self,
        folder: str | Path,
        interval: float = 0.5,
        *,
        node: str = "algo-1",
        on_problem: Callable[[str], None] | None = None,
    ) -> None:
        if not _SHORTEST <= interval <= _LONGEST:
            message = f"interval {interval} is not between {_SHORTEST} and {_LONGEST:g} seconds"
            raise ConfigError(message)
        try:
            self._writer = MetricsWriter(folder, node)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self.ticks = self.lost = 0
        self._folder = folder
        self._sampler = Sampler()
        self._interval = interval
        self._on_problem = on_problem or _warn
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="smdbg-capture", daemon=True)

    def __enter__(self) -> Self:
        self._tick()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._sampler.close()
        try:
            self._writer.close()
        except OSError as problem:
            self._complain(problem)

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            due += self._interval
            late = time.monotonic() - due
            if late > 0:
                # After a pause of the machine the missed ticks are left out, not made up.
                due += late // self._interval * self._interval + self._interval
            if self._stop.wait(due - time.monotonic()):
                return
            self._tick()

    def _tick(self) -> None:
        try:
            self._writer.tick(time.time(), self._sampler.read())
        except OSError as problem:
            self._complain(problem)
            self.lost += 1
        else:
            self.ticks += 1

    def _complain(self, problem: OSError) -> None:
        if not self.lost:
            why = problem.strerror or str(problem)
            self._on_problem(f"system metrics cannot be written to {self._folder}: {why}")


def _warn(text: str) -> None:
    # Where warnings are errors, the thread goes on all the same.
    with suppress(RuntimeWarning):
        warnings.warn(text, RuntimeWarning, stacklevel=2)
