"""PoorWeightInitialization."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.poor_weight_initialization import PoorWeightInitialization
from tests.builtin_rules.conftest import Judge, fired_at

WIDE = np.linspace(-1, 1, 1001)


def test_layers_of_different_spread(judge: Judge) -> None:
    steps = {0: {"relu1_input_0": np.array([-1.0, 1.0]), "relu2_input_0": np.array([-0.1, 0.1])}}
    (finding,) = judge(PoorWeightInitialization(), steps).findings
    assert (finding.subject, finding.statistic, finding.step) == ("relu1_input_0", "variance_ratio", 0)
    assert finding.value == pytest.approx(100)
    close = {0: {"relu1_input_0": np.array([-1.0, 1.0]), "relu2_input_0": np.array([-0.4, 0.4])}}
    assert judge(PoorWeightInitialization(), close).status == "clean"


@pytest.mark.parametrize(("scale", "status"), [(4e-4, "fired"), (1e-3, "clean")])
def test_spread_of_gradients(judge: Judge, scale: float, status: str) -> None:
    outcome = judge(
        PoorWeightInitialization(), {0: {"gradient/a": WIDE * scale, "gradient/one": np.array([0.0])}}
    )
    assert outcome.status == status


def test_a_loss_that_stays(judge: Judge) -> None:
    outcome = judge(PoorWeightInitialization(), {n: {"loss_output_0": 2.3} for n in range(10)})
    assert fired_at(outcome) == [5]
    falling = {n: {"loss_output_0": 2.3 - 0.1 * (n // 5)} for n in range(10)}
    assert judge(PoorWeightInitialization(), falling).status == "clean"


def test_only_the_first_steps_count(judge: Judge) -> None:
    steps = {n: ("TRAIN", {"gradient/a": WIDE if n < 10 else WIDE * 0}) for n in range(20)}
    outcome = judge(PoorWeightInitialization(), steps)
    assert (outcome.status, outcome.coverage.steps) == ("clean", 10)
    assert judge(PoorWeightInitialization(steps=11), steps).status == "fired"
    assert judge(PoorWeightInitialization(start_step=5), steps).status == "fired"


def test_evaluation_steps_are_left_out(judge: Judge) -> None:
    steps = {n: ("TRAIN" if n % 2 else "EVAL", {"gradient/a": WIDE * (n % 2)}) for n in range(6)}
    assert judge(PoorWeightInitialization(), steps).status == "clean"


def test_not_evaluated(judge: Judge) -> None:
    assert judge(PoorWeightInitialization(), {0: {"a": 1.0}}).status == "not_evaluated"


@pytest.mark.parametrize(
    "name", ["ReLU_input_0", "layer1.relu_input_0", "conv0_relu_input_0", "re_lu/inputs"]
)
def test_names_of_frameworks(judge: Judge, name: str) -> None:
    steps = {0: {name: np.array([-1.0, 1.0]), f"x.{name}": np.array([-0.1, 0.1])}}
    assert judge(PoorWeightInitialization(), steps).status == "fired"


@pytest.mark.parametrize(("scale", "status"), [(0.9e-4, "fired"), (1.1e-4, "clean")])
def test_gradients_can_be_compared_with_the_widest(judge: Judge, scale: float, status: str) -> None:
    steps = {0: {"gradient/a": WIDE * scale * 1e-3, "gradient/b": WIDE * 1e-3}}
    assert judge(PoorWeightInitialization(gradient_ratio=1e-4), steps).status == status


def test_gradients_that_are_all_zero_have_no_widest(judge: Judge) -> None:
    outcome = judge(PoorWeightInitialization(gradient_ratio=1e-4), {0: {"gradient/a": WIDE * 0}})
    assert outcome.status == "not_evaluated"
