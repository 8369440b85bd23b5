"""MaxInitializationTime."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smdbg_core import evaluate
from smdbg_profiler_rules.max_initialization_time import MaxInitializationTime
from tests.profiler_job import T0, Job
from tests.profiler_rules.conftest import CPU, Judge, counts, details

RULE = MaxInitializationTime(threshold=1)


def job(seconds: int = 180) -> Job:
    return Job().ticks({("cpu0", CPU): [5] * seconds}, interval=1.0)


def test_a_first_step_just_in_time_is_clean(judge: Judge) -> None:
    outcome = judge(RULE, job().steps([1, 1], start=59))
    assert outcome.status == "clean"
    found = details(outcome)
    assert found["step_num"] == {"first": (T0 + 59) * 1_000_000, "last": (T0 + 60) * 1_000_000}
    assert (found["job_start"], found["job_end"]) == pytest.approx((T0, T0 + 179), abs=0.001)
    assert counts(outcome) == (0, 0, 2)


def test_waiting_fires_again_in_each_window(judge: Judge) -> None:
    outcome = judge(RULE, job().event("Forward", 1, 2))
    assert counts(outcome) == (2, 2, 0)
    (finding,) = outcome.findings
    assert (finding.count, finding.worst) == (2, pytest.approx(3, abs=0.001))
    assert finding.window_end_us == (T0 + 180) * 1_000_000


def test_a_late_first_step_fires_once(judge: Judge) -> None:
    outcome = judge(RULE, job(240).steps([1] * 100, start=90))
    assert counts(outcome) == (1, 1, 100)
    assert outcome.findings[0].message == "the first step came after 1.5 minutes"


def test_without_framework_events_no_step_can_come(judge: Judge) -> None:
    outcome = judge(RULE, job())
    assert outcome.status == "not_evaluated"
    assert "no framework events are recorded" in str(outcome.reason)
    assert details(outcome)["step_num"] == {}
    assert judge(MaxInitializationTime(threshold=1, framework_profiling="true"), job()).status == "fired"


def test_a_timeline_alone_tells_how_long_it_was_initialised(judge: Judge) -> None:
    late = Job().event("Initialization", 0, 90).steps([1, 1], start=90)
    outcome = judge(RULE, late)
    assert outcome.findings[0].message == "the first step came after 1.5 minutes"
    assert judge(MaxInitializationTime(threshold=2), late).status == "clean"


def test_without_a_beginning_nothing_is_judged(judge: Judge) -> None:
    outcome = judge(RULE, Job().steps([1, 1], start=90))
    assert outcome.status == "not_evaluated"
    assert "nothing tells when the job began" in str(outcome.reason)


def test_a_trace_that_began_late_says_nothing_of_the_first_step(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    job().write(folder)
    row = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#500", "ts": 9e7, "dur": 1e6, "pid": 1}
    trace = {"baseTimeNanoseconds": T0 * 10**9, "traceEvents": [row]}
    (folder / "profiler-output" / "rank0.pt.trace.json").write_text(json.dumps(trace))
    (outcome,) = evaluate(str(folder), [RULE]).outcomes
    assert outcome.status == "not_evaluated"
    assert "in the trace" in str(outcome.reason)
