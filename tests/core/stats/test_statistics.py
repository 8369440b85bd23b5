"""The other statistics, and the registry."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smdbg_core import ConfigError, statistic
from smdbg_core.stats import (
    active_counts,
    channel_sums,
    closeness,
    difference_norms,
    exponential_average,
    fit_normal,
    fused,
    histogram,
    jensen_shannon_distance,
    lookup,
    moving_average,
    outliers,
    quantiles,
    relative_change,
    robust_spread,
    value_counts,
)

RNG = np.random.default_rng(11)


@pytest.mark.parametrize(
    "values",
    [
        RNG.standard_normal(300_000).astype(np.float32),
        np.zeros(100_000),
        RNG.integers(0, 3, 200_000),
        np.sort(RNG.standard_normal(150_000)),
        RNG.standard_normal(70_000) ** 7,
        np.array([1.0, 2.0]),
        np.array([5.0]),
        np.r_[np.zeros(99_999), 1.0],
        np.tile(np.arange(16.0), 20_000),
    ],
)
def test_quantiles_are_numpys(values: np.ndarray) -> None:
    fractions = (0.0, 0.05, 0.5, 0.95, 1.0)
    assert quantiles(values, *fractions) == pytest.approx(
        np.quantile(values.astype(float), fractions).tolist()
    )


def test_quantiles_leave_out_what_is_not_finite() -> None:
    assert quantiles(np.array([np.nan, 1.0, np.inf, 3.0]), 0.5) == (2.0,)
    assert all(math.isnan(q) for q in quantiles(np.array([np.nan]), 0.1, 0.9))


def test_value_counts_are_exact() -> None:
    ids = np.array([[3, 3, 1], [0, 9, 0]])
    assert value_counts(ids, 3, 0, 7) == (2, 2, 0)
    assert value_counts(np.array([np.nan, 0.0]), math.nan, 0.0) == (0, 1)


def test_active_counts() -> None:
    batch = np.array([[0.0, 1.0, -1.0], [0.0, 2.0, np.nan]])
    activity = active_counts(batch, 0.0, None)
    assert activity.counts.tolist() == [0, 2, 0]
    assert activity.samples == 2
    assert active_counts(batch, -2.0, 0.5).counts.tolist() == [2, 0, 1]
    assert active_counts(np.array([1.0, 0.0]), 0.0, None)[1] == 1
    images = np.zeros((2, 3, 4, 4))
    images[0, 1, 2, 2] = 1
    assert active_counts(images, 0.0, None, 1).counts.tolist() == [0, 1, 0]
    assert active_counts(images, 0.0, None, -3).counts.tolist() == [0, 1, 0]
    with pytest.raises(IndexError, match="no axis of units"):
        active_counts(images, 0.0, None, 0)


def test_channel_sums() -> None:
    images = np.stack([np.full((2, 4, 4), value) for value in (1.0, -1.0, 0.0)], axis=1)
    assert channel_sums(images, 1) == ((32.0, -32.0, 0.0), (32, 32, 32), 2)
    assert channel_sums(images, -3).sums == (32.0, -32.0, 0.0)
    assert channel_sums(np.ones((4, 5)), 1) == ((20.0,), (20,), 4)
    with pytest.raises(IndexError, match="no channel axis"):
        channel_sums(images, 4)


@given(
    hnp.arrays(np.float32, (50,), elements=st.floats(-(2.0**60), 2.0**60, width=32)),
    hnp.arrays(np.float32, (50,), elements=st.floats(-(2.0**60), 2.0**60, width=32)),
)
def test_difference_norms(a: np.ndarray, b: np.ndarray) -> None:
    wide = a.astype(np.float64) - b.astype(np.float64)
    norms = difference_norms(a, b)
    assert norms is not None
    scale = np.linalg.norm(a.astype(np.float64)) + np.linalg.norm(b.astype(np.float64))
    assert norms.l2_difference == pytest.approx(float(np.linalg.norm(wide)), rel=1e-6, abs=1e-6 * scale)
    assert norms.l2_other == pytest.approx(float(np.linalg.norm(b.astype(np.float64))), rel=1e-6)
    ones = difference_norms(a, b, 1)
    assert ones is not None
    assert ones.l1_difference == pytest.approx(float(np.abs(wide).sum()), rel=1e-6, abs=1e-6 * scale)


def test_difference_norms_of_other_shapes_and_types() -> None:
    assert difference_norms(np.zeros(3), np.zeros(4)) is None
    norms = difference_norms(np.array([3, 0], np.int8), np.array([0, 4], np.int8))
    assert norms is not None
    assert (norms.l2_difference, norms.l2_other) == (5.0, 4.0)
    half = difference_norms(np.array([60000], np.float16), np.array([-60000], np.float16))
    assert half is not None
    assert half.l2_difference == pytest.approx(2 * float(np.float16(60000)))


def test_closeness_is_numpys() -> None:
    a, b = np.array([1.0, 1.0]), np.array([1.0, 1.00002])
    assert closeness(a, b, 1e-5, 1e-8).all_close is False
    assert closeness(a, a, 1e-5, 1e-8).all_close is True
    # The bound is relative to the reference: 100 to 100.5 is within 0.5 % of the larger one only.
    low, high = np.array([100.0]), np.array([100.502])
    assert closeness(low, high, 0.005, 0.0, False, "current").all_close is False
    assert closeness(low, high, 0.005, 0.0, False, "other").all_close is True
    nan = np.array([np.nan])
    assert closeness(nan, nan, 1.0, 1.0).all_close is False
    assert closeness(nan, nan, 1.0, 1.0, True).all_close is True
    infinite = np.array([np.inf])
    assert closeness(infinite, infinite, 1e-5, 0.0).all_close is True
    assert closeness(infinite, -infinite, 1e-5, 0.0).all_close is False
    assert closeness(a, np.zeros(3), 1.0, 1.0).all_close is False
    words = np.array(["a", "b"])
    assert closeness(words, words, 0.0, 0.0).all_close is True
    assert closeness(words, np.array(["a", "c"]), 0.0, 0.0).differing == 1


def test_histogram() -> None:
    found = histogram(np.array([0.0, 0.5, 1.0, -1.0, 2.0, np.nan]), 2, 0.0, 1.0)
    assert found == ((1, 2), 1, 1, 1)


def test_series() -> None:
    assert moving_average([1, 2, 3, 4], 2).tolist() == [1.0, 1.5, 2.5, 3.5]
    assert exponential_average([1.0, 1.0, 1.0], 0.5).tolist() == [1.0, 1.0, 1.0]
    assert relative_change(2.0, 1.0) == -0.5
    assert relative_change(0.0, 0.0) == 0.0
    assert relative_change(0.0, 1.0) == math.inf
    assert relative_change(-2.0, -1.0) == 0.5
    assert robust_spread([0.0, 1.0, 2.0, 3.0, 1000.0]) == pytest.approx(1.4826, rel=1e-3)
    series = [1.0] * 20 + [50.0]
    assert outliers(series, 3).tolist() == [20]
    assert outliers([1.0, 1.1, 0.9, 5.0], 3, robust=True).tolist() == [3]
    assert outliers([], 3).tolist() == []


def test_distributions() -> None:
    assert jensen_shannon_distance([1, 0], [0, 1]) == pytest.approx(1.0)
    assert jensen_shannon_distance([1, 1], [2, 2]) == pytest.approx(0.0)
    mean, std = fit_normal([1.0, 3.0])
    assert (mean, std) == (2.0, 1.0)


def test_read_only_arrays_are_enough() -> None:
    values = np.ones((4, 3), np.float32)
    values.flags.writeable = False
    assert fused(values, ("mean_abs",)) == (1.0,)
    assert quantiles(values, 0.5) == (1.0,)
    assert difference_norms(values, values) is not None
    assert closeness(values, values, 0, 0).all_close


def test_registry() -> None:
    assert lookup("quantiles").function is quantiles
    assert lookup("closeness").pairwise
    with pytest.raises(ConfigError, match="did you mean 'quantiles'"):
        lookup("quantile")

    with pytest.raises(ValueError, match="taken by"):

        @statistic("quantiles")
        def mine(values: np.ndarray) -> float:
            return 0.0


def test_scipy_is_imported_only_when_used() -> None:
    code = "import sys, smdbg_core.stats; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
