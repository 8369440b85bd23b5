"""The fused pass, against exact references."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from smdbg_core.stats import BLOCK, FUSED, FusedPass, fused, fused_segments


def exact(values: NDArray[Any]) -> dict[str, float]:
    """The statistics in extended precision, over finite elements."""
    wide = np.abs(values) if values.dtype.kind == "c" else values
    flat = wide.reshape(-1).astype(np.longdouble)
    finite = flat[np.isfinite(flat)]
    n = finite.size
    result = {
        "size": flat.size,
        "nan_count": int(np.isnan(flat).sum()),
        "non_finite": flat.size - n,
        "zeros": int((finite == 0).sum()),
        "sum": float(finite.sum()),
        "l1": float(np.abs(finite).sum()),
        "l2": float(np.sqrt((finite * finite).sum())),
    }
    names = ("min", "max", "max_abs", "mean", "variance", "std", "mean_abs")
    if not n:
        return result | dict.fromkeys(names, math.nan)
    return result | {
        "min": float(finite.min()),
        "max": float(finite.max()),
        "max_abs": float(np.abs(finite).max()),
        "mean": float(finite.mean()),
        "variance": float(finite.var()),
        "std": float(finite.std()),
        "mean_abs": float(np.abs(finite).mean()),
    }


def check(values: NDArray[Any], got: tuple[float, ...], rel: float = 2e-6) -> None:
    expected = exact(values)
    scale = expected["mean_abs"] if math.isfinite(expected["mean_abs"]) else 0.0
    for name, value in zip(FUSED, got, strict=True):
        if name in ("size", "nan_count", "non_finite", "zeros", "min", "max", "max_abs"):
            assert value == expected[name] or (math.isnan(value) and math.isnan(expected[name])), name
        else:
            # Sums of numbers of both signs are exact relative to their magnitudes.
            slack = {"mean": 1e-6 * scale, "sum": 1e-6 * scale * values.size}.get(name, 0.0)
            assert value == pytest.approx(expected[name], rel=rel, abs=slack, nan_ok=True), name


RNG = np.random.default_rng(7)
NORMAL = RNG.standard_normal(150_001)


@pytest.mark.parametrize(
    "values",
    [
        NORMAL.astype(np.float32) * np.float32(1e-3),
        NORMAL.astype(np.float32) + np.float32(3),
        (NORMAL * 1e-2 + 1e4).astype(np.float32),
        np.maximum(NORMAL, 0).astype(np.float32),
        (NORMAL * 1e-25).astype(np.float32),
        (NORMAL * 1e30).astype(np.float32),
        (NORMAL * 1e-42).astype(np.float32),
        NORMAL * 1e-140,
        NORMAL,
        (NORMAL * 100).astype(np.float16),
        np.zeros(100_000, np.float32),
        np.ones(100_000, np.float32),
        np.full(70_000, -0.0, np.float32),
        (NORMAL * 100).astype(np.int32),
        (NORMAL * 100).astype(np.int8),
        np.arange(256, dtype=np.uint8),
        np.array([2**63 - 1, -(2**63), 0], np.int64),
        np.array([2**64 - 1, 0], np.uint64),
        NORMAL > 0,
        (NORMAL[:5000] + 1j * NORMAL[5000:10000]).astype(np.complex64),
        np.empty(0, np.float32),
        np.array(2.5, np.float32),
        NORMAL[:120_000].reshape(20, 30, 200).astype(np.float32).transpose(2, 0, 1),
    ],
    ids=lambda values: f"{values.dtype}-{values.shape}",
)
def test_agrees_with_extended_precision(values: NDArray[Any]) -> None:
    before = values.copy()
    check(values, fused(values))
    assert np.array_equal(values, before)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("bad", [[np.nan], [np.inf], [-np.inf], [np.nan, np.inf, -np.inf]])
def test_non_finite_elements_are_counted_and_left_out(dtype: Any, bad: list[float]) -> None:
    values = NORMAL[:100_000].astype(dtype)
    values[[5, 70_000, 99_999][: len(bad)]] = bad
    check(values, fused(values))
    for name in FUSED:
        alone = fused(values, [name])
        assert alone == pytest.approx(
            tuple(v for n, v in zip(FUSED, fused(values), strict=True) if n == name)
        )


def test_nothing_finite() -> None:
    check(np.array([np.nan, np.inf], np.float32), fused(np.array([np.nan, np.inf], np.float32)))


def test_sums_that_overflow_float32_are_finite() -> None:
    values = np.full(BLOCK, 3e38, np.float32)
    for names in (("l1", "min", "max"), ("l1",), ("mean_abs", "variance")):
        got = dict(zip(names, fused(values, names), strict=True))
        assert all(math.isfinite(value) for value in got.values()), got
    assert dict(zip(("l1", "min"), fused(-values, ("l1", "min")), strict=True))["min"] == -values[0]


def test_scratch_may_be_overwritten() -> None:
    values = NORMAL[:100_000].astype(np.float32)
    one_pass = FusedPass(FUSED)
    one_pass.add(values.copy(), overwrite=True)
    assert one_pass.result() == fused(values)


def test_overwritten_scratch_keeps_the_range() -> None:
    values = np.full(5000, -3e38, np.float32)
    one_pass = FusedPass(("l1", "min", "max", "zeros"))
    one_pass.add(values.copy(), overwrite=True)
    low = float(values[0])
    assert one_pass.result() == pytest.approx((-low * 5000, low, low, 0.0))


@given(
    hnp.arrays(
        np.float32,
        st.integers(0, 400),
        elements=st.floats(width=32, allow_nan=True, allow_infinity=True),
    ),
    st.lists(st.integers(0, 400), max_size=5),
)
@settings(max_examples=150, deadline=None)
def test_blocks_may_be_cut_anywhere(values: NDArray[np.float32], cuts: list[int]) -> None:
    whole = fused(values)
    one_pass = FusedPass(FUSED)
    for part in np.split(values, sorted(min(cut, values.size) for cut in cuts)):
        one_pass.add(part)
    for name, a, b in zip(FUSED, whole, one_pass.result(), strict=True):
        slack = 1e-5 * exact(values)["mean_abs"] * max(values.size, 1) if name in ("sum", "mean") else 0
        if name in ("variance", "std"):
            slack = 1e-5 * exact(values)["l2"] ** (2 if name == "variance" else 1)
        assert a == pytest.approx(b, rel=1e-5, abs=slack, nan_ok=True), name


@given(
    st.lists(
        hnp.arrays(np.float32, st.integers(0, 30), elements=st.floats(width=32, allow_nan=True)), max_size=8
    )
)
@settings(max_examples=150, deadline=None)
def test_segments_agree_with_single_tensors(tensors: list[NDArray[np.float32]]) -> None:
    joined = np.concatenate(tensors) if tensors else np.empty(0, np.float32)
    rows = fused_segments(joined, [tensor.size for tensor in tensors])
    assert len(rows) == len(tensors)
    for tensor, row in zip(tensors, rows, strict=True):
        check(tensor, row, rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64, np.uint8, np.bool_, np.complex64])
def test_segments_of_other_types(dtype: Any) -> None:
    values = (NORMAL[:300] * 10).astype(dtype)
    for start, row in zip((0, 100, 250), fused_segments(values, [100, 150, 50]), strict=True):
        size = {0: 100, 100: 150, 250: 50}[start]
        check(values[start : start + size], row)
