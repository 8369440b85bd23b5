"""OverallFrameworkMetrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from smdbg_core import evaluate
from smdbg_profiler_rules.overall_framework_metrics import OverallFrameworkMetrics
from tests.profiler_job import Job
from tests.profiler_rules.conftest import CPU, Judge, counts, details

RULE = OverallFrameworkMetrics()


def test_phases_and_the_time_between_steps(judge: Judge) -> None:
    job = Job().steps([10]).steps([8], start=12).steps([5], start=20, mode="EVAL")
    outcome = judge(RULE, job)
    assert (outcome.status, counts(outcome)) == ("clean", (0, 0, 0))
    assert details(outcome) == {
        "ratio": {},
        "phase": {
            "Step:ModeKeys.TRAIN": pytest.approx(72),
            "Step:ModeKeys.EVAL": pytest.approx(20),
            "others": pytest.approx(8),
        },
        "phase_time": {},
    }


def test_small_operators_are_left_out(judge: Judge) -> None:
    job = Job()
    for name, duration in (("a", 90), ("b", 9), ("c", 1)):
        job.event("cpu_functions", 0, duration / 1e3, name=name)
    found = details(judge(RULE, job))
    assert found["CPU"] == {"a": pytest.approx(90 / 99 * 100), "b": pytest.approx(9 / 99 * 100)}
    assert found["CPU_total"] == {"a": 90_000, "b": 9_000}
    assert found["ratio"] == {"cpu_functions": 100.0}


def test_the_other_classes(judge: Judge) -> None:
    job = Job().event("Forward-SubModuleInternal", 0, 1).event("Backward-SubModuleInternal", 1, 4)
    job.event("NcclManager", 0, 2).event("gpu_functions-dev:0", 0, 3, name="kernel")
    horovod = {"writer": "0-algo-1", "suffix": "horovod_timeline"}
    job.event("Adam/grad", 0, 1, name="ALLREDUCE", **horovod).event("Adam/grad", 0, 1, name="4", **horovod)
    found = details(judge(RULE, job))
    assert found["forward_backward"] == {"Forward pass": 25.0, "Backward pass": 75.0}
    assert found["general"] == {"NcclManager": 100.0}
    assert found["horovod"] == {"ALLREDUCE": 100.0}
    assert found["ratio"] == {"gpu_functions-dev:0": 100.0}


def test_nested_steps_cover_time_once(judge: Judge) -> None:
    job = Job().steps([4]).steps([1, 1], start=1, mode="EVAL").steps([2], start=6)
    found = details(judge(RULE, job))["phase"]
    assert found["others"] == pytest.approx(100 * 2 / (6 + 2 + 2))


def test_without_events_it_is_not_evaluated(judge: Judge) -> None:
    outcome = judge(RULE, Job().ticks({("cpu0", CPU): [1]}))
    assert outcome.status == "not_evaluated"


def test_a_real_job(shared_data: Path) -> None:
    (outcome,) = evaluate(shared_data / "profiler" / "merge_traces", [RULE]).outcomes
    assert details(outcome)["phase"] == {
        "Step:ModeKeys.TRAIN": pytest.approx(68.9514, abs=1e-4),
        "Step:ModeKeys.EVAL": pytest.approx(25.8867, abs=1e-4),
        "others": pytest.approx(5.1619, abs=1e-4),
    }
