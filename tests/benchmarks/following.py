"""Following: how soon a finding is told, what waiting costs, and memory over many steps."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from smdbg_core import TrialWriter, follow

__all__ = ["followed_memory", "idle_percent", "latencies"]


def latencies(folder: Path, steps: int = 40) -> list[float]:
    """Seconds from the rename of a step's index file to the finding, for each step; a step each 0.4 s or so."""
    written: dict[int, float] = {}
    told: dict[int, float] = {}
    rng = np.random.default_rng(0)

    def write() -> None:
        with TrialWriter(folder) as writer:
            for number in range(steps):
                time.sleep(rng.uniform(0.2, 0.6))
                with writer.step(number, mode="TRAIN") as step:
                    step.add("gradient/a.weight", np.full((256, 256), 1e-9, np.float32))
                written[number] = time.monotonic()

    job = threading.Thread(target=write)
    job.start()
    follow(
        folder,
        ["VanishingGradient"],
        on_finding=lambda _, finding: told.setdefault(finding.step or 0, time.monotonic()),  # type: ignore[func-returns-value]
    )
    job.join()
    return [told[number] - written[number] for number in sorted(written)]


_IDLE = """
import resource, sys, time
from smdbg_core import follow
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
marks = []
follow(sys.argv[1], ["VanishingGradient"], idle_timeout=float(sys.argv[2]),
       on_wait=lambda _: marks.append((time.monotonic(), used())))
(begin, before), (end, after) = marks[5], marks[-1]
print(100 * (after - before) / (end - begin))
"""

_MEMORY = """
import sys
from pathlib import Path
from smdbg_core import follow
from tests.benchmarks.following import OneByOne, resident
clock = OneByOne(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
follow(sys.argv[2], ["VanishingGradient", "ExplodingTensor", "LossNotDecreasing"], clock=clock, poll=1.0)
early, late = clock.marks[len(clock.marks) // 10], clock.marks[-1]
print(early, late, clock.seconds)
"""


def idle_percent(folder: Path, seconds: float = 20.0) -> float:
    """Percent of a core that following costs while nothing comes."""
    command = [sys.executable, "-c", _IDLE, str(folder), str(seconds)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def followed_memory(source: Path, target: Path, steps: int) -> tuple[float, float, float]:
    """MiB after a tenth of the steps and after all; and seconds for all. One step comes at each look."""
    command = [sys.executable, "-c", _MEMORY, str(source), str(target), str(steps)]
    early, late, took = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(early), float(late), float(took)


def resident() -> float:
    """Memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


class OneByOne:
    """A clock on which each wait brings one step of a finished trial."""

    def __init__(self, source: Path, target: Path, steps: int) -> None:
        self.marks: list[float] = []
        self.seconds = 0.0
        self._source = source
        self._target = target
        self._steps = steps
        self._now = 0.0
        self._begun = time.monotonic()

    def monotonic(self) -> float:
        """One second for each look."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Bring the next step, by hard links; after the last one the end marker."""
        self._now += seconds
        number = len(self.marks)
        names = [f"events/{number:012d}/{number:012d}_worker_0.tfevents"]
        names += [f"index/{number // 1000:09d}/{number:012d}_worker_0.json"]
        if self.seconds:
            return
        if number == self._steps:
            names = ["training_job_end.ts"]
            self.seconds = time.monotonic() - self._begun
        else:
            self.marks.append(resident())
        for name in names:
            (self._target / name).parent.mkdir(parents=True, exist_ok=True)
            (self._target / name).hardlink_to(self._source / name)
