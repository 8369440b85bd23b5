"""BatchSize."""

from __future__ import annotations

import pytest

from smdbg_profiler_rules.batch_size import BatchSize
from tests.profiler_job import T0, Job
from tests.profiler_rules.conftest import CPU, GPU, MEMORY, Judge, counts, details

RULE = BatchSize(window=4, patience=4)
USED = {("cpu0", CPU): [30, 40, 50, 60, 20], ("gpu0", GPU): [10, 20, 30, 40, 50]}
SMALL = {**USED, ("gpu0", MEMORY): [60, 61, 62, 63, 64]}


def test_fires_when_all_three_are_low(judge: Judge) -> None:
    outcome = judge(RULE, Job().ticks(SMALL))
    assert outcome.status == "fired"
    assert counts(outcome) == (1, 1, 5)
    block = details(outcome)["algo-1"]
    assert block["cpu"] == pytest.approx(
        {"p25": 30, "p50": 40, "p75": 50, "p95": 58, "upper": 60, "lower": 20}
    )
    assert list(block) == ["cpu", "gpu0", "gpu0_memory"]
    assert details(outcome)["last_timestamp"] == T0 * 1_000_000
    (finding,) = outcome.findings
    assert (finding.subject, finding.node) == ("gpu0 GPUUtilization", "algo-1")
    assert finding.window_start_us == T0 * 1_000_000
    assert "CPU 58.5 < 70 %, GPU 48.5 < 70 %, GPU memory 63.85 < 70 %" in finding.message


def test_is_clean_when_the_memory_is_used(judge: Judge) -> None:
    outcome = judge(RULE, Job().ticks({**USED, ("gpu0", MEMORY): [60, 61, 62, 63, 80]}))
    assert outcome.status == "clean"
    assert outcome.closest is not None
    assert outcome.closest.value == pytest.approx(77.45 / 70)


def test_samples_as_few_as_the_window_are_not_evaluated(judge: Judge) -> None:
    outcome = judge(RULE, Job().ticks({key: values[:4] for key, values in SMALL.items()}))
    assert outcome.status == "not_evaluated"
    assert outcome.reason == "fewer samples than window and patience: at most 4, needs 5"


def test_without_a_gpu_it_is_not_evaluated_but_counts(judge: Judge) -> None:
    outcome = judge(RULE, Job().ticks({("cpu0", CPU): [1, 2, 3, 4, 5]}))
    assert outcome.status == "not_evaluated"
    assert outcome.reason == "not measured: no samples of GPUMemoryUtilization, GPUUtilization"
    assert counts(outcome) == (0, 0, 5)


def test_cores_are_averaged_on_each_node(judge: Judge) -> None:
    busy = {("cpu0", CPU): [100] * 5, ("cpu1", CPU): [20] * 5}
    rest = {key: values for key, values in SMALL.items() if key[0] != "cpu0"}
    job = Job().ticks(busy | rest).ticks({("cpu0", CPU): [100] * 5} | rest, node="algo-2")
    outcome = judge(RULE, job)
    assert {finding.node for finding in outcome.findings} == {"algo-1"}
