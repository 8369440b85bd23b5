"""The contract of rules: judging a point, keeping the book, saying what one is."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from smdbg_core import Finding, ParameterError, Reads, StepView, TensorRule
from smdbg_core.tally import Tally


class Point:
    """A subject at a step."""

    node = None
    worker = "worker_0"

    def __init__(self, step: int = 0, name: str = "a", non_finite: int = 0) -> None:
        self.name = name
        self.non_finite = non_finite
        self.location = {"step": step, "last_step": step, "mode": "TRAIN", "mode_step": step}


class Plain(TensorRule):
    """Fires never.

    And more.

    Why it matters: it does
    not at all.
    What to do: nothing; see
    above.

    Elsewhere: text.
    """

    def reads(self) -> Reads:
        return Reads()

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        return iter(())


@pytest.fixture
def rule() -> Plain:
    plain = Plain()
    plain._tally = Tally(cap=3)
    return plain


@pytest.mark.parametrize(
    ("value", "comparison", "fires"),
    [
        (0.9, "<", True), (1.0, "<", False), (1.1, "<", False),
        (0.9, "<=", True), (1.0, "<=", True), (1.1, "<=", False),
        (0.9, ">", False), (1.0, ">", False), (1.1, ">", True),
        (0.9, ">=", False), (1.0, ">=", True), (1.1, ">=", True),
        (0.9, "==", False), (1.0, "==", True),
    ],
)  # fmt: skip
def test_the_comparison_that_holds_is_the_violation(
    rule: Plain, value: float, comparison: str, fires: bool
) -> None:
    found = rule.judge(Point(), "x", value, comparison, 1.0)
    assert bool(found) is fires
    assert rule._tally.points == 1
    if fires:
        assert found[0].message == f"x {value:.6g} {comparison} 1"
        assert (found[0].value, found[0].worst, found[0].limit) == (value, value, 1.0)


def test_what_is_not_finite_is_neither_clean_nor_found(rule: Plain) -> None:
    assert rule.judge(Point(), "x", float("nan"), "<", 1.0) == ()
    assert rule.judge(Point(non_finite=1), "x", 0.0, "<", 1.0) == ()
    assert rule._tally.non_finite == 2
    assert rule.judge(Point(non_finite=1), "x", 0.0, "<", 1.0, non_finite=0)


def test_the_closest_clean_point_is_kept(rule: Plain) -> None:
    for step, value in enumerate((5.0, 3.0, 4.0)):
        rule.judge(Point(step), "x", value, "<", 1.0)
    for step, value in enumerate((5.0, 7.0, 6.0)):
        rule.judge(Point(step), "y", value, ">", 10.0)
    assert (rule._tally.closest["x"].value, rule._tally.closest["x"].step) == (3.0, 1)
    assert rule._tally.closest["y"].value == 7.0


def record(rule: Plain, *values: float, name: str = "a") -> None:
    for step, value in enumerate(values):
        for found in rule.judge(Point(step, name), "x", value, "<", 1.0):
            rule._tally.record(found)


def test_points_become_episodes(rule: Plain) -> None:
    record(rule, 0.5, 0.2, 0.4, 2.0, 0.9)
    first, second = rule._tally.episodes
    assert (first.step, first.last_step, first.count, first.value, first.worst) == (0, 2, 3, 0.5, 0.2)
    assert (second.step, second.count) == (4, 1)


def test_episodes_beyond_the_cap_are_counted(rule: Plain) -> None:
    for number in range(5):
        record(rule, 0.5, 0.5, name=f"t{number}")
    assert len(rule._tally.episodes) == 3
    assert rule._tally.dropped == 2
    assert rule._tally.fired == 10


def test_skips_remember_the_best_case(rule: Plain) -> None:
    for have in (1, 3, 2):
        rule.skip(None, "too few", have=have, need=5)
    assert rule._tally.skipped == {"too few": 3}
    assert rule._tally.needs == {"too few": (3, 5)}


def test_documentation_comes_from_the_docstring() -> None:
    said = Plain.documentation()
    assert said == ("Fires never.", "it does not at all.", "nothing; see above.")


def test_every_tensor_rule_has_a_range_and_an_exclusion() -> None:
    assert list(Plain.__parameters__) == ["exclude", "start_step", "end_step"]
    with pytest.raises(ParameterError, match="end_step=3 must be above start_step=3"):
        Plain(start_step=3, end_step=3)


def test_copies_keep_parameters_and_share_no_state() -> None:
    one = Plain(start_step=3)
    other = copy.copy(one)
    other._tally = Tally()
    assert other.start_step == 3
    assert "_tally" not in vars(one)


def test_names_of_methods_are_no_parameters() -> None:
    with pytest.raises(TypeError, match=r"judge: the base class already uses this name"):

        class Shadow(Plain):
            judge: Any = 3
