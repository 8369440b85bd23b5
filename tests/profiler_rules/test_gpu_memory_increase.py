"""GPUMemoryIncrease."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from smdbg_profiler_rules.gpu_memory_increase import GPUMemoryIncrease
from tests.profiler_job import Job
from tests.profiler_rules.conftest import MEMORY, Judge, counts, details


def job(values: Sequence[float], **options: float) -> Job:
    return Job().ticks({("gpu0", MEMORY): values}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "diff"),
    [([10, 10, 10, 10, 40], 10), ([10, 10, 10, 10, 40, 40], 20), ([10, 10, 10, 10, 40, 40, 40], 15)],
)
def test_fires_on_a_step(judge: Judge, values: list[float], diff: float) -> None:
    outcome = judge(GPUMemoryIncrease(window=3, patience=4, increase=9), job(values))
    assert outcome.status == "fired"
    assert counts(outcome) == (len(values) - 4, len(values) - 4, len(values))
    assert details(outcome)["algo-1"]["gpu0"]["increase"] == pytest.approx(diff)


@pytest.mark.parametrize(("step", "fired"), [(25, 0), (26, 1), (30, 3)])
def test_a_step_after_patience(judge: Judge, step: float, fired: int) -> None:
    outcome = judge(GPUMemoryIncrease(), job([0] * 1000 + [step] * 40))
    assert outcome.status == ("fired" if fired else "clean")
    assert counts(outcome)[0] == fired


def test_every_increase_is_a_fraction_of_the_window(judge: Judge) -> None:
    outcome = judge(GPUMemoryIncrease(), job([0] * 1000 + [26] * 20))
    assert details(outcome)["algo-1"]["gpu0"]["increase"] * 90 == pytest.approx(468)


@pytest.mark.parametrize(("slope", "status"), [(1, "clean"), (4, "fired")])
def test_a_ramp(judge: Judge, slope: float, status: str) -> None:
    ramp = np.minimum(slope * np.arange(24), 100).tolist()
    assert judge(GPUMemoryIncrease(), job([0] * 1000 + ramp)).status == status


def test_the_documented_moving_average(judge: Judge) -> None:
    rule = GPUMemoryIncrease(window=3, patience=4, increase=9, method="moving_average")
    outcome = judge(rule, job([10, 10, 10, 10, 40, 40, 40]))
    assert counts(outcome)[0] == 3
    assert details(outcome)["algo-1"]["gpu0"]["increase"] == pytest.approx(10)


def test_a_window_of_one_compares_neighbours(judge: Judge) -> None:
    outcome = judge(GPUMemoryIncrease(window=1, patience=2), job([1, 1, 1, 7]))
    assert details(outcome)["algo-1"]["gpu0"]["increase"] == pytest.approx(6)


def test_a_pause_begins_a_new_history(judge: Judge) -> None:
    before = job([0] * 8)
    outcome = judge(
        GPUMemoryIncrease(window=3, patience=4, increase=9),
        before.ticks({("gpu0", MEMORY): [50] * 8}, start=20),
    )
    assert outcome.status == "clean"


def test_patience_and_missing_memory_are_not_evaluated(judge: Judge, tmp_path: object) -> None:
    outcome = judge(GPUMemoryIncrease(), job([0] * 999 + [99]))
    assert outcome.reason == "fewer samples than patience: at most 1000, needs 1001"


def test_the_same_rises_in_one_window_or_many(judge: Judge) -> None:
    rng = np.random.default_rng(3)
    values = np.round(np.abs(np.cumsum(rng.normal(0, 6, 700))) % 100, 2).tolist()
    one = judge(GPUMemoryIncrease(patience=20, scan_interval_us=10**10), job(values))
    many = judge(GPUMemoryIncrease(patience=20, scan_interval_us=7_000_000), job(values))
    assert counts(one) == counts(many)
    assert counts(one)[0] > 0
    assert details(one)["algo-1"] == details(many)["algo-1"]
