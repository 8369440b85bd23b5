"""AllZero."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.all_zero import AllZero
from tests.builtin_rules.conftest import Judge, fired_at


@pytest.mark.parametrize(
    ("values", "threshold", "status"),
    [
        ([0, 0, 0, 0], 100, "fired"),
        ([0, 0, 0, 1], 100, "clean"),
        ([0, 0, 0, 1], 75, "fired"),
        ([0, 0, 0, 1], 80, "clean"),
        ([0, 0, 0, 1], 75.0001, "clean"),
        ([-0.0, 0.0], 100, "fired"),
        ([np.nan, 0.0], 100, "clean"),
        ([np.nan, 0.0], 50, "fired"),
        ([False, False], 100, "fired"),
        (0.0, 100, "fired"),
    ],
)
def test_share_of_zeros(judge: Judge, values: object, threshold: float, status: str) -> None:
    outcome = judge(AllZero(tensor_regex="a", threshold=threshold), {0: {"a": np.asarray(values)}})
    assert outcome.status == status


def test_a_selector_is_needed(judge: Judge) -> None:
    assert AllZero().missing() == (("collection_names", "tensor_regex"),)


def test_empty_and_missing_tensors_are_not_evaluated(judge: Judge) -> None:
    assert judge(AllZero(tensor_regex="a"), {0: {"a": np.empty(0)}}).reason == "empty tensor (1 point)"
    assert "nothing matched" in str(judge(AllZero(tensor_regex="b"), {0: {"a": np.ones(1)}}).reason)


def test_reductions_suffice_at_one_hundred_percent_only(judge: Judge) -> None:
    steps = {0: {"a": np.zeros(3)}, 1: {"a": np.ones(3)}}
    for reductions in (("min", "max"), ("abs_max",), ("l1",)):
        outcome = judge(AllZero(tensor_regex="a"), steps, raw=False, reductions=reductions)
        assert fired_at(outcome) == [0]
        assert outcome.coverage.points == 2
    assert (
        judge(AllZero(tensor_regex="a", threshold=50), steps, raw=False, reductions=("l1",)).status
        == "not_evaluated"
    )


@pytest.mark.parametrize(("zeros", "status"), [(3, "fired"), (2, "clean")])
def test_patience_waits_for_a_streak(judge: Judge, zeros: int, status: str) -> None:
    steps = {n: {"a": np.zeros(3) if n < zeros else np.ones(3)} for n in range(6)}
    outcome = judge(AllZero(tensor_regex="a", patience=3), steps)
    assert (outcome.status, fired_at(outcome)) == (status, [2] if status == "fired" else [])
