"""LossNotDecreasing."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.loss_not_decreasing import LossNotDecreasing
from tests.builtin_rules.conftest import Judge, fired_at

RISING = [0.3, 0.33, 0.31, 0.30, 0.28]


def losses(values: list[float], every: int = 4, name: str = "loss") -> dict[int, dict[str, object]]:
    return {n * every: {name: np.float32(value)} for n, value in enumerate(values)}


@pytest.mark.parametrize(
    "parameters", [{"tensor_regex": "loss, losses"}, {"collection_names": ["losses"]}, {}]
)
def test_an_equal_loss_fires(judge: Judge, parameters: dict[str, object]) -> None:
    outcome = judge(LossNotDecreasing(**parameters), losses(RISING, name="loss_output_0"))
    assert fired_at(outcome) == [12]


def test_every_scalar_is_a_loss_where_there_is_none(judge: Judge) -> None:
    outcome = judge(LossNotDecreasing(), losses(RISING, name="value"))
    assert fired_at(outcome) == [12]


def test_checks_keep_their_distance(judge: Judge) -> None:
    outcome = judge(LossNotDecreasing(), losses([0.30, 0.33, 0.31, 0.29, 0.28, 0.20, 0.42]))
    assert fired_at(outcome) == [24]
    assert outcome.coverage.points == 2
    assert "increase 44.83 % > 5 %" in outcome.findings[0].message


@pytest.mark.parametrize(
    ("after", "status"),
    [(0.9995, "fired"), (0.998, "clean"), (1.04, "clean"), (1.06, "fired"), (1.0, "fired")],
)
def test_both_limits(judge: Judge, after: float, status: str) -> None:
    steps = {0: {"loss": np.float64(1.0)}, 10: {"loss": np.float64(after)}}
    assert judge(LossNotDecreasing(), steps).status == status


def test_zero_demands_still_refuse_a_flat_loss(judge: Judge) -> None:
    steps = {0: {"loss": 1.0}, 10: {"loss": 1.0}}
    assert judge(LossNotDecreasing(diff_percent=0), steps).status == "fired"


def test_a_loss_from_zero(judge: Judge) -> None:
    assert judge(LossNotDecreasing(), {0: {"loss": 0.0}, 10: {"loss": 1.0}}).status == "fired"
    assert judge(LossNotDecreasing(), {0: {"loss": 0.0}, 10: {"loss": -1.0}}).status == "clean"


def test_evaluation_steps_are_preferred(judge: Judge) -> None:
    steps = {n: ("EVAL" if n % 2 else "TRAIN", {"loss": 1.0 if n % 2 else 1 / (n + 1)}) for n in range(30)}
    assert {f.mode for f in judge(LossNotDecreasing(), steps).findings} == {"EVAL"}
    assert judge(LossNotDecreasing(mode="train"), steps).status == "clean"


def test_a_loss_that_is_not_a_number_violates(judge: Judge) -> None:
    outcome = judge(LossNotDecreasing(), {0: {"loss": 1.0}, 3: {"loss": np.nan}})
    assert fired_at(outcome) == [3]


def test_one_step_is_not_enough(judge: Judge) -> None:
    outcome = judge(LossNotDecreasing(), {0: {"loss": 1.0}, 4: {"loss": 0.5}})
    assert (outcome.status, outcome.reason) == ("not_evaluated", "too few saved steps: at most 4, needs 10")


def test_workers_are_averaged(judge: Judge) -> None:
    outcome = judge(LossNotDecreasing(), losses([1.0] * 5), workers=("worker_0", "worker_1"))
    assert [finding.worker for finding in outcome.findings] == [None]


def test_per_sample_losses_are_averaged(judge: Judge) -> None:
    steps = {n * 10: {"loss_output_0": np.array([2.0, 0.0]) / (n + 1), "big": np.ones(9)} for n in range(3)}
    assert judge(LossNotDecreasing(), steps).status == "clean"
    skipped = judge(LossNotDecreasing(tensor_regex="big", use_losses_collection=False), steps)
    assert skipped.coverage.skipped == {"not a scalar": 3}
