"""The trial reader: what it reads, and what it says of what it cannot."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smdbg_core import ConfigError, CorruptDataError, MissingDataError, SmdbgError, TrialWriter, open_trial
from tests.builders import write_trial
from tests.core.runs.trial.records import event, field, number, record, tensor, write_step

FLOAT = np.arange(6, dtype="<f4").reshape(2, 3)


def one(content: bytes, *, name: str = "a", **options: Any) -> dict[str, bytes]:
    return {name: record(event({name: content}, **options))}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (tensor(1, (2, 3), FLOAT.tobytes()), FLOAT),
        (tensor(14, (2,), b"\x80\x3f\x40\xc0"), np.array([1.0, -3.0], np.float32)),
        (tensor(6, (2,), b"\xff\x01"), np.array([-1, 1], np.int8)),
        (tensor(1, ()) + field(4, b"\0\0\x80\x3f"), np.float32(1.0)),
        (tensor(1, (0, 3)), np.empty((0, 3), np.float32)),
        (tensor(3, (2,), extra=field(7, b"\x05\x07")), np.array([5, 7], np.int32)),
        (tensor(1, (1,), extra=field(5, b"\0\0\x80\x3f")), np.array([1.0], np.float32)),
        (tensor(9, (1,), extra=field(10, b"\xff" * 9 + b"\x01")), np.array([-1])),
        (field(2, b"") + field(8, "né".encode()) + field(8, b""), np.array(["né", ""])),
        (number(99, 5) + field(98, b"?") + tensor(1, (2, 3), FLOAT.tobytes()), FLOAT),
        (field(4, FLOAT.tobytes()) + tensor(1, (2, 3)), FLOAT),
    ],
    ids=[
        "float",
        "bfloat16",
        "int8",
        "0-d",
        "empty",
        "int_val",
        "float_val",
        "int64_val",
        "strings",
        "unknown",
        "order",
    ],
)
def test_tensors(tmp_path: Path, message: bytes, expected: Any) -> None:
    write_step(tmp_path, one(message))
    trial = open_trial(str(tmp_path))
    value = trial.tensor("a").value(0)
    assert value.dtype == np.asarray(expected).dtype
    assert np.array_equal(value, expected)
    assert value.shape == np.asarray(expected).shape
    assert [array.tolist() for *_, array in trial.values()] == [value.tolist()]


def test_true_checksums_and_several_values_are_read(tmp_path: Path) -> None:
    both = event({"a": tensor(1, (2, 3), FLOAT.tobytes()), "b": tensor(6, (1,), b"\x07")})
    whole = record(both, footer=None)
    payload = [{"tensorname": name, "start_idx": 0, "length": len(whole)} for name in ("a", "b")]
    write_step(tmp_path, {"a": whole}, index={"tensor_payload": payload})
    trial = open_trial(str(tmp_path))
    assert trial.tensor("b").value(0).tolist() == [7]
    assert trial.tensor("a").value(0).tolist() == FLOAT.tolist()


GOOD = tensor(1, (2, 3), FLOAT.tobytes())
WHOLE = one(GOOD)["a"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "empty"),
        (WHOLE[: len(WHOLE) // 2], "cut"),
        (WHOLE[:-1], "cut"),
        (b"\0" * len(WHOLE), "checksum"),
        (WHOLE[:-4] + b"\0\0\0\0", "checksum"),
        (record(event({"b": GOOD})), "name"),
        (record(event({"a": tensor(1, (2, 4), FLOAT.tobytes())})), "shape"),
        (record(event({"a": tensor(1, (2**40, 2**40), FLOAT.tobytes())})), "shape"),
        (record(event({"a": tensor(77, (2, 3), FLOAT.tobytes())})), "dtype"),
        (record(b"\xff" * 40), "wire"),
        (record(event({"a": field(2, field(2, number(1, -5)))})), "wire"),
    ],
    ids=[
        "empty",
        "half",
        "short",
        "zeros",
        "footer",
        "name",
        "shape",
        "huge",
        "dtype",
        "garbage",
        "negative",
    ],
)
def test_damaged_records_cost_themselves(tmp_path: Path, content: bytes, kind: str) -> None:
    write_step(tmp_path, {"a": content}, step=1)
    if kind in ("empty", "cut") or len(content) != len(WHOLE):
        length = len(WHOLE) if kind in ("empty", "cut") else len(content)
        payload = [{"tensorname": "a", "start_idx": 0, "length": length}]
        write_step(tmp_path, {"a": content}, step=1, index={"tensor_payload": payload})
    write_step(tmp_path, one(GOOD), step=2)
    trial = open_trial(str(tmp_path))
    assert [step for step, *_ in trial.values()] == [2]
    (damage,) = trial.damage
    assert damage.kind == kind
    assert damage.file == "events/000000000001/000000000001_worker_0.tfevents"
    with pytest.raises(CorruptDataError, match=kind):
        trial.tensor("a").value(1)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda text: text[: len(text) // 2], "cut"),
        (lambda text: "", "empty"),
        (lambda text: "[]", "inconsistent"),
        (lambda text: text.replace("TRAIN", "JUMP"), "mode"),
        (lambda text: text.replace('"meta"', '"data"'), "inconsistent"),
        (lambda text: "\x00" + text, "not JSON"),
        (
            lambda text: text.replace('"tensor_payload"', '"x"').replace('"shape_payload"', '"y"'),
            "inconsistent",
        ),
        (lambda text: text.replace("events/", "../events/"), "outside"),
        (lambda text: text.replace("events/", "/etc/events/"), "outside"),
    ],
    ids=["cut", "empty", "list", "mode", "no-meta", "not-json", "no-payload", "dots", "absolute"],
)
def test_damaged_index_files_cost_their_step(tmp_path: Path, change: Any, kind: str) -> None:
    for step in (1, 2):
        write_step(tmp_path, one(GOOD), step=step)
    file = tmp_path / "index/000000000/000000000001_worker_0.json"
    file.write_text(change(file.read_text()))
    trial = open_trial(str(tmp_path))
    assert [step for step, *_ in trial.values()] == [2]
    assert [damage.kind for damage in trial.damage] == [kind]


def test_one_broken_entry_costs_itself(tmp_path: Path) -> None:
    write_step(tmp_path, one(GOOD), step=1)
    file = tmp_path / "index/000000000/000000000001_worker_0.json"
    document = json.loads(file.read_text())
    document["tensor_payload"] += [
        {"tensorname": "b", "start_idx": "x", "length": 5},
        {"tensorname": "c", "start_idx": -1, "length": 5},
    ]
    file.write_text(json.dumps(document | {"more": 1}))
    trial = open_trial(str(tmp_path))
    assert trial.tensor_names() == ["a"]
    assert [damage.kind for damage in trial.damage] == ["inconsistent", "inconsistent"]


def test_strange_files_are_left_alone(tmp_path: Path) -> None:
    write_step(tmp_path, one(GOOD), step=1)
    index = tmp_path / "index/000000000"
    (index / "000000000002_worker_0.json.tmp").write_text("{")
    (index / ".DS_Store").write_text("")
    (index / "notes.json").write_text("{}")
    trial = open_trial(str(tmp_path))
    assert trial.steps() == [1]
    assert [(damage.file, damage.kind) for damage in trial.damage] == [("index/000000000/notes.json", "name")]


@pytest.mark.parametrize("replace", ["folder", "fifo", "link", "missing"])
def test_event_files_that_are_no_files(tmp_path: Path, replace: str) -> None:
    root = tmp_path / "trial"
    write_step(root, one(GOOD), step=1)
    write_step(root, one(GOOD), step=2)
    file = root / "events/000000000001/000000000001_worker_0.tfevents"
    outside = tmp_path / "secret"
    file.rename(outside)
    if replace == "folder":
        file.mkdir()
    elif replace == "fifo":
        os.mkfifo(file)
    elif replace == "link":
        file.symlink_to(outside)
    trial = open_trial(str(root))
    assert [step for step, *_ in trial.values()] == [2]
    assert [d.kind for d in trial.damage] == ["missing" if replace == "missing" else "outside"]


def test_links_within_the_trial_are_followed(tmp_path: Path) -> None:
    write_step(tmp_path, one(GOOD), step=1)
    file = tmp_path / "events/000000000001/000000000001_worker_0.tfevents"
    file.rename(file.with_name("real"))
    file.symlink_to("real")
    assert len(list(open_trial(str(tmp_path)).values())) == 1


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: None, "no such folder"),
        (lambda p: p.write_text("x"), "is a file"),
        (lambda p: p.mkdir(), "the folder is empty"),
        (lambda p: (p / "src").mkdir(parents=True), "not a trial"),
        (lambda p: write_collections(p, "{}"), "not a trial"),
        (lambda p: write_collections(p, '{"collections": {"losses": {}}}'), "no step was saved"),
        (
            lambda p: (p / "events/0").mkdir(parents=True) or (p / "events/0/0_w.tfevents").touch(),
            "without index",
        ),
        (
            lambda p: (p / "index/0").mkdir(parents=True) or (p / "index/0/1_w.json").write_text("{"),
            "no index file",
        ),
    ],
    ids=["missing", "file", "empty", "other", "collections", "nothing-saved", "no-index", "bad-index"],
)
def test_what_is_no_trial_is_said_in_one_line(tmp_path: Path, make: Any, says: str) -> None:
    make(tmp_path / "t")
    with pytest.raises(MissingDataError, match=says) as caught:
        open_trial(str(tmp_path / "t"))
    assert "\n" not in str(caught.value)


def write_collections(folder: Path, text: str) -> None:
    path = folder / "collections/000000000/worker_0_collections.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_collections_of_several_workers_are_joined(tmp_path: Path) -> None:
    write_step(tmp_path, one(GOOD), step=1)
    folder = tmp_path / "collections/000000000"
    folder.mkdir(parents=True)
    first = {"name": "c", "include_regex": ["^a", "("], "tensor_names": ["x"], "save_config": {"TRAIN": None}}
    second = {"name": "c", "include_regex": False, "tensor_names": ["y"]}
    for worker, collection in (("worker_0", first), ("worker_1", second)):
        document = {"collections": {"c": collection, "odd": 3}, "_meta": {"num_workers": 3}}
        (folder / f"{worker}_collections.json").write_text(json.dumps(document))
    (folder / "worker_2_collections.json").touch()
    trial = open_trial(str(tmp_path))
    collection = trial.collection("c")
    assert (collection.tensor_names, collection.include_regex) == ({"x", "y"}, ["^a"])
    assert trial.workers == ("worker_0", "worker_1")
    assert trial.num_workers == 3
    assert trial.incomplete_steps() == [1]
    assert sorted(damage.kind for damage in trial.damage) == [
        "empty",
        "inconsistent",
        "inconsistent",
        "inconsistent",
    ]


def test_device_strings_are_workers_whatever_the_path(tmp_path: Path) -> None:
    device = "/job:worker/replica:0/task:1/device:GPU:0"
    path = write_trial(tmp_path / "my__folder", {0: {"a": 1.0}}, workers=(device, "worker_0"))
    assert open_trial(path).workers == (device, "worker_0")
    assert open_trial(path).tensor("a").workers(0) == [device, "worker_0"]


def test_questions_about_tensors(tmp_path: Path) -> None:
    steps: dict[int, Any] = {n: ("TRAIN" if n % 3 else "EVAL", {"w": np.full(2, float(n))}) for n in range(6)}
    steps[6] = ("TRAIN", {"other": 1.0})
    trial = open_trial(f"  {write_trial(tmp_path / 't', steps)} ")
    tensor = trial.tensor("w")
    assert trial.modes == ("TRAIN", "EVAL")
    assert tensor.steps() == [0, 1, 2, 3, 4, 5]
    assert tensor.steps(mode="eval") == [0, 1]
    assert tensor.value(1, mode="EVAL").tolist() == [3.0, 3.0]
    assert tensor.prev_steps(4, 2) == [3, 4]
    assert tensor.prev_steps(4) == [0, 1, 2, 3, 4]
    assert tensor.shape(2) == (2,)
    assert tensor.dtype(2) == np.float64
    assert tensor.reduction_value(3, "l2") == pytest.approx(3 * 2**0.5)
    assert tensor.reduction_value(3, "mean", abs=True) == 3
    assert list(tensor.values(mode="EVAL")) == [0, 1]
    assert trial.tensor_names(step=6) == ["other"]
    assert trial.tensor_names(step=1, mode="EVAL") == ["w"]
    assert trial.tensor_names(mode="PREDICT") == []
    assert trial.tensor_names(regex="^o") == ["other"]
    assert trial.tensor_names(collection="nope") == []
    assert trial.global_step("EVAL", 1) == 3
    assert (trial.mode(3), trial.mode_step(3)) == ("EVAL", 1)
    assert (trial.mode(99), trial.wall_time(99)) == (None, None)
    assert trial.wall_time(0)
    for call, says in (
        (lambda: trial.tensor("ww"), "did you mean 'w'"),
        (lambda: trial.collection("loses"), "did you mean 'losses'"),
        (lambda: tensor.value(6), "not saved at step 6"),
        (lambda: tensor.value(99), "steps near it: 3, 4, 5"),
        (lambda: tensor.value(0, worker="w9"), "from worker_0"),
    ):
        with pytest.raises(MissingDataError, match=says):
            call()
    with pytest.raises(ConfigError, match="no mode"):
        trial.steps("JUMP")
    with pytest.raises(ConfigError, match="no reduction 'median'"):
        tensor.reduction_value(0, "median")


def test_saved_reductions_stand_in_for_values(tmp_path: Path) -> None:
    path = write_trial(
        tmp_path / "t",
        {0: {"w": np.array([1.0, -3.0])}},
        raw=False,
        reductions=("abs_mean", "l2_norm"),
        shape=True,
    )
    trial = open_trial(path)
    tensor = trial.tensor("w")
    assert trial.tensor_names() == ["w"]
    assert tensor.reduction_values(0) == {("mean", True): 2.0, ("l2", False): pytest.approx(10**0.5)}
    assert tensor.shape(0) == (2,)
    with pytest.raises(MissingDataError, match="saved reductions: abs_mean, l2"):
        tensor.value(0)


def test_a_range_of_steps_leaves_other_index_files_unread(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "t", {n: {"a": float(n)} for n in range(5)})
    (tmp_path / "t/index/000000000/000000000004_worker_0.json").write_text("{")
    trial = open_trial(path, steps=(1, 3))
    assert trial.steps() == [1, 2]
    assert trial.damage == []
    assert open_trial(path, steps=(90, None)).steps() == []
    with pytest.raises(ConfigError, match="the end must be above"):
        open_trial(path, steps=(3, 3))


def test_unknown_schemes_are_refused() -> None:
    with pytest.raises(ConfigError, match="gs:// is not known"):
        open_trial("gs://bucket/run")


def test_learnt_headers_never_stand_in_for_others(tmp_path: Path) -> None:
    """Two names of one length, one shape of the same size, swapped in the second file."""
    with TrialWriter(tmp_path / "t") as writer:
        for number_ in range(3):
            with writer.step(number_, mode="TRAIN") as step:
                step.add("aa" if number_ != 1 else "bb", np.full((2, 3), number_, np.float32))
                step.add("bb" if number_ != 1 else "aa", np.full((3, 2), number_ + 10, np.float32))
    trial = open_trial(str(tmp_path / "t"))
    found = {(step, name): array for step, _, name, array in trial.values()}
    assert found[1, "aa"].tolist() == np.full((3, 2), 11).tolist()
    assert found[1, "bb"].tolist() == np.full((2, 3), 1).tolist()
    file = tmp_path / "t/events/000000000002/000000000002_worker_0.tfevents"
    content = bytearray(file.read_bytes())
    content[content.index(b"aa_2")] = ord("c")
    content[content.index(b"aa")] = ord("b")
    file.write_bytes(bytes(content))
    damaged = open_trial(str(tmp_path / "t"))
    assert (2, "aa") not in {(step, name) for step, _, name, _ in damaged.values()}
    assert [damage.kind for damage in damaged.damage] == ["name"]


@given(st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_flipped_bytes_raise_nothing_unexpected(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    write_trial(folder / "t", {n: {"a": FLOAT} for n in range(2)}, reductions=("mean",))
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    file = data.draw(st.sampled_from(files))
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))] or content))
    try:
        trial = open_trial(str(folder / "t"))
        list(trial.values())
        for name in trial.tensor_names():
            for step in trial.tensor(name).steps():
                trial.tensor(name).reduction_values(step)
    except SmdbgError:
        pass
