"""UnchangedTensor."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.unchanged_tensor import UnchangedTensor
from tests.builtin_rules.conftest import Judge, fired_at


def test_worked_example(judge: Judge) -> None:
    same = {f"foo_{k}": np.ones((10, 3, 2)) for k in range(3)}
    steps = {0: same, 1: same, 2: same, 5: {"boo": np.ones(2)}}
    rule = {"tensor_regex": ".*"}
    assert judge(UnchangedTensor(**rule, end_step=2), steps).status == "not_evaluated"
    assert fired_at(judge(UnchangedTensor(**rule), steps)) == [2]
    assert fired_at(judge(UnchangedTensor(**rule, start_step=2), steps)) == [2]
    assert judge(UnchangedTensor(**rule, start_step=3), steps).status == "not_evaluated"


@pytest.mark.parametrize(("middle", "status"), [(1.000009, "fired"), (1.00002, "clean")])
def test_tolerance_is_of_the_current_value(judge: Judge, middle: float, status: str) -> None:
    steps = {n: {"a": np.array([value])} for n, value in enumerate((1.0, middle, 1.0))}
    assert judge(UnchangedTensor(tensor_regex="a"), steps).status == status


def test_too_few_steps_are_said(judge: Judge) -> None:
    outcome = judge(UnchangedTensor(tensor_regex="a"), {0: {"a": 1.0}, 1: {"a": 1.0}})
    assert (outcome.status, outcome.reason) == ("not_evaluated", "too few saved steps: at most 2, needs 3")


def test_the_window_stays_within_a_mode(judge: Judge) -> None:
    steps = {
        n: ("EVAL" if n in (2, 3) else "TRAIN", {"w": np.array([float(n if n not in (2, 3) else 1)])})
        for n in range(6)
    }
    assert judge(UnchangedTensor(tensor_regex="w"), steps).status == "clean"


def test_shape_changes_nan_and_strings(judge: Judge) -> None:
    shapes = {n: {"a": np.ones(2 + n % 2)} for n in range(4)}
    assert judge(UnchangedTensor(tensor_regex="a"), shapes).status == "clean"
    nan = {n: {"a": np.array([np.nan])} for n in range(3)}
    assert judge(UnchangedTensor(tensor_regex="a"), nan).status == "not_evaluated"
    assert judge(UnchangedTensor(tensor_regex="a", equal_nan=True), nan).status == "fired"
    words = {n: {"a": ["x", "y"]} for n in range(3)}
    assert judge(UnchangedTensor(tensor_regex="a"), words).status == "fired"


def test_reductions_do_not_suffice(judge: Judge) -> None:
    steps = {n: {"a": np.ones(2)} for n in range(4)}
    outcome = judge(UnchangedTensor(tensor_regex="a"), steps, raw=False, reductions=("mean",))
    assert (outcome.status, outcome.reason) == ("not_evaluated", "raw value not saved (4 points)")


def test_trained_only_leaves_layers_without_gradients_alone(judge: Judge) -> None:
    rule = {"tensor_regex": "weight$"}
    frozen = {"frozen.weight": np.ones(2)}
    steps = {n: frozen | {"a.weight": np.ones(2) + n, "gradient/a.weight": np.ones(2) * n} for n in range(3)}
    assert judge(UnchangedTensor(**rule), steps).status == "fired"
    outcome = judge(UnchangedTensor(**rule, trained_only=True, exclude="gradient"), steps)
    assert outcome.status == "clean"
    assert outcome.coverage.skipped["no gradient is saved: frozen by intent"] == 3
    forgotten = {n: tensors | {"gradient/frozen.weight": np.ones(2) * n} for n, tensors in steps.items()}
    assert judge(UnchangedTensor(**rule, trained_only=True), forgotten).status == "fired"
    assert (
        judge(UnchangedTensor(**rule, trained_only=True), dict.fromkeys(range(3), frozen)).status == "fired"
    )


def test_trained_only_leaves_evaluation_steps_alone(judge: Judge) -> None:
    steps = {n: ("TRAIN" if n < 4 else "EVAL", {"a.weight": np.array([min(n, 4.0)])}) for n in range(9)}
    assert judge(UnchangedTensor(tensor_regex="a"), steps).status == "fired"
    assert judge(UnchangedTensor(tensor_regex="a", trained_only=True), steps).status == "clean"


def test_what_has_once_changed_can_be_left_alone(judge: Judge) -> None:
    stops = {n: {"a": np.array([min(n, 3.0)])} for n in range(9)}
    assert judge(UnchangedTensor(tensor_regex="a"), stops).status == "fired"
    assert judge(UnchangedTensor(tensor_regex="a", untrained_only=True), stops).status == "clean"
    never = {n: {"a": np.array([1.0])} for n in range(9)}
    assert judge(UnchangedTensor(tensor_regex="a", untrained_only=True), never).status == "fired"
    soon = {n: {"a": np.array([float(n == 0)])} for n in range(9)}
    assert judge(UnchangedTensor(tensor_regex="a", untrained_only=True, num_steps=5), soon).status == "clean"
