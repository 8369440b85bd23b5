"""CPUBottleneck, and what it shares with IOBottleneck."""

from __future__ import annotations

import pytest

from smdbg_profiler_rules.cpu_bottleneck import CPUBottleneck
from tests.profiler_job import T0, Job
from tests.profiler_rules.conftest import CPU, GPU, Judge, counts, details


def worked_example() -> Job:
    job = Job().sample(0.0, "gpu0", GPU, 5).sample(0.0005, "cpu0", CPU, 95).sample(0.0005, "cpu1", CPU, 20)
    job.sample(0.045, "ReceiveBytesPerSecond", "Algorithm", 100.0)
    job.sample(0.5, "gpu0", GPU, 50).sample(0.5005, "cpu0", CPU, 95)
    return job.sample(1.0, "gpu0", GPU, 9.99).sample(1.0005, "cpu0", CPU, 90.01)


def test_fires_above_the_share_of_snapshots(judge: Judge) -> None:
    outcome = judge(CPUBottleneck(patience=2), worked_example())
    assert outcome.status == "fired"
    assert counts(outcome) == (1, 2, 3)
    assert details(outcome)["low_gpu_utilization"] == 2
    assert details(outcome)["bottlenecks"] == {
        f"{T0}.0": {"GPUs": 1, "CPUs": 1},
        f"{T0 + 1}.0": {"GPUs": 1, "CPUs": 1},
    }
    (finding,) = outcome.findings
    assert finding.value == pytest.approx(200 / 3)


def test_the_share_itself_is_clean(judge: Judge) -> None:
    outcome = judge(CPUBottleneck(patience=2, threshold=66.7), worked_example())
    assert outcome.status == "clean"


@pytest.mark.parametrize(("gpu", "core", "low"), [(10, 95, 0), (0, 90, 1)])
def test_limits_are_strict(judge: Judge, gpu: float, core: float, low: int) -> None:
    outcome = judge(
        CPUBottleneck(patience=1), Job().ticks({("gpu0", GPU): [gpu] * 3, ("cpu0", CPU): [core] * 3})
    )
    assert outcome.status == "clean"
    assert counts(outcome)[1] == 0
    assert details(outcome)["low_gpu_utilization"] == 3 * low


def test_patience_counts_snapshots(judge: Judge) -> None:
    outcome = judge(CPUBottleneck(patience=3), worked_example())
    assert (outcome.status, outcome.reason) == (
        "not_evaluated",
        "fewer snapshots than patience: at most 3, needs 4",
    )


def test_nodes_never_mix(judge: Judge) -> None:
    idle, busy = {("gpu0", GPU): [0] * 4}, {("cpu0", CPU): [99] * 4}
    job = Job().ticks(idle | {("cpu0", CPU): [1] * 4}).ticks(busy | {("gpu0", GPU): [90] * 4}, node="algo-2")
    outcome = judge(CPUBottleneck(patience=1), job)
    assert (outcome.status, counts(outcome)) == ("clean", (0, 0, 8))


def test_a_tick_that_crosses_the_border_of_windows_is_one_snapshot(judge: Judge) -> None:
    job = Job().sample(59.9998, "gpu0", GPU, 1).sample(60.0003, "cpu0", CPU, 99)
    job.sample(60.4998, "gpu0", GPU, 1).sample(60.5003, "cpu0", CPU, 99)
    outcome = judge(CPUBottleneck(patience=1), job)
    assert counts(outcome)[1:] == (2, 2)


def test_an_unused_gpu_is_named(judge: Judge) -> None:
    job = Job().ticks({("gpu0", GPU): [0] * 4, ("gpu1", GPU): [9] * 4, ("cpu0", CPU): [99] * 4})
    assert "never used: gpu0 of algo-1" in judge(CPUBottleneck(patience=1), job).findings[0].message


def test_what_was_held_up_is_broken_down_once(judge: Judge) -> None:
    job = Job().ticks({("gpu0", GPU): [0] * 10, ("cpu0", CPU): [99] * 10})
    job.event("cpu_functions", 0.2, 4.2, name="aten::conv2d").event(
        "gpu_functions-dev:0", 10, 12, name="kernel"
    )
    job.event("DataLoaderIter", 1.0, 2.0)
    found = details(judge(CPUBottleneck(patience=1), job))
    assert found["CPU_total"] == {"aten::conv2d": 4_000_000}  # one event, however many ticks it covers
    assert "GPU" not in found
    assert found["general"] == {"DataLoaderIter": 100.0}
    assert found["ratio"] == {"cpu_functions": 100.0}


def test_a_bad_hour_late_in_a_job_shows_in_a_window(judge: Judge) -> None:
    gpu, core = [90] * 720 + [0] * 240, [50] * 720 + [99] * 240
    job = Job().ticks({("gpu0", GPU): gpu, ("cpu0", CPU): core})
    assert judge(CPUBottleneck(patience=100), job).status == "clean"
    outcome = judge(CPUBottleneck(patience=100, window=240), job)
    # Windows of 120 samples: the last two together hold nothing but bottlenecks.
    assert (outcome.status, outcome.findings[0].worst) == ("fired", 100)
    assert counts(outcome)[1:] == (240, 960)
