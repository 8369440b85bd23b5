"""Judging a small job with one profiler rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest

from smdbg_core import Measurements, Outcome, ProfilerRule, evaluate
from tests.profiler_job import Job

GPU = "GPUUtilization"
MEMORY = "GPUMemoryUtilization"
CPU = "CPUUtilization"
WAIT = "I/OWaitPercentage"


class Judge(Protocol):
    """Writes a job and judges it: `judge(rule, job)`."""

    def __call__(self, rule: ProfilerRule, job: Job) -> Outcome: ...


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """The outcome of a rule on a job."""

    def run(rule: ProfilerRule, job: Job) -> Outcome:
        (outcome,) = evaluate(job.write(tmp_path / "job"), [rule]).outcomes
        assert outcome.status != "error", outcome.traceback
        return outcome

    return run


def measured(outcome: Outcome) -> Measurements:
    """What the rule measured."""
    assert outcome.measurements is not None
    return outcome.measurements


def counts(outcome: Outcome) -> tuple[int, int, int]:
    """Times fired, violations, data points."""
    found = measured(outcome)
    return found.triggered, found.violations, found.datapoints


def details(outcome: Outcome) -> dict[str, Any]:
    """The numbers behind the verdict."""
    return measured(outcome).details
