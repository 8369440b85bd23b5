"""Reading profiler output."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from smdbg_core import Events, MissingDataError, Profiler, evaluate, open_run
from smdbg_core.runs.profiler import Samples, open_profiler
from smdbg_core.runs.profiler.files import classify
from tests.profiler_job import T0, Job

LINE = '{{"Type":"cpu","Name":"cpu0","Dimension":"CPUUtilization","Value":{},"NodeId":"algo-1","Timestamp":{}}}\n'


def samples(profiler: Profiler) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Types, times and values of everything, in the order of reading."""
    reader = profiler.reader()
    parts = [batch.data for batch in reader if isinstance(batch.data, Samples)]
    keys = reader.keys
    joined = Samples.join(parts)
    return [keys[code].type for code in joined.codes], joined.times, joined.values


def events(profiler: Profiler) -> list[Events]:
    return [batch.data for batch in profiler.reader() if isinstance(batch.data, Events)]


def column(batches: list[Events], name: str) -> np.ndarray:
    return np.concatenate([getattr(batch, name) for batch in batches])


# What the public tests of the service's client library state of its own sample files.


def test_sample_metrics(shared_data: Path) -> None:
    types, times, _ = samples(open_profiler(f"{shared_data}/profiler/1591160699.algo-1.json"))
    assert (len(types), types.count("cpu")) == (14, 4)
    assert np.count_nonzero(times <= 1591167699_957200) == 11
    assert np.count_nonzero(times >= 1591169699_457900) == 2


def test_a_cut_line_costs_itself(shared_data: Path) -> None:
    profiler = open_profiler(f"{shared_data}/profiler/1591160699.algo-1.json.corrupt")
    types, _, _ = samples(profiler)
    assert (len(types), types.count("cpu")) == (13, 4)
    (damage,) = profiler.damage
    assert (damage.kind, damage.file) == ("cut", "1591160699.algo-1.json.corrupt")
    assert damage.offset is not None


def test_sample_job(shared_data: Path) -> None:
    profiler = open_profiler(f"{shared_data}/profiler/test_traces")
    types, times, _ = samples(profiler)
    assert (len(types), types.count("cpu")) == (78, 68)
    assert np.count_nonzero((times >= 1591100000_000000) & (times <= 1591167699_000000)) == 10
    assert np.count_nonzero(times >= 1591748165_000000) == 32
    batches = events(profiler)
    assert sorted(column(batches, "names")) == ["event1", "event2", "event3", "event4"]
    assert [args.step_num for args in column(batches, "args")] == [1, 2, 3, 4]


def test_sample_timeline(shared_data: Path) -> None:
    name = "1589314018481947000_1234-testhost_model_timeline.json"
    profiler = open_profiler(f"{shared_data}/profiler/{name}")
    assert profiler.files[0].time == 1589314018_481947
    batches = events(profiler)
    starts, ends = column(batches, "starts"), column(batches, "ends")
    assert (len(starts), starts.min(), ends.max()) == (49, 1589314018_458743, 1589314018_481947)
    assert np.count_nonzero(starts <= 1589314018_470000) == 39


def test_sample_model_timelines(shared_data: Path) -> None:
    profiler = open_profiler(f"{shared_data}/profiler/model_timeline_traces")
    batches = events(profiler)
    starts, ends = column(batches, "starts"), column(batches, "ends")
    assert np.count_nonzero((ends >= 1590461127_873222) & (starts <= 1590461139_949971)) == 54
    assert profiler.nodes == ("0001",)


def test_sample_horovod(shared_data: Path) -> None:
    profiler = open_profiler(f"{shared_data}/profiler/horovod_timeline_traces")
    batches = [b for b in events(profiler) if b.ends.max() == 1593673051_473228 or len(b.starts) > 5]
    starts, ends = column(batches, "starts"), column(batches, "ends")
    assert (len(starts), starts.min(), ends.max()) == (19, 1592860696_000713, 1593673051_473228)
    assert np.count_nonzero((ends >= 1593673051_473000) & (starts <= 1593673051_473228)) == 12
    assert {batch.source for batch in batches} == {"horovod"}


# What the format allows and what goes wrong.


def test_names_say_what_files_are() -> None:
    assert classify("system/incremental/2020010100/1591160699.algo-12.json").node == "algo-12"  # type: ignore[union-attr]
    trace = classify("framework/pevents/x/1594662624718694_27-algo-1_pythontimeline.json")
    assert trace is not None
    assert (trace.node, trace.worker, trace.source, trace.time) == (
        "algo-1",
        "algo-1-27",
        "python",
        1594662624718694,
    )
    old = classify("1589930988000000_4487_0000_pythontimeline.json")
    assert old is not None
    assert (old.node, old.worker) == ("4487", "4487")
    for name in (
        "27-algo-1_pythontimeline.tmp",
        "1594662624718694_x_merged_timeline.json",
        "x.json",
        "1.algo-1.json",
    ):
        assert classify(name) is None


