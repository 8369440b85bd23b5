"""Every shared trial, against what smdebug 1.0.34 read from it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core import CorruptDataError, MissingDataError, Trial, open_trial

TRIALS = [
    "corrupt_events",
    "dtypes",
    "exploding",
    "healthy_mlp",
    "no_end_marker",
    "reductions_only",
    "save_all_step0",
    "tf_mirrored_style",
    "two_workers",
    "vanishing_gradient",
    "xgb_basic",
]


@pytest.fixture(params=TRIALS)
def pair(request: pytest.FixtureRequest, shared_data: Path) -> tuple[Trial, dict[str, Any]]:
    """A trial and the truth about it."""
    truth = json.loads((shared_data / "truth" / f"{request.param}.json").read_text())
    return open_trial(str(shared_data / "trials" / request.param)), truth


def test_steps_modes_workers_and_names(pair: tuple[Trial, dict[str, Any]]) -> None:
    trial, truth = pair
    for mode, steps in truth["steps_incl_incomplete"].items():
        assert trial.steps(mode=mode) == steps, mode
    assert sorted(m for m in trial.modes if m != "GLOBAL") == [m for m in truth["modes"] if m != "GLOBAL"]
    assert list(trial.workers) == truth["workers"]
    assert trial.num_workers == truth["num_workers"]
    assert trial.tensor_names() == truth["tensor_names"]
    for mode, names in truth["tensor_names_by_mode"].items():
        assert trial.tensor_names(mode=mode) == names, mode


def test_collections(pair: tuple[Trial, dict[str, Any]]) -> None:
    trial, truth = pair
    assert list(trial.collections) == sorted(truth["collections"])
    for name, expected in truth["collections"].items():
        collection = trial.collection(name)
        assert collection.include_regex == expected["include_regex"]
        assert sorted(collection.tensor_names) == expected["tensor_names_in_file"]
        assert trial.tensor_names(collection=name) == expected["resolved"]
        if expected["reduction_config"] is not None:
            assert collection.reduction_config == expected["reduction_config"]


def test_every_value(pair: tuple[Trial, dict[str, Any]]) -> None:
    trial, truth = pair
    bulk = {(s, w, n): a for s, w, n, a in trial.values()}
    compared = 0
    for name, expected in truth["tensors"].items():
        tensor = trial.tensor(name)
        assert (
            tensor.steps() == expected["steps"] or truth["last_complete_step"] != truth["steps"]["GLOBAL"][-1]
        )
        if "original_name" in expected:
            assert tensor.original_name == expected["original_name"]
        for row in expected["rows"]:
            compared += _compare_row(trial, name, row, bulk)
        for step, worker, reductions in expected.get("saved_reductions", []):
            saved = tensor.reduction_values(step, worker=worker)
            ours = {("abs_" if absolute else "") + key: v for (key, absolute), v in saved.items()}
            assert ours.keys() == reductions.keys()
            for key, value in reductions.items():
                assert ours[key] == pytest.approx(_number(value), rel=1e-6, nan_ok=True), (name, step, key)
    assert compared


def _compare_row(trial: Trial, name: str, row: list[Any], bulk: dict[tuple[int, str, str], Any]) -> int:
    step, mode, mode_step, worker, *described = row
    tensor = trial.tensor(name)
    assert (trial.mode(step), trial.mode_step(step)) == (mode, mode_step)
    if isinstance(described[0], dict):
        return _compare_failure(trial, name, step, worker, described[0])
    shape, dtype, mean, std, low, high, mean_abs, l2, first, sha = described
    value = tensor.value(step, worker=worker)
    assert np.array_equal(value, bulk[step, worker, name], equal_nan=value.dtype.kind in "fc")
    assert value.flags.writeable
    if dtype == "uint8" and value.dtype == np.int8:
        value = value.view(np.uint8)  # the peer reads int8 as the bytes of uint8
        mean = None
    assert list(value.shape) == list(tensor.shape(step, worker=worker)) == shape
    assert value.dtype.name == dtype or (dtype == "str" and value.dtype.kind == "U")
    assert _sha(value) == sha
    if mean is not None and value.dtype.kind in "fiub":
        wide = value.astype(np.float64)
        with np.errstate(all="ignore"):
            ours = [
                wide.mean(),
                wide.std(),
                wide.min(),
                wide.max(),
                np.abs(wide).mean(),
                np.linalg.norm(wide.ravel()),
            ]
        for mine, theirs in zip(ours, (mean, std, low, high, mean_abs, l2), strict=True):
            assert float(mine) == pytest.approx(_number(theirs), rel=1e-8, nan_ok=True)
    assert len(first) == min(3, value.size)
    return 1


UNREADABLE_BY_THE_PEER_ONLY = {
    "KeyError": {"int16", "uint16", "uint32", "uint64", "complex64"},  # types that its reader lacks
    "SMDebugValueError": {"float32"},  # empty tensors
}


def _compare_failure(trial: Trial, name: str, step: int, worker: str, expected: dict[str, Any]) -> int:
    """What the peer could not read: nobody can, or it is one of its known faults."""
    tensor = trial.tensor(name)
    if "shape" in expected:
        assert list(tensor.shape(step, worker=worker)) == expected["shape"]
    if expected["raises"] in UNREADABLE_BY_THE_PEER_ONLY:
        value = tensor.value(step, worker=worker)
        assert value.dtype.name in UNREADABLE_BY_THE_PEER_ONLY[expected["raises"]]
        assert value.size or expected["raises"] == "SMDebugValueError"
        return 1
    try:
        value = tensor.value(step, worker=worker)
    except (MissingDataError, CorruptDataError):
        return 1
    # It loses values that were saved together with their shape.
    assert expected["raises"] == "TensorUnavailableForStep"
    assert list(value.shape) == expected["shape"]
    return 1


def _sha(value: Any) -> str:
    if value.dtype.kind == "U":
        raw = "\0".join(str(text) for text in value.ravel()).encode()
    else:
        raw = np.ascontiguousarray(value).tobytes()
    return hashlib.sha256(raw).hexdigest()[:16]


def _number(value: Any) -> float:
    return float(value)


def test_truncated_index_costs_one_step(shared_data: Path) -> None:
    trial = open_trial(str(shared_data / "trials" / "corrupt_index_truncated"))
    whole = json.loads((shared_data / "truth" / "corrupt_events.json").read_text())
    assert trial.steps() == [step for step in whole["steps"]["GLOBAL"] if step != 6]
    (damage,) = trial.damage
    assert damage.kind == "cut"
    assert damage.file == "index/000000000/000000000006_worker_0.json"


def test_types_that_the_peer_cannot_read(shared_data: Path) -> None:
    trial = open_trial(str(shared_data / "trials" / "dtypes"))
    found = {array.dtype.name for _, _, _, array in trial.values()}
    assert {"int8", "int16", "uint16", "uint32", "uint64", "complex64", "float16"} <= found
    assert not trial.damage
