"""What capturing and timing cost, and how fast a trace of PyTorch is read."""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from smdbg_core import TimelineWriter

__all__ = ["capture_percent", "step_microseconds", "trace_figures", "write_trace"]

_READ = """
import sys, time
from smdbg_core.runs.profiler import Events, open_profiler

def peak():
    # Not `ru_maxrss`: a child process counts the peak of its parent as its own.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

before = peak()
started = time.perf_counter()
events = sum(len(b.data.starts) for b in open_profiler(sys.argv[1]).reader() if isinstance(b.data, Events))
print(events, time.perf_counter() - started, peak(), peak() - before)
"""


def capture_percent(interval: float, seconds: tuple[int, int] = (5, 45)) -> tuple[float, float]:
    """Processor time of `smdbg capture`, in percent of one core, and once to start, in seconds.

    The command sleeps; two lengths are compared, so that what starting costs is told apart.
    """
    short, long = (_processor_seconds(interval, length) for length in seconds)
    slope = (long - short) / (seconds[1] - seconds[0])
    return 100 * slope, short - slope * seconds[0]


def _processor_seconds(interval: float, seconds: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [
                Path(sys.executable).with_name("smdbg"),
                *("capture", "--interval", str(interval), "--output", folder, "sleep", str(seconds)),
            ],
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def step_microseconds(steps: int = 50_000) -> float:
    """What a step of a timeline costs beyond the loop itself."""
    with tempfile.TemporaryDirectory() as folder, TimelineWriter(folder) as timeline:
        started = time.perf_counter()
        for _ in range(steps):
            pass
        empty = time.perf_counter() - started
        started = time.perf_counter()
        for number in range(steps):
            with timeline.step(number):
                pass
        return (time.perf_counter() - started - empty) / steps * 1e6


def write_trace(path: Path, megabytes: int = 100) -> None:
    """A trace as PyTorch's profiler writes it: the test's real one, its events repeated."""
    data = Path(__file__).parents[1] / "core" / "runs" / "profiler" / "data" / "rank0.pt.trace.json.gz"
    whole = json.loads(gzip.decompress(data.read_bytes()))
    events = whole.pop("traceEvents")
    head = json.dumps(whole, indent=2).rstrip("}\n ")
    copies = 0
    with path.open("w") as file:
        file.write(head + ',\n  "traceEvents": [\n')
        while file.tell() < megabytes * 1_000_000:
            text = json.dumps([{**event, "ts": event["ts"] + 26_000 * copies} for event in events], indent=2)
            file.write((",\n" if copies else "") + text.strip("[]\n"))
            copies += 1
        file.write('\n  ], "traceName": "trace"\n}')
    Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes(), 6))


def trace_figures(path: Path) -> tuple[int, float, float, float]:
    """Events, seconds to read them, peak memory in MiB, and how much of it reading added."""
    done = subprocess.run([sys.executable, "-c", _READ, path], capture_output=True, text=True, check=True)
    events, elapsed, peak, added = done.stdout.split()
    return int(events), float(elapsed), float(peak), float(added)
