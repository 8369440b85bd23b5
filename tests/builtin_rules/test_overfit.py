"""Overfit."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.overfit import Overfit
from tests.builtin_rules.conftest import Judge, fired_at


def run(*losses: tuple[str, float]) -> dict[int, object]:
    return {n: (mode, {"loss_output_0": np.float64(loss)}) for n, (mode, loss) in enumerate(losses)}


T, E = "TRAIN", "EVAL"


@pytest.mark.parametrize(("validation", "steps"), [(0.9, [5]), (0.86, [])])
def test_judged_at_the_first_training_step_after_evaluation(
    judge: Judge, validation: float, steps: list[int]
) -> None:
    outcome = judge(Overfit(), run((T, 1.0), (T, 0.8), (T, 0.6), (E, validation), (E, validation), (T, 0.5)))
    assert fired_at(outcome) == steps


def test_patience_counts_bad_judgements_in_a_row(judge: Judge) -> None:
    losses = [pair for gap in (0.2, 0.05, 0.2, 0.3) for pair in ((T, 1.0), (E, 1 + gap))]
    outcome = judge(Overfit(patience=2), run(*losses, (T, 1.0)))
    assert fired_at(outcome) == [8]


def test_an_evaluation_before_training_is_dropped(judge: Judge) -> None:
    outcome = judge(Overfit(), run((E, 2.0), (T, 1.0), (T, 1.0), (E, 1.0), (T, 1.0)))
    assert outcome.status == "clean"


def test_the_last_phase_is_judged_at_the_end(judge: Judge) -> None:
    assert fired_at(judge(Overfit(), run((T, 1.0), (E, 2.0)))) == [1]


def test_boosting_compares_two_metrics(judge: Judge) -> None:
    steps = {
        5: {
            "train-rmse": np.array([1.0]),
            "validation-rmse": np.array([1.2]),
            "train-auc": np.array([0.5]),
            "validation-auc": np.array([0.9]),
        }
    }
    outcome = judge(Overfit(tensor_regex="-"), steps)
    assert [(f.subject, f.step) for f in outcome.findings] == [("validation-rmse", 5)]


def test_a_loss_that_is_not_a_number_is_bad(judge: Judge) -> None:
    assert judge(Overfit(), run((T, 1.0), (E, np.nan), (T, 1.0))).status == "fired"


def test_start_step_leaves_earlier_data_out(judge: Judge) -> None:
    losses = run((T, 1.0), (E, 2.0), (T, 1.0), (E, 1.0), (T, 1.0))
    assert fired_at(judge(Overfit(), losses)) == [2]
    assert judge(Overfit(start_step=2), losses).status == "clean"


def test_not_evaluated(judge: Judge) -> None:
    assert judge(Overfit(), run((T, 1.0), (T, 0.5))).reason == "no evaluation steps (1 point)"
    assert "no modes" in str(judge(Overfit(), {0: {"loss_output_0": 1.0}}).reason)
    assert judge(Overfit(), {0: {"a": 1.0}}).status == "not_evaluated"


@pytest.mark.parametrize(("gap", "status"), [(0.45, "fired"), (0.35, "clean")])
def test_the_gap_can_be_measured_by_the_first_loss(judge: Judge, gap: float, status: str) -> None:
    losses = run((T, 1.0), (E, 1.0), (T, 0.01), (E, 0.01 + gap), (T, 0.01))
    assert judge(Overfit(relative_to="first", ratio_threshold=0.4), losses).status == status
    assert judge(Overfit(ratio_threshold=0.4), losses).status == "fired"


def test_boosting_measures_by_the_first_training_loss(judge: Judge) -> None:
    def rounds(validation: float) -> dict[int, object]:
        pairs = [(1.0, 1.0), (0.01, validation)]
        return {
            n: {"train-rmse": np.array([t]), "validation-rmse": np.array([v])}
            for n, (t, v) in enumerate(pairs)
        }

    rule = Overfit(tensor_regex="-", relative_to="first", ratio_threshold=0.4)
    assert judge(rule, rounds(0.4)).status == "clean"
    assert judge(rule, rounds(0.42)).status == "fired"


def test_shares_of_wrong_predictions_are_measured_by_guessing(judge: Judge) -> None:
    def rounds(validation: float) -> dict[int, object]:
        return {
            n: {"train-error": np.array([0.02]), "validation-error": np.array([validation])} for n in range(2)
        }

    rule = Overfit(tensor_regex="-", relative_to="first", ratio_threshold=0.4)
    assert judge(rule, rounds(0.21)).status == "clean"
    assert judge(rule, rounds(0.23)).status == "fired"