def test_text_decides_the_microsecond(tmp_path: Path) -> None:
    path = tmp_path / f"{T0}.algo-1.json"
    path.write_text("".join(LINE.format(1, f"{T0}.{micros:06}") for micros in range(0, 1_000_000, 9973)))
    _, times, _ = samples(open_profiler(str(path)))
    assert times.tolist() == [T0 * 1_000_000 + micros for micros in range(0, 1_000_000, 9973)]


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "null", '"many"', "[]", "1e999", "-"])
def test_bad_values_cost_their_line(tmp_path: Path, bad: str) -> None:
    path = tmp_path / f"{T0}.algo-1.json"
    path.write_text(LINE.format(1, T0 + 1) + LINE.format(bad, T0 + 2) + LINE.format(3, T0 + 3))
    profiler = open_profiler(str(path))
    _, _, values = samples(profiler)
    assert values.tolist() == [1, 3]
    assert [damage.kind for damage in profiler.damage] in (["row"], ["not JSON"], [])


@pytest.mark.parametrize("time", ["-5", "1e300", "1e12", "null", '"now"'])
def test_bad_times_cost_their_line(tmp_path: Path, time: str) -> None:
    path = tmp_path / f"{T0}.algo-1.json"
    path.write_text(LINE.format(1, time) + LINE.format(3, T0 + 3))
    _, _, values = samples(open_profiler(str(path)))
    assert values.tolist() == [3]


@pytest.mark.parametrize("text", [b"", b"\n\n", b"\xff\xfe\x00", b"[" * 100_000, b'{"a":' * 5000])
def test_what_is_no_metrics_file_is_named(tmp_path: Path, text: bytes) -> None:
    root = tmp_path / "system"
    root.mkdir()
    (root / f"{T0}.algo-1.json").write_bytes(text)
    (root / f"{T0 + 60}.algo-1.json").write_text(LINE.format(3, T0 + 60))
    profiler = open_profiler(str(tmp_path))
    _, _, values = samples(profiler)
    assert values.tolist() == [3]
    assert len(profiler.damage) == (0 if text.isspace() else 1)


def test_long_files_come_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / f"{T0}.algo-1.json"
    path.write_text("".join(LINE.format(n % 100, T0 + n / 1000) for n in range(30_000)))
    reader = open_profiler(str(path)).reader()
    sizes = [len(batch.data.times) for batch in reader if isinstance(batch.data, Samples)]
    assert sum(sizes) == 30_000
    assert len(sizes) > 2


def test_copies_of_a_file_are_read_once(tmp_path: Path) -> None:
    for folder in ("system/incremental", "system/incremental/2020010100"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / f"{T0}.algo-1.json").write_text(LINE.format(3, T0))
    profiler = open_profiler(str(tmp_path))
    _, _, values = samples(profiler)
    assert values.tolist() == [3]
    assert [damage.kind for damage in profiler.damage] == ["duplicate"]


TRACE = [
    {
        "name": "process_name",
        "ph": "M",
        "pid": 0,
        "args": {"start_time_since_epoch_in_micros": T0 * 1_000_000},
    },
    {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "Forward"}},
    {"name": "a", "ph": "X", "pid": 1, "ts": 10, "dur": 5},
    {"name": "b", "ph": "X", "pid": 2, "ts": 20.5, "dur": 5, "args": {"step_num": "7"}},
]


def trace(tmp_path: Path, text: str, worker: str = "27-algo-1", end: int = T0 * 1_000_000 + 999) -> Path:
    folder = tmp_path / "framework" / "pevents"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{end}_{worker}_pythontimeline.json"
    path.write_text(text)
    return path


def test_events_have_phases_and_absolute_times(tmp_path: Path) -> None:
    trace(tmp_path, json.dumps(TRACE))
    (batch,) = events(open_profiler(str(tmp_path)))
    assert batch.phases.tolist() == ["Forward", "Unknown"]
    assert (batch.starts - T0 * 1_000_000).tolist() == [10, 20]
    assert (batch.ends - batch.starts).tolist() == [5, 6]
    assert batch.args[1].step_num == "7"


@pytest.mark.parametrize("indent", [None, 2])
def test_any_layout_of_the_array_is_read(tmp_path: Path, indent: int | None) -> None:
    trace(tmp_path, json.dumps(TRACE, indent=indent))
    assert column(events(open_profiler(str(tmp_path))), "names").tolist() == ["a", "b"]


@pytest.mark.parametrize("cut", ["", ",", ",\n", ',\n{"name": "c", "ph": "X", "pi'])
def test_a_trace_that_is_not_closed_keeps_its_events(tmp_path: Path, cut: str) -> None:
    trace(tmp_path, "[\n" + ",\n".join(map(json.dumps, TRACE)) + cut)
    profiler = open_profiler(str(tmp_path))
    assert column(events(profiler), "names").tolist() == ["a", "b"]
    assert [damage.kind for damage in profiler.damage] == ["cut"]


