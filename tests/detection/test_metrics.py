"""Rates and their intervals."""

from __future__ import annotations

import math

import pytest

from tests.detection.metrics import Verdict, score, wilson

MAPPED = {"zero": ("AllZero", "LossNotDecreasing"), "flat": ("LossNotDecreasing",), "unseen": ()}
RULES = ("AllZero", "LossNotDecreasing", "Overfit")


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_wilson_intervals(hits: int, of: int, low: float, high: float) -> None:
    rate = wilson(hits, of)
    assert (rate.low, rate.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
    assert rate.low <= rate.share <= rate.high


def test_nothing_has_no_share() -> None:
    assert math.isnan(wilson(0, 0).share)
    assert str(wilson(0, 0)) == "–"
    assert str(wilson(1, 4)) == "0.25 (1/4, 0.05–0.70)"


def test_only_mapped_rules_detect_and_any_firing_is_a_false_alarm() -> None:
    verdicts = [
        Verdict(None, "plain", frozenset()),
        Verdict(None, "plain", frozenset({"Overfit"})),
        Verdict("zero", "zero", frozenset({"AllZero"})),
        Verdict("zero", "zero", frozenset({"Overfit"})),
        Verdict("flat", "flat", frozenset({"LossNotDecreasing", "AllZero"})),
        Verdict("unseen", "unseen", frozenset({"Overfit"})),
    ]
    found = score(verdicts, MAPPED, RULES)
    assert (found.recall.hits, found.recall.of) == (2, 3)
    assert (found.false_alarms.hits, found.false_alarms.of) == (1, 2)
    assert (found.precision.hits, found.precision.of) == (2, 4)
    assert (found.by_fault["zero"].hits, found.by_fault["zero"].of) == (1, 2)
    assert found.by_fault["unseen"].of == 0
    assert (found.rule_recall["LossNotDecreasing"].hits, found.rule_recall["LossNotDecreasing"].of) == (1, 3)
    assert (found.rule_precision["AllZero"].hits, found.rule_precision["AllZero"].of) == (1, 2)
    assert (found.rule_precision["Overfit"].hits, found.rule_precision["Overfit"].of) == (0, 3)
    assert (found.rule_false_alarms["Overfit"].hits, found.by_family["plain"].hits) == (1, 1)
    assert found.matrix["healthy"]["Overfit"] == found.matrix["unseen"]["Overfit"] == 1
