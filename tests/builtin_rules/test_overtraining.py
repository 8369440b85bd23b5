"""Overtraining."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.overtraining import Overtraining
from tests.builtin_rules.conftest import Judge, fired_at


def test_boosting_that_does_not_improve_fires(judge: Judge) -> None:
    errors = [0.050, 0.045, 0.044, 0.043, 0.042, 0.041]
    outcome = judge(
        Overtraining(tensor_regex="-"), {n: {"train-error": np.array([e])} for n, e in enumerate(errors)}
    )
    assert fired_at(outcome) == [5]


def phases(training: list[float], validation: list[float]) -> dict[int, object]:
    pairs = [p for t, v in zip(training, validation, strict=True) for p in (("TRAIN", t), ("EVAL", v))]
    return {n: (mode, {"loss_output_0": np.float64(loss)}) for n, (mode, loss) in enumerate(pairs)}


def test_validation_has_a_patience_of_its_own(judge: Judge) -> None:
    training = [1 - 0.05 * n for n in range(12)]
    outcome = judge(Overtraining(), phases(training, [1.0] + [0.995] * 11))
    # The 11th evaluation phase is closed by the training step after it.
    assert fired_at(outcome)[0] == 22
    assert outcome.findings[0].statistic == "stale_validation"
    assert judge(Overtraining(), phases(training[:10], [1.0] + [0.995] * 9)).status == "clean"


def test_improvements_are_clean(judge: Judge) -> None:
    falling = [1 - 0.02 * n for n in range(15)]
    assert judge(Overtraining(), phases(falling, falling)).status == "clean"


def test_granularity_of_steps(judge: Judge) -> None:
    steps = {n: ("TRAIN", {"loss_output_0": 1.0}) for n in range(8)}
    assert judge(Overtraining(), steps).status == "clean"
    assert fired_at(judge(Overtraining(granularity="step"), steps)) == [5]


def test_a_loss_that_is_not_a_number_is_no_improvement(judge: Judge) -> None:
    steps = {n: ("TRAIN", {"loss_output_0": 1.0 if n == 0 else np.nan}) for n in range(8)}
    assert fired_at(judge(Overtraining(granularity="step"), steps)) == [5]


def test_metrics_that_rise_are_no_losses(judge: Judge) -> None:
    steps = {n: {"validation-auc": np.array([0.5]), "validation-ndcg@5": np.array([0.5])} for n in range(20)}
    assert judge(Overtraining(tensor_regex="-"), steps).status == "not_evaluated"


def test_a_plateau_is_no_rise(judge: Judge) -> None:
    training = [1 - 0.05 * n for n in range(12)]
    flat = phases(training, [0.5] * 12)
    assert judge(Overtraining(), flat).status == "fired"
    assert judge(Overtraining(rise=0.05), flat).status == "clean"


def test_a_rise_must_last_and_be_large_enough(judge: Judge) -> None:
    training = [1 - 0.05 * n for n in range(8)]

    def rule(validation: list[float]) -> str:
        return judge(Overtraining(rise=0.05, patience_validation=3), phases(training, validation)).status

    assert rule([0.5, 0.5, 0.5, 0.5, 0.5, 0.56, 0.56, 0.56]) == "fired"
    assert rule([0.5, 0.5, 0.5, 0.5, 0.5, 0.54, 0.54, 0.54]) == "clean"
    assert rule([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.56, 0.56]) == "clean"
    assert rule([0.5, 0.5, 0.5, 0.56, 0.56, 0.5, 0.56, 0.56]) == "clean"


def test_a_loss_that_is_not_a_number_has_risen(judge: Judge) -> None:
    steps = {n: ("TRAIN", {"loss_output_0": 1.0 if n == 0 else np.nan}) for n in range(8)}
    assert fired_at(judge(Overtraining(granularity="step", rise=0.05), steps)) == [5]


@pytest.mark.parametrize(("noise", "status"), [(1.0, "fired"), (3.0, "clean")])
def test_a_rise_within_the_noise_is_none(judge: Judge, noise: float, status: str) -> None:
    validation = [0.5 + 0.1 * (n % 2) for n in range(9)] + [0.65, 0.75, 0.65, 0.75]
    steps = phases([1 - 0.01 * n for n in range(13)], validation)
    assert judge(Overtraining(noise=noise, patience_validation=4, patience_train=99), steps).status == status
