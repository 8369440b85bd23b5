"""LowGPUUtilization."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from smdbg_profiler_rules.low_gpu_utilization import LowGPUUtilization
from tests.profiler_job import T0, Job
from tests.profiler_rules.conftest import GPU, Judge, counts, details

RULE = LowGPUUtilization(window=4, patience=4)


def job(values: Sequence[float], **options: float) -> Job:
    return Job().ticks({("gpu0", GPU): values}, **options)  # type: ignore[arg-type]


def test_fires_when_the_gpu_is_low(judge: Judge) -> None:
    outcome = judge(RULE, job([0, 10, 20, 30, 40]))
    (finding,) = outcome.findings
    assert (finding.statistic, finding.value, finding.comparison, finding.limit) == (
        "p95",
        pytest.approx(38.5),
        "<",
        70,
    )
    assert finding.message.startswith("low:")
    block = details(outcome)["algo-1"]["gpu0"]
    assert (block["gpu_max"], block["gpu_95"], block["gpu_5"]) == pytest.approx((40, 38.5, 11.5))
    assert (block["p50"], block["lower"]) == (20, 0)


def test_fires_when_it_fluctuates(judge: Judge) -> None:
    (finding,) = judge(RULE, job([50, 0, 100, 0, 100])).findings
    assert (finding.statistic, finding.value, finding.limit) == ("p5", 0, 10)
    assert finding.message.startswith("fluctuating:")


@pytest.mark.parametrize("values", [[0, 80, 90, 100, 60], [50, 0, 70, 70, 70]])
def test_is_clean_otherwise_and_at_the_limit(judge: Judge, values: list[float]) -> None:
    assert judge(RULE, job(values)).status == "clean"


def test_patience_is_strict(judge: Judge) -> None:
    outcome = judge(RULE, job([0] * 4))
    assert outcome.reason == "fewer samples than patience: at most 4, needs 5"


def test_an_unused_gpu_is_told_apart(judge: Judge) -> None:
    assert judge(RULE, job([0] * 5)).findings[0].message.startswith("unused:")


def test_windows_and_gpus_count_as_in_the_services_reports(judge: Judge) -> None:
    # A published report: half a second between samples, a start eleven seconds after the minute, 1,789
    # seconds: the 1,001st sample comes in window 8, the last window is 29, and 22 windows are judged.
    outcome = judge(LowGPUUtilization(), job([0] * 3578, start=11.3))
    assert counts(outcome) == (22, 22, 3578)
    assert details(outcome)["last_timestamp"] == (T0 + 29 * 60) * 1_000_000
    (finding,) = outcome.findings
    assert (finding.count, finding.window_start_us) == (22, (T0 + 8 * 60) * 1_000_000)
    assert finding.window_end_us == (T0 + 30 * 60) * 1_000_000
    assert outcome.coverage.windows == 22
