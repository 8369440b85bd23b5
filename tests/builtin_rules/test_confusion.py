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
