"""DeadRelu."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.dead_relu import DeadRelu
from tests.builtin_rules.conftest import Judge


def layer(dead: int, units: int = 4, samples: int = 4) -> np.ndarray:
    values = np.ones((samples, units))
    values[:, :dead] = 0
    return values


@pytest.mark.parametrize(("dead", "status"), [(3, "fired"), (2, "clean"), (4, "fired"), (0, "clean")])
def test_share_of_dead_units(judge: Judge, dead: int, status: str) -> None:
    assert judge(DeadRelu(), {0: {"relu_output_0": layer(dead)}}).status == status


def test_a_unit_is_dead_below_the_inactivity_threshold(judge: Judge) -> None:
    values = np.zeros((200, 1))
    values[0] = 1
    assert judge(DeadRelu(), {0: {"relu_output": values}}).status == "fired"
    values[1] = 1
    assert judge(DeadRelu(), {0: {"relu_output": values}}).status == "clean"


def test_channels_can_be_the_units(judge: Judge) -> None:
    values = np.zeros((2, 2, 3, 3))
    values[:, :, 0, 0] = 1
    assert judge(DeadRelu(), {0: {"relu_output": values}}).status == "fired"
    assert judge(DeadRelu(unit_axis=1), {0: {"relu_output": values}}).status == "clean"


def test_nan_is_inactive_and_empty_is_skipped(judge: Judge) -> None:
    assert judge(DeadRelu(), {0: {"relu_output": np.full((2, 2), np.nan)}}).status == "fired"
    assert judge(DeadRelu(), {0: {"relu_output": np.empty((0, 2))}}).status == "not_evaluated"
    assert "nothing matched" in str(judge(DeadRelu(), {0: {"fc_output_0": layer(4)}}).reason)


@pytest.mark.parametrize(
    "name",
    [
        "layer1.0.relu_output_0",
        "ReLU_output_0",
        "conv0_relu_output_0",
        "relu1/act:0",
        "re_lu_1/outputs",
        "relu2_output_0",
    ],
)
def test_names_of_frameworks(judge: Judge, name: str) -> None:
    assert judge(DeadRelu(), {0: {name: layer(4)}}).status == "fired"


@pytest.mark.parametrize("name", ["LeakyReLU_output_0", "PReLU_output_0"])
def test_activations_that_never_die_are_left_alone(judge: Judge, name: str) -> None:
    assert judge(DeadRelu(), {0: {name: layer(4)}}).status == "not_evaluated"


def test_a_pattern_of_ones_own_is_taken_as_it_is(judge: Judge) -> None:
    assert (
        judge(DeadRelu(tensor_regex="relu_out"), {0: {"ReLU_output_0": layer(4)}}).status == "not_evaluated"
    )


def test_a_saved_maximum_can_prove_that_all_units_are_dead(judge: Judge) -> None:
    options = {"raw": False, "reductions": ("max",)}
    assert judge(DeadRelu(), {0: {"relu_output": layer(4)}}, **options).status == "fired"
    alive = judge(DeadRelu(), {0: {"relu_output": layer(3)}}, **options)
    assert (alive.status, alive.reason) == ("not_evaluated", "raw value not saved (1 point)")


@pytest.mark.parametrize(("silent", "status"), [(3, "fired"), (2, "clean")])
def test_a_window_forgives_small_batches(judge: Judge, silent: int, status: str) -> None:
    steps = {n: ("TRAIN", {"relu_output_0": layer(4 if n < silent else 0)}) for n in range(4)}
    assert judge(DeadRelu(window=3), steps).status == status
    assert judge(DeadRelu(window=5), steps).status == "not_evaluated"


def test_a_window_begins_again_with_another_layout(judge: Judge) -> None:
    steps = {n: {"relu_output_0": layer(4, units=4 + n // 2)} for n in range(4)}
    assert judge(DeadRelu(window=3), steps).status == "not_evaluated"
    assert judge(DeadRelu(window=2), steps).status == "fired"
