"""IOBottleneck."""

from __future__ import annotations

from smdbg_profiler_rules.io_bottleneck import IOBottleneck
from tests.profiler_job import Job
from tests.profiler_rules.conftest import CPU, GPU, WAIT, Judge, counts, details


def job(*waits: float) -> Job:
    return Job().ticks({("gpu0", GPU): [9] * 3} | {(f"cpu{i}", WAIT): [w] * 3 for i, w in enumerate(waits)})


def test_fires_when_a_core_waits(judge: Judge) -> None:
    outcome = judge(IOBottleneck(patience=2), job(50, 50.01))
    assert outcome.status == "fired"
    assert counts(outcome) == (1, 3, 3)
    assert {entry["CPUs"] for entry in details(outcome)["bottlenecks"].values()} == {1}


def test_a_wait_at_the_limit_is_clean(judge: Judge) -> None:
    assert judge(IOBottleneck(patience=2), job(50, 50)).status == "clean"


def test_without_waits_it_is_not_evaluated(judge: Judge) -> None:
    outcome = judge(IOBottleneck(patience=2), Job().ticks({("gpu0", GPU): [9] * 3, ("cpu0", CPU): [99] * 3}))
    assert (outcome.status, outcome.reason) == (
        "not_evaluated",
        "not measured: no samples of I/OWaitPercentage",
    )
