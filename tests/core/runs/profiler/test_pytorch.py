"""Reading traces of PyTorch's profiler."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from smdbg_core import MissingDataError, Profiler, evaluate, open_run
from smdbg_core.runs.profiler import Events, open_profiler
from smdbg_core.runs.profiler import pytorch as reader_module
from smdbg_core.runs.profiler import trace_text as module

DATA = Path(__file__).parent / "data"
"""Traces that PyTorch 2.13 wrote: two ranks with gloo, four steps each; names of the machine are replaced."""

BASE = 1_790_857_026_000_000


def events(profiler: Profiler) -> list[Events]:
    return [batch.data for batch in profiler.reader() if isinstance(batch.data, Events)]


def phases(profiler: Profiler) -> Counter[str]:
    return Counter(phase for batch in events(profiler) for phase in batch.phases.tolist())


def row(name: str, cat: str, ts: float = 10.0, dur: float = 5.0, pid: Any = 7, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 1, "ts": ts, "dur": dur, **more}


def text(rows: list[dict[str, Any]], **header: Any) -> bytes:
    """As the profiler writes it: an event over several lines, something behind the events."""
    known = {"schemaVersion": 1, "baseTimeNanoseconds": BASE * 1000, "host_name": "box"} | header
    head = json.dumps(known)[:-1]
    body = ",\n  ".join(json.dumps(one, indent=2) for one in rows)
    return (head + ',\n "traceEvents": [\n\n  ' + body + '\n  ],"traceName": "a[1].json"}').encode()


def write(tmp_path: Path, content: bytes, name: str = "x.pt.trace.json") -> Profiler:
    path = tmp_path / name
    path.write_bytes(content)
    return open_profiler(str(path))


def test_real_traces_of_two_ranks_are_one_run() -> None:
    profiler = open_run(str(DATA)).profiler
    assert profiler is not None
    assert (profiler.nodes, profiler.count("pytorch")) == (("host",), 2)
    by_worker: dict[str, Counter[str]] = {}
    for batch in events(profiler):
        by_worker.setdefault(batch.worker, Counter()).update(batch.phases.tolist())
    assert sorted(by_worker) == ["host-0", "host-1"]
    # Counted with `json` in the same file.
    assert by_worker["host-0"] == {
        "cpu_functions": 864,
        "Step:ModeKeys.TRAIN": 4,
        "DataLoaderIter": 4,
        "Communication": 4,
        "UserAnnotation": 4,
        "Optimizer.zero_grad": 4,
        "Optimizer.step": 4,
    }
    assert profiler.damage == []


def test_real_steps_have_their_numbers_and_times() -> None:
    profiler = open_profiler(str(DATA / "rank0.pt.trace.json.gz"))
    steps = [
        (args.step_num, start, end)
        for batch in events(profiler)
        for phase, args, start, end in zip(batch.phases, batch.args, batch.starts, batch.ends, strict=True)
        if phase.startswith("Step")
    ]
    assert min(steps) == (2, BASE + 5273218451106, BASE + 5273218461985)
    assert [number for number, *_ in sorted(steps)] == [2, 3, 4, 5]


def test_real_traces_are_judged() -> None:
    report = evaluate(str(DATA), ["OverallFrameworkMetrics"])
    (outcome,) = report.outcomes
    assert outcome.status == "clean"
    assert outcome.measurements is not None
    found = outcome.measurements.details
    assert set(found["phase"]) == {"Step:ModeKeys.TRAIN", "others"}
    assert "aten::linear" in found["CPU"]
    assert "Communication" in found["general"]


def test_events_of_devices(tmp_path: Path) -> None:
    rows = [
        row("ampere_sgemm", "kernel", pid=1),
        row("Memcpy HtoD", "gpu_memcpy", pid=1),
        row("ncclDevKernel_AllReduce_Sum_f32", "kernel", pid=1),
        row("cudaLaunchKernel", "cuda_runtime"),
        row("nccl:all_reduce", "user_annotation"),
        # The same time once more, or none.
        row("ProfilerStep#3", "gpu_user_annotation", pid=1),
        row("train.py(3): main", "python_function"),
        row("PyTorch Profiler (0)", "Trace", pid="Spans"),
        {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "ts": 1, "args": {"Bytes": 8}},
        {"ph": "s", "id": 1, "name": "ac2g", "cat": "ac2g", "ts": 1},
    ]
    assert phases(write(tmp_path, text(rows))) == {
        "gpu_functions-dev:1": 2,
        "Communication": 1,
        "cuda_runtime": 1,
        "UserAnnotation": 1,
    }


def test_earlier_versions_wrote_absolute_times_and_other_names(tmp_path: Path) -> None:
    rows = [row("aten::add", "Operator", ts=float(BASE)), row("gemm", "Kernel", ts=float(BASE), pid=0)]
    rows += [row("ProfilerStep#0", "cpu_op", ts=float(BASE))]
    content = json.dumps({"schemaVersion": 1, "traceEvents": rows}).encode()
    (batch,) = events(write(tmp_path, content))
    assert batch.phases.tolist() == ["cpu_functions", "gpu_functions-dev:0", "Step:ModeKeys.TRAIN"]
    assert batch.starts.tolist() == [BASE] * 3


@pytest.mark.parametrize(
    ("name", "header", "worker"),
    [
        ("box_41.1700000000123.pt.trace.json", {}, "box-41"),
        ("box_41.1700000000123.pt.trace.json", {"distributedInfo": {"rank": 3}}, "box-3"),
        ("rank12.pt.trace.json", {}, "box-12"),
        ("trace.json", {}, "box-trace"),
        ("box_41.pt.trace.json", {"host_name": None}, "box-41"),
    ],
)
def test_workers(tmp_path: Path, name: str, header: dict[str, Any], worker: str) -> None:
    profiler = write(tmp_path, text([row("a", "cpu_op")], **header), name)
    assert profiler.files[0].worker == worker
    assert profiler.nodes == ("box",)
    assert profiler.start == BASE + 10


def test_folders_are_searched_by_name_and_content(tmp_path: Path) -> None:
    for name in ("trace_0.json", "trace_1.json", "config.json", "a_trace_of_nothing.json"):
        content = text([row("a", "cpu_op")]) if name.startswith("trace_") else b"{}"
        (tmp_path / name).write_bytes(content)
    profiler = open_run(str(tmp_path)).profiler
    assert profiler is not None
    assert [file.name for file in profiler.files] == ["trace_0.json", "trace_1.json"]


def test_system_metrics_and_traces_are_one_run(tmp_path: Path) -> None:
    shutil.copy(DATA / "rank0.pt.trace.json.gz", tmp_path)
    (tmp_path / "system").mkdir()
    line = '{"Type":"cpu","Name":"cpu0","Dimension":"CPUUtilization","Value":9,"NodeId":"algo-1","Timestamp":%d.5}\n'
    (tmp_path / "system" / "1796130240.algo-1.json").write_text(line % 1796130240)
    profiler = open_run(str(tmp_path)).profiler
    assert profiler is not None
    assert [file.kind for file in profiler.files] == ["metrics", "pytorch"]


@pytest.mark.parametrize("block", [1, 64, 1000, 1 << 20])
@pytest.mark.parametrize("layout", ["pretty", "dense", "gzip"])
def test_borders_are_found_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, layout: str
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    rows = [
        row("plain", "cpu_op"),
        row("a string with },{ in it", "cpu_op"),
        row("nested", "cpu_op", args={"shapes": [{"a": 1}, {"b": [{}, {}]}], "text": "}, {"}),
        row('quoted " } , { \\', "cpu_op"),
        row("last", "cpu_op"),
    ] * 5
    content = text(rows)
    if layout == "dense":
        content = json.dumps({"traceEvents": rows, "schemaVersion": 1}, separators=(",", ":")).encode()
    if layout == "gzip":
        content = gzip.compress(content)
    profiler = write(tmp_path, content)
    assert [name for batch in events(profiler) for name in batch.names.tolist()] == [
        one["name"] for one in rows
    ]
    assert profiler.damage == []


@pytest.mark.parametrize("packed", [False, True])
def test_a_cut_trace_keeps_its_events(tmp_path: Path, packed: bool) -> None:
    content = (DATA / "rank0.pt.trace.json.gz").read_bytes()
    if packed:
        profiler = write(tmp_path, content[: len(content) // 2], "x.pt.trace.json.gz")
    else:
        profiler = write(tmp_path, gzip.decompress(content)[:100_000])
    assert 300 < sum(phases(profiler).values()) < 600
    assert {damage.kind for damage in profiler.damage} == {"cut"}
    assert any(damage.offset is not None for damage in profiler.damage)


def test_broken_events_cost_themselves(tmp_path: Path) -> None:
    rows = [row(name, "cpu_op") for name in "abcdef"]
    content = text(rows).replace(b'"name": "b"', b'"name": 5').replace(b'"name": "d"', b'"name": oops')
    content = content.replace(b'"name": "f"', b'"name": "f')
    profiler = write(tmp_path, content)
    assert [name for batch in events(profiler) for name in batch.names.tolist()] == ["a", "c", "e"]
    assert sorted(damage.kind for damage in profiler.damage) == ["not JSON", "not JSON", "row"]
    first = min(damage.offset or 0 for damage in profiler.damage)
    place = content.index(b'"name": 5')
    assert place - 60 < first < place


@pytest.mark.parametrize("bad", ["-1e300", "1e300", "1e12000"])
def test_events_at_no_time_are_left_out(tmp_path: Path, bad: str) -> None:
    content = text([row("a", "cpu_op"), row("b", "cpu_op", ts=77.5)]).replace(b"77.5", bad.encode())
    profiler = write(tmp_path, content)
    assert [name for batch in events(profiler) for name in batch.names.tolist()] == ["a"]
    assert [damage.kind for damage in profiler.damage] in (["row"], ["not JSON"])


def test_gzip_bombs_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEAST", 1 << 16)
    content = text([row("a", "cpu_op")]) + b" " * (1 << 26)
    profiler = write(tmp_path, gzip.compress(content))
    assert sum(phases(profiler).values()) <= 1
    assert "length" in {damage.kind for damage in profiler.damage}


def test_an_event_without_an_end_takes_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST", 1 << 12)
    monkeypatch.setattr(module, "_BLOCK", 1 << 10)
    profiler = write(tmp_path, text([row("a", "cpu_op"), row("x" * (1 << 16), "cpu_op")]))
    assert sum(phases(profiler).values()) <= 1
    assert [damage.kind for damage in profiler.damage] == ["length"]


@pytest.mark.parametrize(
    "content", [b"", b"\x1f\x8b", b"{}", b'{"traceEvents": {}}', gzip.compress(b"{}"), b"{" * 10_000]
)
def test_what_is_no_trace_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.pt.trace.json").write_bytes(content)
    profiler = open_run(str(tmp_path)).profiler
    assert profiler is not None
    assert events(profiler) == []
    assert len(profiler.damage) == 1


def test_an_empty_trace_is_no_damage(tmp_path: Path) -> None:
    profiler = write(tmp_path, b'{"schemaVersion": 1, "traceEvents": []}')
    assert events(profiler) == []
    assert profiler.damage == []


def test_other_json_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("hello")
    with pytest.raises(MissingDataError, match="traceEvents"):
        open_profiler(str(tmp_path / "x.json"))


def test_names_do_not_fill_the_memory(tmp_path: Path) -> None:
    reader = reader_module.PytorchReader()
    profiler = write(tmp_path, text([row("same", "cpu_op")] * 500))
    with profiler.storage.open(profiler.files[0].name) as file:
        names = [name for batch in reader.read(profiler.files[0], file) for name in batch.names.tolist()]
    assert len({id(name) for name in names}) == 1
