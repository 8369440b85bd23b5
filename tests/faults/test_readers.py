"""What the fault suite found once, each in its reader."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from smdbg_core import open_run, open_trial
from smdbg_core.finite import finite
from smdbg_core.runs.profiler import Profiler, open_profiler
from smdbg_core.runs.trial.wire import WireError, decode_event
from smdbg_core.storage import LocalStorage
from smdbg_core.strict_text import strict_text
from smdbg_core.testing import T0, TrialBuilder

EVENT = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "ts": 5, "dur": 7}
ROW = (
    json.dumps({"Name": "cpu0", "Dimension": "CPUUtilization", "Value": 1, "Timestamp": T0}).encode() + b"\n"
)


def read(profiler: Profiler) -> tuple[int, list[str]]:
    """How many events or samples there are, and the kinds of damage."""
    count = sum(len(batch.data[-1]) for batch in profiler.reader() if batch.data is not None)
    return count, [damage.kind for damage in profiler.damage]


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return Path(TrialBuilder().steps(range(3), {"a": [1.0]}).write(tmp_path / "trial"))


@pytest.mark.parametrize("kind", ["index", "collections"])
def test_a_file_of_a_terabyte_is_not_read(trial: Path, kind: str) -> None:
    file = next(path for path in sorted((trial / kind).rglob("*")) if path.is_file())
    os.truncate(file, 1 << 40)
    opened = open_trial(str(trial))
    assert [(damage.kind, damage.file) for damage in opened.damage] == [
        ("length", str(file.relative_to(trial)))
    ]
    assert len(opened.steps()) == (2 if kind == "index" else 3)


def test_a_link_to_itself_beside_the_data_costs_nothing(trial: Path) -> None:
    (trial / "loop").symlink_to("loop")
    assert LocalStorage(str(trial)).files() == ["loop", "training_job_end.ts"]
    opened = open_run(str(trial)).trial
    assert opened is not None
    assert len(opened.steps()) == 3


def test_folders_may_be_deeper_than_the_stack_of_python(trial: Path) -> None:
    folders = [str(trial / "index") + "/d" * depth for depth in range(1, 1500)]
    for folder in folders:
        os.mkdir(folder)
    try:
        assert len(open_trial(str(trial)).steps()) == 3
        assert len([*LocalStorage(str(trial)).entries("index")]) == 3
    finally:  # what pytest removes folders with is not as careful
        for folder in reversed(folders):
            os.rmdir(folder)


def test_lines_before_one_without_an_end_are_read(tmp_path: Path) -> None:
    file = tmp_path / f"{T0}.algo-1.json"
    file.write_bytes(ROW * 2)
    os.truncate(file, 1 << 40)
    assert read(open_profiler(str(file))) == (2, ["length"])


@pytest.mark.parametrize(
    ("end", "kinds"),
    [("\n]}", []), ("\n]", []), (",", ["cut"]), (",\n", ["cut"]), ("", ["cut"]), (',\n{"ph"', ["cut"])],
)
def test_the_last_event_of_a_trace_that_is_cut_is_read(tmp_path: Path, end: str, kinds: list[str]) -> None:
    file = tmp_path / "host_0.pt.trace.json"
    file.write_text('{"traceEvents": [\n' + json.dumps(EVENT) + ",\n" + json.dumps(EVENT) + end)
    assert read(open_profiler(str(file))) == (2, kinds)


def test_a_broken_event_does_not_cost_the_last_one(tmp_path: Path) -> None:
    file = tmp_path / "host_0.pt.trace.json"
    rows = ",\n".join([json.dumps(EVENT), '{"ph": "X" "ts": 1}', json.dumps(EVENT)])
    file.write_text('{"traceEvents": [\n' + rows + '\n], "traceName": "x"}')
    assert read(open_profiler(str(file))) == (2, ["not JSON"])


def test_blanks_before_events_are_passed_over_at_once(tmp_path: Path) -> None:
    file = tmp_path / "host_0.pt.trace.json.gz"
    event = json.dumps(EVENT).encode()
    blanks = b" " * (40 << 20)  # a loop over single bytes takes four seconds
    file.write_bytes(gzip.compress(b'{"traceEvents": [' + blanks + event + b"]}", 1))
    assert read(open_profiler(str(file))) == (1, [])


def test_empty_files_are_named(tmp_path: Path) -> None:
    for name in (
        "system/a/1700000040.algo-1.json",
        "framework/a/1700000050000000_27-algo-1_pythontimeline.json",
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")
    assert read(open_profiler(str(tmp_path))) == (0, ["empty", "empty"])


def test_a_wall_time_that_is_cut() -> None:
    with pytest.raises(WireError, match="wall time"):
        decode_event(b"\x09\0\0", 9)


def test_texts_that_utf8_has_no_form_for() -> None:
    assert strict_text("plain") == "plain"
    assert strict_text("größe\n") == "größe\n"
    assert strict_text("a\udcff\udcfe") == "a\\xff\\xfe"
    assert strict_text("\ud800").encode() == b"\\ud800"
    assert finite({"\udcff": ["\udcff", 1.5, float("nan")]}) == {"\\xff": ["\\xff", 1.5, "nan"]}
