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


def test_training_steps_can_be_preferred(judge: Judge) -> None:
    steps = {n: ("EVAL" if n % 2 else "TRAIN", {"loss": 1.0 if n % 2 else 1 / (n + 1)}) for n in range(30)}
    assert judge(LossNotDecreasing(prefer="TRAIN"), steps).status == "clean"
    assert judge(LossNotDecreasing(prefer="TRAIN"), losses([1.0] * 5)).status == "fired"


@pytest.mark.parametrize(("after", "status"), [(0.2, "fired"), (0.14, "clean")])
def test_changes_can_be_measured_by_the_first_loss(judge: Judge, after: float, status: str) -> None:
    steps = losses([1.0, 0.1, after], every=10)
    rule = {"increase_threshold_percent": 5}
    assert judge(LossNotDecreasing(**rule, relative_to="first"), steps).status == status
    assert judge(LossNotDecreasing(**rule), steps).status == "fired"


def test_smoothing_forgives_noise(judge: Judge) -> None:
    noisy = losses([1.0, 0.8, 0.9, 0.6, 0.75, 0.4, 0.55, 0.2], every=10)
    assert judge(LossNotDecreasing(), noisy).status == "fired"
    assert judge(LossNotDecreasing(smoothing=2), noisy).status == "clean"
    rising = losses([0.2, 0.55, 0.4, 0.75, 0.6, 0.9, 0.8, 1.0], every=10)
    assert judge(LossNotDecreasing(smoothing=2), rising).status == "fired"


@pytest.mark.parametrize(("last", "status"), [(0.81, "fired"), (0.79, "clean"), (1.04, "fired")])
def test_progress_is_judged_at_the_end(judge: Judge, last: float, status: str) -> None:
    rule = {"diff_percent": 0, "relative_to": "first"}
    steps = losses([1.0, last], every=10)
    outcome = judge(LossNotDecreasing(**rule, least_progress_percent=20), steps)
    assert outcome.status == status
    assert judge(LossNotDecreasing(**rule), steps).status == "clean"
    if status == "fired":
        assert outcome.findings[-1].statistic == "progress_percent"


def test_progress_of_validation_in_boosting_is_not_judged(judge: Judge) -> None:
    steps = {n: {"validation-rmse": np.array([1 - n / 1000])} for n in range(30)}
    rule = LossNotDecreasing(tensor_regex="-", diff_percent=0, least_progress_percent=20)
    assert judge(rule, steps).status == "clean"
    shares = {n: {"train-error": np.array([0.03])} for n in range(30)}
    assert judge(rule, shares).status == "clean"
    training = {n: {"train-rmse": np.array([1 - n / 1000])} for n in range(30)}
    assert judge(rule, training).status == "fired"
    assert judge(rule, {n: training[n] for n in range(9)}).status == "not_evaluated"
