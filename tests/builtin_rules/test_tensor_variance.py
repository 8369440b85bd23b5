"""TensorVariance."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.tensor_variance import TensorVariance
from tests.builtin_rules.conftest import Judge


@pytest.mark.parametrize(
    ("values", "parameters", "status"),
    [
        ([0, 10], {"max_threshold": 10}, "fired"),
        ([0, 10], {"max_threshold": 25}, "clean"),
        ([1, -1, 1, -1], {"max_threshold": 10, "min_threshold": 1e-5}, "clean"),
        ([3, 3, 3], {"min_threshold": 1e-5}, "fired"),
        ([0, 2], {"min_threshold": 1}, "clean"),
    ],
)
def test_limits(judge: Judge, values: list[float], parameters: dict[str, float], status: str) -> None:
    assert (
        judge(TensorVariance(tensor_regex="a", **parameters), {0: {"a": np.array(values, float)}}).status
        == status
    )


def test_what_it_needs() -> None:
    assert len(TensorVariance().missing()) == 2
    assert TensorVariance(tensor_regex="a", max_threshold=1).missing() == ()
    with pytest.raises(ValueError, match="is above max_threshold"):
        TensorVariance(min_threshold=2, max_threshold=1)


def test_single_numbers_and_reductions(judge: Judge) -> None:
    assert judge(TensorVariance(tensor_regex="a", min_threshold=1), {0: {"a": 1.0}}).status == "not_evaluated"
    steps = {0: {"a": np.array([0.0, 10.0])}}
    rule = TensorVariance(tensor_regex="a", max_threshold=10)
    assert judge(rule, steps, raw=False, reductions=("std",), shape=True).status == "fired"
    assert judge(rule, steps, raw=False, reductions=("variance",), shape=True).status == "fired"
    assert judge(rule, steps, raw=False, reductions=("mean",)).status == "not_evaluated"


def test_tensors_with_few_axes_can_be_left_out(judge: Judge) -> None:
    steps = {0: {"norm.weight": np.ones(4), "fc.weight": np.eye(2)}}
    rule = {"tensor_regex": "weight", "min_threshold": 1e-5}
    assert judge(TensorVariance(**rule), steps).status == "fired"
    assert judge(TensorVariance(**rule, min_dimensions=2), steps).status == "clean"
    assert (
        judge(TensorVariance(**rule, min_dimensions=2), {0: {"fc.weight": np.ones((2, 2))}}).status == "fired"
    )


@pytest.mark.parametrize(("flat", "status"), [(3, "fired"), (2, "clean")])
def test_patience_waits_for_a_streak(judge: Judge, flat: int, status: str) -> None:
    steps = {n: {"a": np.ones(2) if n < flat else np.arange(2.0)} for n in range(5)}
    assert judge(TensorVariance(tensor_regex="a", min_threshold=1e-5, patience=3), steps).status == status
