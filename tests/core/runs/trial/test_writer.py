"""The trial writer: what it writes is read back, and appears whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core import ConfigError, TrialWriter, open_trial
from smdbg_core.runs.trial import Collection, SaveConfig

VALUES: dict[str, Any] = {
    "f2": np.array([1.5, np.nan, np.inf], np.float16),
    "f4": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "f8": np.array(2.5),
    "i1": np.array([-128, 127], np.int8),
    "i2": np.array([-5], np.int16),
    "i4": np.array([[7]], np.int32),
    "i8": np.array([2**62]),
    "u1": np.array([255], np.uint8),
    "u2": np.array([65535], np.uint16),
    "u4": np.array([2**32 - 1], np.uint32),
    "u8": np.array([2**64 - 1], np.uint64),
    "c8": np.array([1 + 2j], np.complex64),
    "c16": np.array([1 - 2j]),
    "bool": np.array([True, False]),
    "text": np.array(["α", "", "b c"]),
    "empty": np.empty((0, 2), np.float32),
    "five": np.ones((1, 2, 1, 2, 1), np.float32),
    "big-endian": np.array([1.0, 2.0], ">f4"),
    "name with / : . ü": np.float32(1.0),
}


@pytest.mark.parametrize("checksums", [False, True])
def test_every_type_comes_back(tmp_path: Path, checksums: bool) -> None:
    with TrialWriter(tmp_path / "t", checksums=checksums) as writer, writer.step(0) as step:
        for name, value in VALUES.items():
            step.add(name, value)
    trial = open_trial(str(tmp_path / "t"))
    assert trial.tensor_names() == sorted(VALUES)
    for name, value in VALUES.items():
        read = trial.tensor(name).value(0)
        assert read.dtype == np.asarray(value).dtype.newbyteorder("=")
        assert read.shape == np.asarray(value).shape
        assert np.array_equal(read, value, equal_nan=read.dtype.kind in "fc")
    assert trial.damage == []


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.array([object()]), "Python objects"),
        (np.array([["a", "b"]]), "one dimension"),
        (np.array(["2020-01-01"], "datetime64[D]"), "no type for datetime64"),
        (np.zeros(1, [("a", "f4")]), "no type for"),
    ],
)
def test_what_the_format_cannot_hold_is_refused_by_name(tmp_path: Path, value: Any, says: str) -> None:
    with (
        TrialWriter(tmp_path / "t") as writer,
        writer.step(0) as step,
        pytest.raises(ConfigError, match=says) as e,
    ):
        step.add("mine", value)
    assert "mine" in str(e.value)


def test_steps_and_modes_are_counted(tmp_path: Path) -> None:
    with TrialWriter(tmp_path / "t") as writer:
        for step, mode in ((None, "TRAIN"), (None, "train"), (7, "EVAL"), (None, "TRAIN")):
            with writer.step(step, mode=mode) as one:
                one.add("loss", 1.0)
        with pytest.raises(ConfigError, match="steps must rise"):
            writer.step(8)
        with pytest.raises(ConfigError, match="no mode 'JUMP'"):
            writer.step(mode="JUMP")
    trial = open_trial(str(tmp_path / "t"))
    assert trial.steps() == [0, 1, 7, 8]
    assert trial.steps("TRAIN") == [0, 1, 2]
    assert trial.steps("EVAL") == [0]
    assert trial.global_step("TRAIN", 2) == 8


def test_reductions_are_those_of_the_flattened_array(tmp_path: Path) -> None:
    values = np.array([[1.0, -2.0], [3.0, -4.0]], np.float32)
    names = (
        "min",
        "max",
        "mean",
        "std",
        "variance",
        "sum",
        "prod",
        "l1",
        "l2_norm",
        "abs_mean",
        "abs_max",
        "abs_l1_norm",
    )
    with TrialWriter(tmp_path / "t") as writer, writer.step(0) as step:
        step.add("w", values, reductions=names, shape=True, original_name="w:0")
        with pytest.raises(ConfigError, match="no reduction 'abs_median'"):
            step.add("v", values, reductions=("abs_median",))
    tensor = open_trial(str(tmp_path / "t")).tensor("w")
    saved = tensor.reduction_values(0)
    assert saved["l1", False] == saved["l1", True] == 10
    assert saved["l2", False] == pytest.approx(30**0.5)
    assert saved["variance", False] == pytest.approx(values.var())
    assert saved["mean", True] == 2.5
    assert tensor.original_name == "w:0"
    assert len(saved) == len(names)


def test_files_appear_whole_and_a_crash_ends_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    with pytest.raises(RuntimeError), TrialWriter(folder) as writer:
        with writer.step(0) as step:
            step.add("a", 1.0)
        with writer.step(1) as step:
            step.add("a", 2.0)
            assert [path.suffix for path in folder.glob("events/*1/*")] == [".tmp"]
            raise RuntimeError
    trial = open_trial(str(folder))
    assert trial.steps() == [0]
    assert not trial.ended
    assert not list(folder.rglob("*.tmp"))


def test_an_ended_trial_is_not_written_to_again(tmp_path: Path) -> None:
    with TrialWriter(tmp_path / "t") as writer, writer.step() as step:
        step.add("a", 1.0)
    assert open_trial(str(tmp_path / "t")).ended
    with pytest.raises(ConfigError, match="has ended"):
        TrialWriter(tmp_path / "t")
    with pytest.raises(ConfigError, match="part of a file name"):
        TrialWriter(tmp_path / "u", worker="a/b")


def test_collections_are_written_as_hooks_write_them(tmp_path: Path) -> None:
    mine = Collection("relu", [r"relu\d"], save_config={"TRAIN": SaveConfig(save_interval=3)})
    with TrialWriter(tmp_path / "t", collections=[mine], num_workers=2) as writer:
        for _ in range(2):
            with writer.step() as step:
                for name in ("relu1", "gradient/a.weight", "a.weight", "MSELoss_output_0"):
                    step.add(name, 1.0)
    trial = open_trial(str(tmp_path / "t"))
    assert trial.tensor_names(collection="relu") == ["relu1"]
    assert trial.tensor_names(collection="gradients") == ["gradient/a.weight"]
    assert trial.tensor_names(collection="weights") == ["a.weight"]
    assert trial.tensor_names(collection="losses") == ["MSELoss_output_0"]
    assert trial.num_workers == 2
    written = json.loads((tmp_path / "t/collections/000000000/worker_0_collections.json").read_text())
    assert written["collections"]["relu"]["save_config"]["TRAIN"]["save_interval"] == 3


def test_a_step_of_shapes_has_no_event_file(tmp_path: Path) -> None:
    with TrialWriter(tmp_path / "t") as writer, writer.step() as step:
        step.add("a", np.zeros((2, 3)), raw=False, shape=True)
    assert not list((tmp_path / "t").rglob("*.tfevents"))
    assert open_trial(str(tmp_path / "t")).tensor("a").shape(0) == (2, 3)


@pytest.mark.parametrize("count", [580, 585, 586, 587, 600, 5000])
def test_many_strings_come_back(tmp_path: Path, count: int) -> None:
    """Of a large record only the head is decoded, where strings go on behind it."""
    texts = [f"2-{number:03}" for number in range(count)]
    with TrialWriter(tmp_path / "t") as writer, writer.step(0) as step:
        step.add("trees/ID", texts)
        step.add("large", np.zeros(300_000))
    assert open_trial(str(tmp_path / "t")).tensor("trees/ID").value(0).tolist() == texts
