"""WeightUpdateRatio."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.weight_update_ratio import WeightUpdateRatio
from tests.builtin_rules.conftest import Judge


def weights(*values: list[float]) -> dict[int, dict[str, object]]:
    return {n: {"a.weight": np.array(value)} for n, value in enumerate(values)}


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ([1, 1], [1.1, 1.1], "clean"),
        ([1, 1], [1, 1], "fired"),
        ([0.01, 0], [0.2, 0], "fired"),
        ([0, 0], [1, 0], "fired"),
    ],
)
def test_worked_examples(judge: Judge, before: list[float], after: list[float], status: str) -> None:
    outcome = judge(WeightUpdateRatio(), weights(before, after), mode="TRAIN")
    assert outcome.status == status


def test_the_value_is_the_ratio_of_norms(judge: Judge) -> None:
    (finding,) = judge(WeightUpdateRatio(), weights([0.01, 0], [0.2, 0])).findings
    assert finding.value == pytest.approx(18.999998, rel=1e-6)
    assert (finding.step, finding.comparison) == (1, ">")
    one = judge(WeightUpdateRatio(norm="l1", large_threshold=2), weights([1, 1], [4, 4])).findings[0]
    assert one.value == pytest.approx(3)


def test_num_steps_looks_back_to_the_earliest_in_the_window(judge: Judge) -> None:
    steps = {n * 10: {"a.weight": np.array([1.0 + n])} for n in range(5)}
    outcome = judge(WeightUpdateRatio(num_steps=25, large_threshold=1.5), steps)
    # From step 0 to 20: (3 - 1) / 1; from 10 to 30: (4 - 2) / 2.
    assert [(f.step, f.value) for f in outcome.findings] == [(20, pytest.approx(2.0))]


def test_evaluation_steps_do_not_count(judge: Judge) -> None:
    steps = {n: ("EVAL" if n % 2 else "TRAIN", {"a.weight": np.array([2.0 ** (n // 2)])}) for n in range(6)}
    assert judge(WeightUpdateRatio(), steps).status == "clean"


def test_first_steps_and_changed_shapes_are_skipped(judge: Judge) -> None:
    assert judge(WeightUpdateRatio(), weights([1.0])).reason == "too few saved steps: at most 1, needs 2"
    assert (
        judge(WeightUpdateRatio(), weights([1.0], [1.0, 2.0])).coverage.skipped["the shape has changed"] == 1
    )


def test_non_finite_weights_are_indeterminate(judge: Judge) -> None:
    assert judge(WeightUpdateRatio(), weights([1.0], [np.nan])).status == "not_evaluated"


@pytest.mark.parametrize("name", ["Net_fc.weight", "conv0_weight", "dense/weights/dense/kernel:0"])
def test_names_of_frameworks(judge: Judge, name: str) -> None:
    assert judge(WeightUpdateRatio(), {n: {name: np.ones(2)} for n in range(2)}).status == "fired"


@pytest.mark.parametrize(("same", "status"), [(4, "fired"), (3, "clean")])
def test_patience_waits_for_a_streak(judge: Judge, same: int, status: str) -> None:
    values = [[1.0, 1.0]] * same + [[1.1, 1.1], [1.2, 1.2]]
    assert judge(WeightUpdateRatio(patience=3), weights(*values)).status == status


def test_trained_only_leaves_layers_without_gradients_alone(judge: Judge) -> None:
    frozen = {"frozen.weight": np.ones(2)}
    steps = {n: frozen | {"a.weight": np.ones(2) + n, "gradient/a.weight": np.ones(2)} for n in range(3)}
    assert judge(WeightUpdateRatio(), steps).status == "fired"
    assert judge(WeightUpdateRatio(trained_only=True), steps).status == "clean"
    forgotten = {n: tensors | {"gradient/frozen.weight": np.ones(2)} for n, tensors in steps.items()}
    assert judge(WeightUpdateRatio(trained_only=True), forgotten).status == "fired"
    assert judge(WeightUpdateRatio(trained_only=True), dict.fromkeys(range(3), frozen)).status == "fired"


def test_what_has_once_changed_can_be_left_alone(judge: Judge) -> None:
    stops = weights([1.0], [1.1], [1.1], [1.1])
    assert judge(WeightUpdateRatio(), stops).status == "fired"
    assert judge(WeightUpdateRatio(untrained_only=True), stops).status == "clean"
    assert judge(WeightUpdateRatio(untrained_only=True), weights([1.0], [1.0], [1.1])).status == "fired"
    assert judge(WeightUpdateRatio(untrained_only=True), weights([1.0], [1.1], [99.0])).status == "fired"
