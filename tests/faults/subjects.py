"""What is damaged: a small trial and a small profiler output, and which bytes hold which points."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from smdbg_core import Finding, Reads, StepView, TensorRule, evaluate, open_run
from smdbg_core.errors import SmdbgError
from smdbg_core.runs.profiler import Batch, Profiler, ProfilerReader, Samples, open_profiler
from smdbg_core.testing import T0, ProfilerBuilder, TrialBuilder

__all__ = ["Judged", "Place", "Point", "Probe", "Subject", "judge", "profiler_output", "trial"]

Point: TypeAlias = tuple[Any, ...]
"""A judged point: step, worker, tensor and mean; or a sample; or an event."""


class Place(NamedTuple):
    """Where a point lies: these bytes of a file hold it."""

    begin: int
    end: int
    point: Point


class Judged(NamedTuple):
    """What came of judging a folder."""

    points: frozenset[Point]
    warnings: tuple[str, ...]
    errors: tuple[str, ...]
    """Rules that ended with an error, and why."""

    refused: str | None
    """The one line that says why nothing was judged."""


class Subject(NamedTuple):
    """A run whose files are damaged one by one."""

    name: str
    files: dict[str, bytes]
    places: dict[str, list[Place]]
    """Which points each file holds; damage elsewhere in a file costs at most all of them."""

    borders: dict[str, list[int]]
    """Offsets at which records of a file begin and end."""

    points: frozenset[Point]


class Probe(TensorRule):
    """Notes every tensor that is judged.

    Why it matters: what damage costs is counted in points.
    What to do: nothing.
    """

    seen: ClassVar[set[Point]] = set()

    def reads(self) -> Reads:
        return Reads(everything=True, statistics=("mean",))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            self.seen.add((step.step, tensor.worker, tensor.name, tensor.statistics.mean))
            yield from self.judge(tensor, "mean", tensor.statistics.mean, ">", 1e300)


def judge(folder: Path, *, every_rule: bool = True) -> Judged:
    """Judge a folder with a probe and with every rule; what cannot be opened is no exception."""
    Probe.seen.clear()
    warnings: list[str] = []
    errors: list[str] = []
    points: set[Point] = set()
    try:
        run = open_run(str(folder))
        if run.trial is not None:
            report = evaluate(run, rules=[Probe])
            warnings += report.warnings
            errors += [f"{one.name}: {one.reason}" for one in report.outcomes if one.status == "error"]
        if run.profiler is not None:
            reader = run.profiler.reader()
            points |= set(_points(reader, reader))
            warnings += [f"damaged: {one.file}: {one.detail}" for one in run.profiler.damage]
        warnings += run.problems
        if every_rule:
            report = evaluate(str(folder))
            warnings += report.warnings
            errors += [f"{one.name}: {one.traceback}" for one in report.outcomes if one.status == "error"]
    except SmdbgError as error:
        return Judged(frozenset(), tuple(warnings), tuple(errors), str(error))
    return Judged(frozenset(points | Probe.seen), tuple(warnings), tuple(errors), None)


def _points(reader: ProfilerReader, batches: Iterable[Batch]) -> Iterator[Point]:
    """Samples and events, in the order of reading."""
    for batch in batches:
        data = batch.data
        if isinstance(data, Samples):
            keys = reader.keys
            columns = (data.codes.tolist(), data.times.tolist(), data.values.tolist())
            yield from ((*keys[code], time, value) for code, time, value in zip(*columns, strict=True))
        elif data is not None:
            columns = (data.phases.tolist(), data.starts.tolist(), data.ends.tolist())
            yield from ((data.worker, *row) for row in zip(*columns, strict=True))


def trial(folder: Path) -> Subject:
    """Two workers, two modes, tensors of several shapes."""
    rng = np.random.default_rng(3)
    builder = TrialBuilder(workers=("worker_0", "worker_1"))
    for step in range(4):
        tensors = {
            "gradient/a.weight": rng.normal(size=(4, 3)).astype(np.float32),
            "a.bias": rng.normal(size=5),
            "CrossEntropyLoss_output_0": np.float32(2.0 - step / 10),
        }
        builder.step(step, tensors, mode="EVAL" if step == 3 else "TRAIN")
    builder.write(folder)
    files = _contents(folder)
    points = judge(folder, every_rule=False).points
    places: dict[str, list[Place]] = {name: [] for name in files}
    borders = {name: _json_borders(content) for name, content in files.items()}
    for name, content in files.items():
        if not name.startswith("index"):
            continue
        document = json.loads(content)
        event_file = document["meta"]["event_file_name"]
        borders[event_file] = []
        stem = Path(name).stem
        for entry in document["tensor_payload"]:
            begin, end = entry["start_idx"], entry["start_idx"] + entry["length"]
            borders[event_file] += [begin, begin + 12, end - 4, end]
            for point in points:
                if (int(stem[:12]), stem[13:], entry["tensorname"]) == point[:3]:
                    places[event_file].append(Place(begin, end, point))
                    places[name].append(Place(0, len(content), point))
    return Subject("trial", files, places, borders, points)


def profiler_output(folder: Path) -> Subject:
    """Two machines, metrics and steps over two minutes, and traces of PyTorch, plain and gzipped."""
    builder = ProfilerBuilder()
    for number, node in enumerate(("algo-1", "algo-2")):
        values = {("cpu0", "CPUUtilization"): [50.0 + n for n in range(12)]}
        values["gpu0", "GPUUtilization"] = [80.0 + n for n in range(12)]
        builder.ticks(values, node=node, interval=8.0)
        builder.steps([9.0 + number] * 8, writer=f"27-{node}")
    root = Path(builder.write(folder)) / "profiler-output"
    for rank, suffix in ((0, ""), (1, ".gz")):
        text = _pytorch(rank)
        content = gzip.compress(text, mtime=0) if suffix else text
        (root / f"host_{rank}.{T0}000.pt.trace.json{suffix}").write_bytes(content)
    files = _contents(root)
    profiler = open_profiler(str(root))
    places = {name: list(_lines(profiler, name, content)) for name, content in files.items()}
    borders = {name: _line_borders(content) for name, content in files.items()}
    return Subject("profiler output", files, places, borders, judge(root, every_rule=False).points)


def _lines(profiler: Profiler, name: str, content: bytes) -> Iterator[Place]:
    """Points of a file, each with the line that holds it; a packed file holds its points as a whole."""
    reader = profiler.reader()
    points = _points(reader, reader.read((0, file) for file in profiler.files if file.name == name))
    if name.endswith(".gz"):
        yield from (Place(0, len(content), point) for point in points)
        return
    at = 0
    for line in content.splitlines(keepends=True):
        if b'"ph": "X"' in line or b'"Timestamp"' in line:
            yield Place(at, at + len(line), next(points))
        at += len(line)


def _pytorch(rank: int) -> bytes:
    base = (T0 + 5) * 1_000_000
    events = [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"ProfilerStep#{n}",
            "pid": 1,
            "tid": 1,
            "ts": base + n * 1000,
            "dur": 900 + rank,
        }
        for n in range(8)
    ]
    rows = ",\n".join(json.dumps(event) for event in events)
    head = json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": rank}})[:-1]
    return f'{head}, "traceEvents": [\n{rows}\n]}}'.encode()


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _json_borders(content: bytes) -> list[int]:
    """Before and behind every object."""
    return [at + (byte == ord("}")) for at, byte in enumerate(content) if byte in b"{}"]


def _line_borders(content: bytes) -> list[int]:
    return [at + 1 for at, byte in enumerate(content) if byte == ord("\n")]
