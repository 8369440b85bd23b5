"""SaturatedActivation."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.saturated_activation import SaturatedActivation
from tests.builtin_rules.conftest import Judge

ROWS = np.array([[-10, 0.1, 12], [-11, -0.2, 9.6]])


def test_worked_examples(judge: Judge) -> None:
    (finding,) = judge(SaturatedActivation(), {0: {"tanh_input_0": ROWS}}).findings
    assert finding.value == pytest.approx(200 / 3)
    assert judge(SaturatedActivation(), {0: {"sigmoid_input_0": np.full((2, 3), -20.0)}}).status == "clean"
    assert judge(SaturatedActivation(), {0: {"sigmoid_input_0": np.full((2, 3), 17.0)}}).status == "fired"


def test_half_of_the_units_is_clean(judge: Judge) -> None:
    values = np.array([[10.0, 0.0], [10.0, 0.0]])
    assert judge(SaturatedActivation(), {0: {"tanh_input_0": values}}).status == "clean"
    assert judge(SaturatedActivation(threshold_layer=49), {0: {"tanh_input_0": values}}).status == "fired"


def test_the_later_word_decides(judge: Judge) -> None:
    values = np.full((1, 2), 12.0)
    assert judge(SaturatedActivation(), {0: {"sigmoid.tanh_input": values}}).status == "fired"
    assert judge(SaturatedActivation(), {0: {"tanh.sigmoid_input": values}}).status == "clean"
    outcome = judge(SaturatedActivation(tensor_regex="act"), {0: {"act": values}})
    assert outcome.reason == "the name says neither tanh nor sigmoid (1 point)"


def test_ranges_are_checked() -> None:
    with pytest.raises(ValueError, match="threshold_tanh_min=5 must be below threshold_tanh_max=5"):
        SaturatedActivation(threshold_tanh_min=5, threshold_tanh_max=5)


@pytest.mark.parametrize(
    "name", ["Tanh_input_0", "layer1.tanh_input_0", "conv0_tanh_input_0", "tanh_1/inputs"]
)
def test_names_of_frameworks(judge: Judge, name: str) -> None:
    assert judge(SaturatedActivation(), {0: {name: np.full((2, 2), 50.0)}}).status == "fired"


@pytest.mark.parametrize(("value", "status"), [(50.0, "fired"), (-50.0, "fired"), (1.0, "not_evaluated")])
def test_saved_bounds_can_prove_saturation(judge: Judge, value: float, status: str) -> None:
    steps = {0: {"tanh_input_0": np.full((2, 2), value)}}
    assert judge(SaturatedActivation(), steps, raw=False, reductions=("min", "max")).status == status


@pytest.mark.parametrize(("flat", "status"), [(3, "fired"), (2, "clean")])
def test_a_window_forgives_small_batches(judge: Judge, flat: int, status: str) -> None:
    steps = {n: ("TRAIN", {"tanh_input_0": np.full((2, 2), 50.0 if n < flat else 0.0)}) for n in range(4)}
    assert judge(SaturatedActivation(window=3), steps).status == status
    assert judge(SaturatedActivation(window=5), steps).status == "not_evaluated"
