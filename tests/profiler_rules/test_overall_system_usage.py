"""OverallSystemUsage."""

from __future__ import annotations

from smdbg_profiler_rules.overall_system_usage import OverallSystemUsage
from tests.profiler_job import Job
from tests.profiler_rules.conftest import CPU, GPU, Judge, counts, details


def test_percentiles_of_the_averages(judge: Judge) -> None:
    outcome = judge(
        OverallSystemUsage(), Job().ticks({("cpu0", CPU): [10, 50, 90, 0], ("cpu1", CPU): [30, 70, 100, 20]})
    )
    assert outcome.status == "clean"
    assert details(outcome)["CPU"] == {
        "algo-1": {"max": 95.0, "p99": 93.95, "p95": 89.75, "p50": 40.0, "min": 10.0}
    }
    assert counts(outcome) == (0, 0, 4)
    assert list(details(outcome)) == ["Network", "GPU", "CPU", "CPU memory", "GPU memory", "I/O"]
    assert details(outcome)["GPU"] == {}


def test_network_adds_up_and_zero_is_whole(judge: Judge) -> None:
    job = Job().ticks(
        {
            ("ReceiveBytesPerSecond", "Algorithm"): [100, 0],
            ("TransmitBytesPerSecond", "Algorithm"): [50.5, 0],
            ("ReceiveBytesPerSecond", "Platform"): [9999, 9999],
            ("gpu0", GPU): [100, 0],
            ("gpu1", GPU): [0, 0],
            ("MemoryUsedPercent", ""): [5.59, 5.61],
        }
    )
    found = details(judge(OverallSystemUsage(), job))
    assert (found["Network"]["algo-1"]["max"], found["GPU"]["algo-1"]["max"]) == (150.5, 50.0)
    assert found["Network"]["algo-1"]["min"] == 0
    assert isinstance(found["Network"]["algo-1"]["min"], int)
    assert found["CPU memory"]["algo-1"]["p50"] == 5.6


def test_without_metrics_it_is_not_evaluated(judge: Judge) -> None:
    outcome = judge(OverallSystemUsage(), Job().steps([1]))
    assert outcome.status == "not_evaluated"
    assert "no samples of Algorithm, GPUUtilization" in str(outcome.reason)
