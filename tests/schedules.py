"""Schedules: a finished run that arrives once more, file by file, in some other order."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from smdbg_core.testing import FakeClock

__all__ = ["Arrival", "Crash", "ScheduledClock", "chaotic"]

END_MARKER = "training_job_end.ts"


class Arrival(NamedTuple):
    """A file that comes at some time."""

    time: float
    name: str


class Crash(BaseException):
    """Stands for the end of the process."""


class ScheduledClock(FakeClock):
    """A clock on which waiting lets files arrive.

    Args:
        source: The finished run.
        target: Where its files arrive.
        arrivals: When.
        crashes: Times at which the process that waits dies.
    """

    def __init__(
        self, source: Path, target: Path, arrivals: list[Arrival], crashes: tuple[float, ...] = ()
    ) -> None:
        super().__init__()
        self.rest = sorted(arrivals)
        self.on_sleep: Callable[[], None] = lambda: None
        self._source = source
        self._target = target
        self._crashes = sorted(crashes)
        self._number = 0
        for arrival in self.rest:
            self.at(arrival.time, self._next)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.on_sleep()
        if self._crashes and self._crashes[0] <= self.now:
            self._crashes.pop(0)
            raise Crash

    def _next(self) -> None:
        self._deliver(self.rest.pop(0).name)

    def _deliver(self, name: str) -> None:
        """Copy under another name, then rename, as writers do."""
        target = self._target / name
        target.parent.mkdir(parents=True, exist_ok=True)
        self._number += 1
        draft = target.with_name(f"{target.name}.{self._number}.tmp")
        shutil.copyfile(self._source / name, draft)
        os.replace(draft, target)


def files(source: Path) -> Iterator[str]:
    """Names of all files, sorted."""
    for folder, _, names in sorted(os.walk(source)):
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), source)


def chaotic(source: Path, rng: random.Random, *, poll: float, grace: float) -> list[Arrival]:
    """Arrivals of a trial: workers shuffled and delayed, some dropped, some files twice, index first."""
    arrivals = []
    workers = sorted(
        {name.rpartition("_")[2].partition(".")[0] for name in files(source) if "index/" in name}
    )
    lag = {worker: rng.choice([0.0, 0.0, rng.uniform(0, 2 * grace)]) for worker in workers}
    end = 0.0
    for name in files(source):
        if name == END_MARKER:
            continue
        base = Path(name).name
        step = int(base.split("_")[0]) if base[0].isdigit() else 0
        worker = base.rpartition("_")[2].partition(".")[0]
        if base[0].isdigit() and step and rng.random() < 0.03:
            continue  # dropped
        time = step * rng.choice([1.0, 1.0, 1.0, 0.2]) + lag.get(worker, 0.0) + rng.expovariate(1.0)
        arrivals.append(Arrival(time, name))
        if rng.random() < 0.1:
            arrivals.append(Arrival(time + rng.uniform(0, grace), name))
        end = max(end, time)
    end = max(arrival.time for arrival in arrivals)
    arrivals.append(Arrival(max(0.0, end - rng.choice([0.0, -poll, 0.9 * poll])), END_MARKER))
    return arrivals