def test_a_broken_line_costs_itself(tmp_path: Path) -> None:
    rows = [*map(json.dumps, TRACE)]
    rows.insert(3, '{"name": 5, "ph": "X"}')
    rows.insert(3, '{"name": oops')
    trace(tmp_path, "[\n" + ",\n".join(rows) + "\n]")
    profiler = open_profiler(str(tmp_path))
    assert column(events(profiler), "names").tolist() == ["a", "b"]
    assert sorted(damage.kind for damage in profiler.damage) == ["not JSON", "row"]


def test_beginnings_and_ends_are_paired_across_files(tmp_path: Path) -> None:
    def row(ph: str, ts: int, name: str = "") -> dict[str, object]:
        return {"ph": ph, "pid": 1, "ts": ts, "name": name}

    trace(tmp_path, json.dumps([*TRACE[:2], row("E", 1), row("B", 2, "out"), row("B", 3, "in"), row("E", 4)]))
    trace(tmp_path, json.dumps([*TRACE[:2], row("E", 9)]), end=T0 * 1_000_000 + 2000)
    batches = events(open_profiler(str(tmp_path)))
    assert column(batches, "names").tolist() == ["in", "out"]
    assert (column(batches, "ends") - column(batches, "starts")).tolist() == [1, 7]


def test_later_bases_and_phases_replace_earlier_ones(tmp_path: Path) -> None:
    again = [{**TRACE[0], "args": {"start_time_since_epoch_in_micros": T0 * 1_000_000 + 100}}, TRACE[2]]
    trace(tmp_path, json.dumps([*TRACE[:3], *again]))
    assert (column(events(open_profiler(str(tmp_path))), "starts") - T0 * 1_000_000).tolist() == [10, 110]


def tensorflow(tmp_path: Path, content: bytes, metadata: bool = True) -> Profiler:
    step = tmp_path / "framework/tensorflow/detailed_profiling/2020080900/000000005"
    folder = step / "plugins/profile/2020_08_09_00_00_00"
    folder.mkdir(parents=True)
    (folder / "host.trace.json.gz").write_bytes(content)
    if metadata:
        (step / f"80807-algo-1_{T0}000000_{T0 + 9}000000.metadata").touch()
    return open_profiler(str(tmp_path))


def test_tensorflow_traces_are_placed_by_their_metadata(tmp_path: Path) -> None:
    rows = [{"ph": "M", "pid": 7, "name": "process_name", "args": {"name": "/device:GPU:0"}}]
    rows += [{"ph": "X", "pid": 7, "tid": 1, "ts": 21.5, "dur": 4, "name": "kernel"}, {}]  # type: ignore[dict-item]
    content = gzip.compress(json.dumps({"displayTimeUnit": "ns", "traceEvents": rows}).encode())
    (batch,) = events(tensorflow(tmp_path, content))
    assert (batch.worker, batch.node, batch.source) == ("algo-1-80807", "algo-1", "tf_profiler")
    assert batch.phases.tolist() == ["/device:GPU:0"]
    assert (batch.starts - T0 * 1_000_000).tolist() == [22]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"no gzip", "not gzip"),
        (gzip.compress(b"{}"), "not JSON"),
        (gzip.compress(b'{"traceEvents": []}' * 9)[:-9], "cut"),
    ],
)
def test_damaged_tensorflow_traces_are_named(tmp_path: Path, content: bytes, kind: str) -> None:
    profiler = tensorflow(tmp_path, content)
    assert events(profiler) == []
    assert [damage.kind for damage in profiler.damage] == [kind]


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smdbg_core.runs.profiler.tensorflow._LARGEST", 1 << 16)
    profiler = tensorflow(tmp_path, gzip.compress(b" " * (1 << 20)))
    assert events(profiler) == []
    assert [damage.kind for damage in profiler.damage] == ["length"]


def test_a_job_has_both_kinds_of_data(tmp_path: Path, sick_trial: str) -> None:
    job = Path(Job().ticks({("cpu0", "CPUUtilization"): [1]}).write(tmp_path / "job"))
    Path(sick_trial).rename(job / "debug-output")
    run = open_run(str(job))
    assert run.has == ["trial", "profiler"]
    assert run.profiler is not None
    assert run.profiler.ended


def test_what_is_no_profiler_output_is_said(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(MissingDataError, match="neither system metrics"):
        open_profiler(str(tmp_path / "text"))
    with pytest.raises(MissingDataError, match="no profiler output"):
        open_profiler(str(tmp_path))


def test_ends_without_a_beginning_are_counted_and_said(tmp_path: Path) -> None:
    stray = {"ph": "E", "pid": 1, "ts": 1, "name": ""}
    trace(tmp_path, json.dumps([*TRACE, stray, stray]))
    report = evaluate(tmp_path, ["OverallFrameworkMetrics"])
    assert "2 ends of events were left out: they had no beginning" in report.warnings
