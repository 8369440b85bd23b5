"""Profiler output for benchmarks: decoding alone, and a whole day judged."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from smdbg_core.runs.profiler import open_profiler

__all__ = ["decode_seconds", "judge_day", "peer_rate", "write_events"]


def write_events(folder: Path, files: int = 700) -> None:
    """Trace files as small as real ones, 700 model timelines with 700 events each, and metrics beside them."""
    start = 1_700_006_400
    for number in range(files):
        end = start * 1_000_000 + (number + 1) * 10_000_000
        hour = folder / "framework" / "pevents" / time.strftime("%Y%m%d%H", time.gmtime(end // 1_000_000))
        hour.mkdir(parents=True, exist_ok=True)
        base = {"start_time_since_epoch_in_micros": end - 10_000_000}
        rows = [
            {"name": "process_name", "ph": "M", "pid": 0, "args": base},
            {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "DataIterator"}},
        ]
        rows += [
            {"ph": "X", "name": "dataset::GetNext", "ts": n * 14_000, "pid": 1, "dur": 29 + n}
            for n in range(700)
        ]
        text = "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]"
        (hour / f"{end}_905-algo-1_model_timeline.json").write_text(text)
    ticks = files * 20
    for minute in range(ticks // 120):
        at = start + 60 * minute
        hour = folder / "system" / "incremental" / time.strftime("%Y%m%d%H", time.gmtime(at))
        hour.mkdir(parents=True, exist_ok=True)
        rows = [
            {
                "Type": "cpu",
                "Name": f"cpu{core}",
                "Dimension": "CPUUtilization",
                "Value": (tick * 7 + core * 13) % 101,
                "NodeId": "algo-1",
                "Timestamp": at + tick * 0.5 + 0.232195,
            }
            for tick in range(120)
            for core in range(32)
        ]
        (hour / f"{at}.algo-1.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def decode_seconds(folder: Path, kind: str) -> tuple[float, float]:
    """Seconds to decode all files of `metrics` or `trace`, and their megabytes."""
    profiler = open_profiler(str(folder))
    size = sum((folder / file.name).stat().st_size for file in profiler.files if file.kind == kind)
    started = time.perf_counter()
    reader = profiler.reader(None if kind == "metrics" else (), events=kind == "trace")
    for _ in reader:
        pass
    return time.perf_counter() - started, size / 1e6


def peer_rate(peer: str, folder: Path, kind: str) -> float:
    """Megabytes a second that smdebug decodes."""
    command = [peer, str(Path(__file__).parent / "peer.py"), kind, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    part = folder / ("system" if kind == "metrics" else "framework")
    size = sum(path.stat().st_size for path in part.rglob("*.json"))
    return size / 1e6 / float(done.stdout.split()[-1])


def judge_day(path: Path) -> tuple[float, float, float]:
    """Seconds to judge a day with all rules in a fresh process, its peak memory, and what the second half added."""
    code = (
        "import resource, time; from smdbg_core import evaluate\n"
        "import smdbg_core.engine.window_judge as judge\n"
        "peaks = []\n"
        "window = judge.WindowJudge.window\n"
        "def note(self, one):\n"
        "    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
        "    return window(self, one)\n"
        "judge.WindowJudge.window = note\n"
        "started = time.perf_counter()\n"
        f"evaluate({str(path)!r})\n"
        "print(time.perf_counter() - started, peaks[-1], peaks[-1] - peaks[len(peaks) // 2])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    elapsed, peak, growth = map(float, done.stdout.split())
    return elapsed, peak, growth
