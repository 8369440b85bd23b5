"""Overtraining."""

from __future__ import annotations

import numpy as np

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
