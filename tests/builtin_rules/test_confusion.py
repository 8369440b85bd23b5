"""Confusion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smdbg_builtin_rules.confusion import Confusion
from smdbg_core import evaluate
from tests.builtin_rules.conftest import Judge


def classes(labels: object, predictions: object) -> dict[int, dict[str, object]]:
    return {0: {"labels": np.asarray(labels), "predictions": np.asarray(predictions)}}


def test_a_perfect_matrix_is_clean(judge: Judge) -> None:
    labels = np.random.default_rng(0).integers(0, 10, 500)
    assert judge(Confusion(), classes(labels, labels)).status == "clean"


def test_one_wrong_prediction(judge: Judge) -> None:
    predictions = np.arange(10)
    predictions[4] = 7
    outcome = judge(Confusion(), classes(np.arange(10), predictions))
    assert {f.statistic for f in outcome.findings} == {"diag[7]", "off[4][7]"}
    only_off = judge(Confusion(min_diag=0, max_off_diag=0.01), classes(np.arange(10), predictions))
    assert {f.message for f in only_off.findings} == {"off[4][7]=0.5 > 0.01"}


def test_rows_find_what_columns_hide(judge: Judge) -> None:
    labels = np.repeat([0, 1], [95, 5])
    assert judge(Confusion(), classes(labels, np.zeros(100, int))).status == "clean"
    assert judge(Confusion(normalize="row"), classes(labels, np.zeros(100, int))).status == "fired"


def test_limits_are_strict(judge: Judge) -> None:
    labels = np.repeat([0, 1], [9, 1])
    assert judge(Confusion(), classes(labels, np.zeros(10, int))).status == "clean"


def test_probabilities_and_scores_become_classes(judge: Judge) -> None:
    assert judge(Confusion(), classes([0.0, 1.0], [0.2, 0.9])).status == "clean"
    assert judge(Confusion(), classes([0, 1], [[0.9, 0.1], [0.2, 0.8]])).status == "clean"


def test_names_and_collections(judge: Judge) -> None:
    steps = {0: {"y": np.array([0, 1]), "p": np.array([1, 0])}}
    assert judge(Confusion(labels="y", predictions="p"), steps).status == "fired"
    assert judge(Confusion(), steps).status == "not_evaluated"


def test_what_does_not_fit(judge: Judge, write: Callable[..., str]) -> None:
    assert judge(Confusion(), classes([0, 1, 2], [0, 1])).reason == "3 labels and 2 predictions (1 point)"
    (outcome,) = evaluate(write(classes([0, 3], [0, 1])), [Confusion(category_no=2)]).outcomes
    assert outcome.status == "error"
    assert "a label of 3 is none of 2 classes" in str(outcome.reason)


def test_a_window_adds_steps_up(judge: Judge) -> None:
    good, bad = classes([0, 1], [0, 1])[0], classes([0, 1], [1, 1])[0]
    steps = {0: bad, 1: good, 2: good, 3: good}
    rule = {"normalize": "row", "min_diag": 0.6, "max_off_diag": 0.4}
    assert judge(Confusion(**rule), steps).status == "fired"
    assert judge(Confusion(**rule, window=3), steps).status == "clean"
    assert judge(Confusion(**rule, window=2), steps).status == "fired"
    assert judge(Confusion(window=5), steps).status == "not_evaluated"


def test_a_window_may_meet_further_classes(judge: Judge) -> None:
    steps = {0: classes([0, 1], [0, 1])[0], 1: classes([2, 2], [2, 2])[0]}
    assert judge(Confusion(window=2), steps).status == "clean"


def test_the_end_can_be_judged_alone(judge: Judge) -> None:
    good, bad = classes([0, 1], [0, 1])[0], classes([0, 1], [1, 0])[0]
    assert judge(Confusion(at_end=True), {0: bad, 1: good}).status == "clean"
    outcome = judge(Confusion(at_end=True), {0: good, 1: bad})
    assert {finding.step for finding in outcome.findings} == {1}


def test_classes_with_few_samples_can_be_left_out(judge: Judge) -> None:
    steps = classes([0, 0, 0, 1, 1], [0, 0, 0, 1, 0])
    assert judge(Confusion(normalize="row", min_samples=3), steps).status == "clean"
    assert judge(Confusion(normalize="row", min_samples=2), steps).status == "fired"


def test_labels_of_a_regression_can_be_left_out(judge: Judge) -> None:
    steps = classes([0.5, 1.4], [1.2, 0.3])
    assert judge(Confusion(), steps).status == "fired"
    outcome = judge(Confusion(whole_labels=True), steps)
    assert (outcome.status, outcome.reason) == ("not_evaluated", "labels are no whole numbers (1 point)")
    assert judge(Confusion(whole_labels=True), classes([0.0, 1.0], [1.0, 0.0])).status == "fired"
