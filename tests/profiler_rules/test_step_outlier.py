"""StepOutlier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from smdbg_core import ParameterError
from smdbg_profiler_rules.step_outlier import StepOutlier
from tests.profiler_job import Job
from tests.profiler_rules.conftest import Judge, counts, details, measured

LONG = StepOutlier(scan_interval_us=10**10)
"""One window for everything: the worked examples have no windows."""


def job(usual: int, slow: int, *, seconds: tuple[float, float] = (1, 10), **options: Any) -> Job:
    return Job().steps(mixed(usual, slow, seconds), **options)


def mixed(usual: int, slow: int, seconds: tuple[float, float] = (1, 10)) -> Sequence[float]:
    return [*[seconds[0]] * usual, *[seconds[1]] * slow]


def test_fires_on_more_outliers_than_allowed(judge: Judge) -> None:
    outcome = judge(LONG, job(990, 11))
    assert outcome.status == "fired"
    assert counts(outcome) == (1, 11, 1001)
    block = details(outcome)["step_details"]["algo-1-27"]
    assert block["step_stats"]["mean"] == pytest.approx(1.098901, abs=1e-6)
    assert (block["stddev"], block["number_of_outliers"]) == (0.94, 11)
    assert block["phase"] == "Step:ModeKeys.TRAIN"
    assert block["step_numbers"] == [str(number) for number in range(990, 1001)]
    assert (len(block["probs"]), len(block["binedges"]), sum(block["probs"])) == (100, 101, 990)
    assert outcome.findings[0].worker == "algo-1-27"


def test_as_many_as_allowed_are_clean(judge: Judge) -> None:
    assert judge(LONG, job(991, 10)).status == "clean"


def test_a_tenth_of_all_steps_is_no_outlier(judge: Judge) -> None:
    outcome = judge(LONG, job(90, 11))
    assert (outcome.status, counts(outcome)[1]) == ("clean", 0)
    assert outcome.closest is not None


def test_a_hundred_steps_are_not_evaluated(judge: Judge) -> None:
    outcome = judge(LONG, job(100, 0))
    assert outcome.reason == "fewer TRAIN steps: at most 100, needs 101"
    assert details(outcome) == {"step_details": {}}


def test_equal_steps_have_no_outliers(judge: Judge) -> None:
    outcome = judge(LONG, job(200, 0))
    assert (outcome.status, counts(outcome)[1]) == ("clean", 0)


def test_the_mode_filters_in_any_spelling(judge: Judge) -> None:
    both = job(990, 11, mode="EVAL").steps([1.0] * 200, start=2000)
    rule = StepOutlier(scan_interval_us=10**10, mode="Step:ModeKeys.train")
    assert judge(rule, both).status == "clean"
    assert judge(StepOutlier(scan_interval_us=10**10, mode="eval"), both).status == "fired"
    with pytest.raises(ParameterError, match="mode='training' is none of TRAIN"):
        StepOutlier(mode="training")


def test_the_mode_with_most_outliers_is_shown(judge: Judge) -> None:
    both = job(990, 11, mode="EVAL").steps([1.0] * 2000, start=2000)
    assert details(judge(LONG, both))["step_details"]["algo-1-27"]["phase"] == "Step:ModeKeys.EVAL"


def test_first_steps_can_be_left_out(judge: Judge) -> None:
    slow_first = Job().steps([*[10.0] * 11, *[1.0] * 990])
    assert judge(LONG, slow_first).status == "fired"
    assert judge(StepOutlier(scan_interval_us=10**10, warmup_steps=11), slow_first).status == "clean"


def test_what_ran_beside_outliers_is_broken_down(judge: Judge) -> None:
    built = job(990, 11).event("DataLoaderIter", 995, 998).event("DataLoaderIter", 5, 6)
    found = details(judge(LONG, built))
    assert found["general"] == {"DataLoaderIter": 100.0}
    assert found["phase_time"] == {}
    assert "others" not in found["phase"]


def test_parameters_are_written_as_the_service_does(judge: Judge) -> None:
    outcome = judge(LONG, job(3, 0))
    assert measured(outcome).parameters == {"threshold": 3, "mode": None, "n_outliers": 10, "stddev": 3}
    assert list(measured(outcome).parameters) == ["threshold", "mode", "n_outliers", "stddev"]


def test_a_persistent_condition_counts_in_each_window(judge: Judge) -> None:
    outcome = judge(StepOutlier(), Job().steps([*mixed(200, 11, (0.1, 2.0)), *[0.1] * 1200]))
    assert counts(outcome)[0] > 1
    assert outcome.findings[0].count == counts(outcome)[0]
