"""Distributions of whole histories."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdbg_core.stats import EmpiricalDistribution

VALUES = st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 2)), min_size=1, max_size=60)


@given(VALUES, VALUES, st.floats(0, 1))
def test_quantiles_are_those_of_all_values(one: list[float], other: list[float], fraction: float) -> None:
    whole = EmpiricalDistribution()
    whole.add(one)
    later = EmpiricalDistribution()
    later.add(other)
    whole.merge(later)
    both = np.array([*one, *other])
    assert whole.quantiles(fraction)[0] == pytest.approx(np.quantile(both, fraction), rel=1e-9, abs=1e-9)
    assert (whole.size, whole.min, whole.max) == (len(both), both.min(), both.max())
    assert whole.above(one[0]) == np.count_nonzero(both > one[0])


def test_nothing_has_no_quantiles() -> None:
    empty = EmpiricalDistribution()
    assert math.isnan(empty.quantiles(0.5)[0])
    counts, edges = empty.histogram(4)
    assert (counts.tolist(), len(edges)) == ([0] * 4, 5)


def test_memory_is_bounded_and_extremes_are_exact() -> None:
    rng = np.random.default_rng(0)
    whole = EmpiricalDistribution(distinct=1000)
    values = rng.lognormal(10, 3, 50_000)
    for part in np.split(values, 50):
        whole.add(part)
    whole.quantiles(0.5)
    assert len(whole._values) < 100_000 // 2
    assert whole._coarse
    assert (whole.min, whole.max) == (values.min(), values.max())
    for fraction in (0.0, 0.01, 0.5, 0.99, 1.0):
        assert whole.quantiles(fraction)[0] == pytest.approx(np.quantile(values, fraction), rel=1e-3)


def test_histogram_of_equal_values_has_a_width() -> None:
    whole = EmpiricalDistribution()
    whole.add([3.0] * 5)
    counts, edges = whole.histogram(10)
    assert (counts.sum(), edges[0], edges[-1]) == (5, 2.5, 3.5)
    counts, _ = whole.histogram(10, below=3.0)
    assert counts.sum() == 0
