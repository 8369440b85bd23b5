"""The readers on bytes of any kind: damage is named or values are given, and nothing is raised but errors of data."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smdbg_core import DataError, open_run
from smdbg_core.runs.damage import RecordError
from smdbg_core.runs.profiler import open_profiler
from smdbg_core.runs.trial import read_trial
from smdbg_core.runs.trial.collections import CollectionReader
from smdbg_core.runs.trial.event_file import EventFileReader
from smdbg_core.runs.trial.index import IndexReader
from smdbg_core.runs.trial.records import records
from smdbg_core.runs.trial.wire import WireError, decode_event
from smdbg_core.storage import LocalStorage
from smdbg_core.testing import T0, ProfilerBuilder, TrialBuilder
from tests.faults.fabricated import HOSTILE

QUICK = settings(
    max_examples=int(os.environ.get("SMDBG_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

TEXTS = st.one_of(st.text(max_size=8), st.sampled_from([HOSTILE, "TRAIN", "a", "../x", "worker_0"]))
NUMBERS = st.one_of(
    st.integers(), st.integers(-(1 << 70), 1 << 70), st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


def documents(*keys: str) -> st.SearchStrategy[bytes]:
    """JSON that has these keys, more or less, with values of any kind."""
    objects = st.recursive(
        st.one_of(NUMBERS, TEXTS, VALUES),
        lambda inner: st.one_of(st.dictionaries(st.sampled_from(keys), inner), st.lists(inner, max_size=4)),
        max_leaves=20,
    )
    return objects.map(lambda value: json.dumps(value).encode())


def damaged(content: bytes) -> st.SearchStrategy[bytes]:
    """The content with a stretch replaced by any other bytes."""
    places = st.tuples(st.integers(0, len(content)), st.integers(0, 24), st.binary(max_size=24))
    return places.map(lambda one: content[: one[0]] + one[2] + content[one[0] + one[1] :])


@pytest.fixture(scope="module")
def event(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("trial")
    values = {"a": np.arange(6.0).reshape(2, 3), "b": np.float32(1), "c": np.array(["x", "yz"])}
    TrialBuilder().step(0, values).write(folder)
    (file,) = folder.glob("events/*/*")
    trial = read_trial(LocalStorage(str(folder)))
    return file, trial.files(0)[0].layout.entries


@QUICK
@given(data=st.data())
def test_event_files(tmp_path: Path, event: tuple[Path, Any], data: st.DataObject) -> None:
    original, entries = event
    content = data.draw(st.one_of(damaged(original.read_bytes()), st.binary(max_size=300)))
    (tmp_path / "x").write_bytes(content)
    spans = tuple((entry.name, entry.span) for entry in entries.values())
    with LocalStorage(str(tmp_path)).open("x") as file:
        whole, found = EventFileReader().locate(file, spans)
        assert len(found) == len(spans)
        for payload in found:
            if isinstance(payload, RecordError):
                assert payload.damage.file == "x"
            elif whole is not None:
                array = payload.array(whole[payload.offset : payload.offset + payload.nbytes])
                assert array.nbytes <= 100 * len(content)
    try:
        assert sum(len(payload) for _, payload in records(content, "x")) <= len(content)
    except RecordError as error:
        damage = error.damage
        assert (damage.file, damage.kind) in {("x", kind) for kind in ("cut", "checksum", "length")}


@QUICK
@given(content=st.binary(max_size=200), length=st.integers(0, 1 << 62))
def test_messages(content: bytes, length: int) -> None:
    for claimed in (None, length):
        try:
            values = decode_event(content, claimed)
        except WireError:
            continue
        assert all(isinstance(value.name, str) for value in values)


@QUICK
@given(
    content=st.one_of(
        documents(
            "meta",
            "mode",
            "mode_step",
            "event_file_name",
            "tensor_payload",
            "tensorname",
            "start_idx",
            "length",
            "shape_payload",
            "shape",
        ),
        damaged(
            b'{"meta": {"mode": "TRAIN", "mode_step": 0, "event_file_name": "e"}, "tensor_payload": [{"tensorname": "a", "start_idx": 0, "length": 40}]}'
        ),
        st.binary(max_size=60),
    )
)
def test_index_files(content: bytes) -> None:
    reader = IndexReader()
    read = reader.read("index/000000000/000000000000_worker_0.json", content)
    assert read is not None or reader.damage
    for entry in read.layout.entries.values() if read else ():
        assert entry.span is None or min(entry.span) >= 0


@QUICK
@given(
    content=st.one_of(
        documents("collections", "_meta", "num_workers", "include_regex", "tensor_names", "save_config", "a"),
        st.binary(max_size=60),
    )
)
def test_collections_files(content: bytes) -> None:
    reader = CollectionReader()
    reader.read("collections/000000000/worker_0_collections.json", content)
    assert reader.damage or isinstance(reader.collections, dict)
    assert reader.num_workers is None or reader.num_workers > 0
    for collection in reader.collections.values():
        assert collection.matches("a") in (True, False)


def profiled(folder: Path) -> tuple[int, list[Any]]:
    """How many samples and events are read, and the damage."""
    try:
        profiler = open_profiler(str(folder))
        count = sum(len(batch.data[-1]) for batch in profiler.reader() if batch.data is not None)
    except DataError:
        return 0, []
    return count, profiler.damage


METRICS = b"".join(
    json.dumps(
        {
            "Type": "cpu",
            "Name": "cpu0",
            "Dimension": "CPUUtilization",
            "Value": n,
            "NodeId": "algo-1",
            "Timestamp": T0 + n,
        }
    ).encode()
    + b"\n"
    for n in range(4)
)
TIMELINE = b'[\n{"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros": 1700000040000000}},\n{"name": "a", "pid": 1, "ph": "X", "ts": 5, "dur": 7}\n]'
PYTORCH = b'{"schemaVersion": 1, "traceEvents": [\n{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "ts": 5, "dur": 7},\n{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "ts": 15, "dur": 7}\n]}'


@QUICK
@given(
    data=st.data(),
    kind=st.sampled_from(
        [
            (f"system/incremental/2023111422/{T0}.algo-1.json", METRICS, bytes),
            ("framework/pevents/2023111422/1700000050000000_27-algo-1_pythontimeline.json", TIMELINE, bytes),
            (
                "framework/pevents/2023111422/1700000050000000_27-algo-1_horovod_timeline.json",
                TIMELINE,
                bytes,
            ),
            ("host_0.1700000040000.pt.trace.json", PYTORCH, bytes),
            ("host_0.1700000040000.pt.trace.json.gz", PYTORCH, gzip.compress),
        ]
    ),
)
def test_profiler_files(
    tmp_path: Path, data: st.DataObject, kind: tuple[str, bytes, Callable[[bytes], bytes]]
) -> None:
    name, original, packed = kind
    keys = (
        "Timestamp",
        "Value",
        "NodeId",
        "traceEvents",
        "ph",
        "ts",
        "dur",
        "pid",
        "args",
        "name",
        "step_num",
    )
    anything = st.one_of(damaged(original), documents(*keys), st.binary(max_size=60))
    content = packed(data.draw(anything))
    if packed is not bytes:
        content = data.draw(st.one_of(st.just(content), damaged(content)))
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    for other in tmp_path.rglob("*"):
        if other.is_file():
            other.unlink()
    file.write_bytes(content)
    count, damage = profiled(tmp_path)
    assert count <= len(original)
    assert all(one.file == name for one in damage)


def test_a_sound_file_has_no_damage(tmp_path: Path) -> None:
    path = ProfilerBuilder().series("CPUUtilization", [1.0] * 4).steps([1.0] * 3).write(tmp_path)
    assert profiled(Path(path)) == (7, [])
    run = open_run(path)
    assert run.profiler is not None
    assert run.problems == ()
