"""ClassImbalance."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.class_imbalance import ClassImbalance
from tests.builtin_rules.conftest import Judge, fired_at


def test_worked_examples(judge: Judge) -> None:
    labels = np.repeat([0, 1], [990, 10])
    outcome = judge(ClassImbalance(), {3: {"labels": labels, "predictions": labels}})
    assert fired_at(outcome) == [3]
    assert outcome.findings[0].value == 99
    labels = np.repeat([0, 1], [400, 100])
    predictions = labels.copy()
    predictions[400:475] = 0
    (finding,) = judge(ClassImbalance(), {0: {"labels": labels, "predictions": predictions}}).findings
    assert (finding.statistic, finding.value) == ("mispredicted_class_1", 0.75)
    balanced = np.tile([0, 1], 150)
    steps = {n: {"labels": balanced, "predictions": balanced} for n in range(2)}
    assert judge(ClassImbalance(), steps).status == "clean"


def test_limits_are_strict(judge: Judge) -> None:
    labels = np.repeat([0, 1], [500, 50])
    assert judge(ClassImbalance(), {0: {"labels": labels}}).status == "clean"
    assert judge(ClassImbalance(), {0: {"labels": np.append(labels, 0)}}).status == "fired"


def test_counts_grow_over_all_modes(judge: Judge) -> None:
    labels = np.repeat([0, 1], [95, 5])
    steps = {n: ("EVAL" if n % 2 else "TRAIN", {"labels": labels}) for n in range(6)}
    outcome = judge(ClassImbalance(samples=450), steps)
    assert fired_at(outcome) == [4, 5]
    few = judge(ClassImbalance(samples=601), steps)
    assert (few.status, few.reason) == ("not_evaluated", "too few labels: at most 600, needs 601")


def test_scores_need_argmax(judge: Judge) -> None:
    labels = np.tile([0, 1], 300)
    scores = np.eye(2)[1 - labels]
    without = judge(ClassImbalance(), {0: {"labels": labels, "predictions": scores}})
    assert without.status == "clean"
    assert any("argmax" in reason for reason in without.coverage.skipped)
    assert (
        judge(ClassImbalance(argmax=True), {0: {"labels": labels, "predictions": scores}}).status == "fired"
    )


def test_one_class_and_one_hot(judge: Judge) -> None:
    assert judge(ClassImbalance(), {0: {"labels": np.zeros(600, int)}}).status == "clean"
    one_hot = np.eye(2)[np.repeat([0, 1], [590, 10])]
    assert judge(ClassImbalance(), {0: {"labels": one_hot}}).status == "fired"


def test_predictions_without_labels(judge: Judge) -> None:
    assert "nothing matched" in str(judge(ClassImbalance(), {0: {"predictions": np.zeros(600)}}).reason)


@pytest.mark.parametrize("name", ["labels", "labels_0", "CrossEntropyLoss_input_1", "my/labels"])
def test_names_of_frameworks(judge: Judge, name: str) -> None:
    assert judge(ClassImbalance(), {0: {name: np.repeat([0, 1], [590, 10])}}).status == "fired"


@pytest.mark.parametrize(("rare", "status"), [(5, "clean"), (50, "fired")])
def test_confidence_asks_for_more_than_chance(judge: Judge, rare: int, status: str) -> None:
    steps = {0: {"labels": np.repeat([0, 1], [15 * rare, rare])}}
    assert judge(ClassImbalance(samples=1), steps).status == "fired"
    assert judge(ClassImbalance(samples=1, confidence=2), steps).status == status


def guesses(*wrong: bool) -> dict[int, object]:
    labels = np.tile([0, 1], 300)
    return {
        n: ("TRAIN", {"labels": labels, "predictions": 1 - labels if bad else labels})
        for n, bad in enumerate(wrong)
    }


def test_recent_forgets_the_untrained_network(judge: Judge) -> None:
    assert fired_at(judge(ClassImbalance(), guesses(True, True, False))) == [0]
    outcome = judge(ClassImbalance(recent=2, start_step=1), guesses(False, True, False, True, True))
    assert fired_at(outcome) == [1, 4]


def test_mispredictions_can_be_judged_at_the_end(judge: Judge) -> None:
    rule = ClassImbalance(at_end=True, recent=1)
    assert judge(rule, guesses(True, True, False)).status == "clean"
    assert fired_at(judge(rule, guesses(False, False, True))) == [2]
    imbalanced = {0: {"labels": np.repeat([0, 1], [590, 10])}, 1: {"labels": np.repeat([0, 1], [10, 590])}}
    assert fired_at(judge(rule, imbalanced)) == [0]


def test_labels_of_a_regression_can_be_left_out(judge: Judge) -> None:
    labels = np.linspace(0, 1, 600) ** 9
    assert judge(ClassImbalance(), {0: {"labels": labels}}).status == "fired"
    outcome = judge(ClassImbalance(whole_labels=True), {0: {"labels": labels}})
    assert outcome.reason == "labels are no whole numbers (1 point)"
    assert judge(ClassImbalance(whole_labels=True), {0: {"labels": np.rint(labels)}}).status == "fired"
