"""Speed and memory on generated trials: `python -m tests.benchmarks [--data DIR] [--peer PYTHON]`.

Ratios are medians over several turns, each turn measuring the floor and the engine one after the other.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from smdbg_core import Finding, Reads, StepView, TensorRule, evaluate, open_trial
from tests.benchmarks.capture import capture_percent, step_microseconds, trace_figures, write_trace
from tests.benchmarks.data import write_large, write_many_small
from tests.benchmarks.floor import floor_seconds, spans_of
from tests.benchmarks.profiler import decode_seconds, judge_day, peer_rate, write_events
from tests.benchmarks.startup import discovery_milliseconds, help_ratio
from tests.profiler_day import write_day

_TURNS = 7
_ALL = ("size", "non_finite", "zeros", "min", "max", "mean", "variance", "mean_abs", "l2")


class FusedSet(TensorRule):
    """Judges the mean magnitude, with every statistic of the fused pass measured."""

    def reads(self) -> Reads:
        return Reads(collections=("gradients",), statistics=_ALL)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            yield from self.judge(tensor, "mean_abs", tensor.statistics.mean_abs, "<", 1e-7)


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def show(what: str, value: float, unit: str, target: str) -> None:
    print(f"{what:<58} {value:8.2f} {unit:<6} {target}", flush=True)


def large(path: Path) -> None:
    # Memory first: a child process counts the peak of its parent as its own.
    for what, rules in (("VanishingGradient", "['VanishingGradient']"), ("all rules", "None")):
        peak, growth = memory(path, rules)
        show(f"peak memory, {what}", peak, "MiB", "at most 80")
        show(f"growth of memory after step 20, {what}", growth, "MiB", "at most 2")
    trial = open_trial(str(path))
    names = trial.tensor_names()
    gradients = spans_of(trial, [name for name in names if name.startswith("gradient")])
    everything = spans_of(trial, names)
    cases: list[tuple[str, Callable[[], object], list[tuple[str, int, int]], str]] = [
        (
            "VanishingGradient over the gradients",
            lambda: evaluate(path, ["VanishingGradient"]),
            gradients,
            "0.9",
        ),
        ("the whole fused set over the gradients", lambda: evaluate(path, [FusedSet()]), gradients, "1.3"),
        ("all rules that apply without parameters", lambda: evaluate(path), everything, "1.8"),
    ]
    for what, run, spans, target in cases:
        run()
        ratios = []
        for _ in range(_TURNS):
            floor = floor_seconds(spans)
            ratios.append(seconds(run) / floor)
        show(what, statistics.median(ratios), "floor", f"at most {target}")


def memory(path: Path, rules: str) -> tuple[float, float]:
    """Peak resident memory of a fresh process, and how much it grew after step 20."""
    code = (
        "import resource; from smdbg_core import evaluate\n"
        "peaks = []\n"
        "note = lambda done, total: peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
        f"evaluate({str(path)!r}, {rules}, on_step=note)\n"
        "print(peaks[-1], peaks[-1] - peaks[20])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak, growth = map(float, done.stdout.split())
    return peak, growth


def many_small(path: Path, peer: str | None) -> None:
    cases: dict[str, tuple[Callable[[], object], int]] = {
        "index": (lambda: open_trial(str(path)), 50),
        "values": (lambda: sum(1 for _ in open_trial(str(path)).values()), 35),
        "rule": (lambda: evaluate(path, ["VanishingGradient"]), 20),
    }
    for case, (run, target) in cases.items():
        run()
        ours = statistics.median(seconds(run) for _ in range(_TURNS))
        show(f"120,000 tensors of 64 numbers: {case}", ours * 1000, "ms", "")
        if peer is not None:
            theirs = []
            for _ in range(3):
                command = [peer, str(Path(__file__).parent / "peer.py"), case, str(path)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                theirs.append(float(done.stdout.split()[-1]))
            show(
                f"  smdebug {statistics.median(theirs):.2f} s, times as fast",
                statistics.median(theirs) / ours,
                "x",
                f"at least {target}",
            )


def profiled(folder: Path, peer: str | None) -> None:
    day = folder / "day"
    if not (day / "profiler-output").exists():
        write_day(day, healthy=False, interval=1.0)
    elapsed, peak, growth = judge_day(day)
    size = sum(path.stat().st_size for path in day.rglob("*.json")) / 1e6
    show(f"a day of 16 GPUs, {size:.0f} MB, all rules", elapsed, "s", "")
    show("  peak memory", peak, "MiB", "at most 80")
    show("  growth of memory in the second half", growth, "MiB", "at most 2")
    events = folder / "events"
    if not events.exists():
        write_events(events)
    for kind, target in (("metrics", 12), ("trace", 15)):
        decode_seconds(events, kind)
        runs = [decode_seconds(events, kind) for _ in range(_TURNS)]
        rate = statistics.median(size / elapsed for elapsed, size in runs)
        show(f"decoding {kind}", rate, "MB/s", "")
        if peer is not None:
            theirs = statistics.median(peer_rate(peer, events, kind) for _ in range(3))
            show(f"  smdebug {theirs:.1f} MB/s, times as fast", rate / theirs, "x", f"at least {target}")


def captured(folder: Path) -> None:
    for interval, target in ((0.5, "below 1"), (0.1, "")):
        percent, start = capture_percent(interval)
        show(f"smdbg capture every {interval} s, of one core", percent, "%", target)
        show("  processor time to start", start, "s", "")
    show("a step of a timeline", step_microseconds(), "us", "microseconds")
    trace = folder / "trace.pt.trace.json"
    if not trace.exists():
        write_trace(trace)
    for path in (trace, Path(f"{trace}.gz")):
        events, elapsed, peak, added = trace_figures(path)
        show(f"reading {events} events of {trace.stat().st_size / 1e6:.0f} MB{path.suffix}", elapsed, "s", "")
        show("  peak memory", peak, "MiB", "at most 80")
        show("  of it added by reading", added, "MiB", "")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description="Speed and memory, as ratios."
    )
    parser.add_argument("--data", type=Path, help="folder to keep the generated trials in")
    parser.add_argument("--peer", help="an interpreter that has smdebug 1.0.34")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.data or Path(temporary)
        for name, write in (("large", write_large), ("many_small", write_many_small)):
            if not (folder / name / "training_job_end.ts").exists():
                write(folder / name)
        captured(folder)
        profiled(folder, arguments.peer)
        large(folder / "large")
        many_small(folder / "many_small", arguments.peer)
        for count in (40, 400):
            show(
                f"smdbg --help beside {count} distributions",
                help_ratio(Path(temporary), count),
                "numpy",
                "at most 0.8",
            )
        for what, group in (("", "console_scripts"), (" with a rule each", "smdbg.rules")):
            milliseconds = discovery_milliseconds(Path(temporary), 400, group)
            show(f"finding plugins among 400 distributions{what}", milliseconds, "ms", "below 300")


if __name__ == "__main__":
    main()
