"""LoadBalancing."""

from __future__ import annotations

import pytest

from smdbg_profiler_rules.load_balancing import LoadBalancing
from tests.profiler_job import Job
from tests.profiler_rules.conftest import GPU, Judge, counts, details

RULE = LoadBalancing(patience=5)


def job(one: tuple[int, int], other: tuple[int, int], *, apart: bool = False) -> Job:
    """Two GPUs that are so often at 10 % and at 90 %."""
    series = [[10] * low + [90] * high for low, high in (one, other)]
    if apart:
        built = Job().ticks({("gpu0", GPU): series[0]})
        return built.ticks({("gpu0", GPU): series[1]}, node="algo-2")
    return Job().ticks({(f"gpu{i}", GPU): values for i, values in enumerate(series)})


def test_fires_on_gpus_with_different_work(judge: Judge) -> None:
    outcome = judge(RULE, job((10, 0), (0, 10)))
    (finding,) = outcome.findings
    assert finding.value == pytest.approx(0.832555, abs=1e-6)
    assert (finding.subject, finding.node) == ("gpu0 and gpu1", "algo-1")
    assert details(outcome)["algo-1"]["distances"] == {"gpu0": {"gpu1": finding.value}}
    assert counts(outcome) == (1, 1, 10)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [((8, 2), (2, 8), 0.439027), ((10, 0), (5, 5), 0.464501), ((8, 2), (6, 4), 0.155426)],
)
def test_is_clean_below_the_threshold(
    judge: Judge, one: tuple[int, int], other: tuple[int, int], distance: float
) -> None:
    outcome = judge(RULE, job(one, other))
    assert outcome.status == "clean"
    assert outcome.closest is not None
    assert outcome.closest.value == pytest.approx(distance, abs=1e-6)


def test_the_threshold_of_the_services_container(judge: Judge) -> None:
    assert judge(LoadBalancing(patience=5, threshold=0.2), job((10, 0), (5, 5))).status == "fired"


def test_series_of_different_length_are_normalised(judge: Judge) -> None:
    outcome = judge(LoadBalancing(patience=5, threshold=0.25), job((90, 10), (6, 4), apart=True))
    assert outcome.findings[0].value == pytest.approx(0.251571, abs=1e-6)
    assert details(outcome)["algo-1"]["distances"]["gpu0"].keys() == {"algo-2/gpu0"}


def test_a_saturated_gpu_counts(judge: Judge) -> None:
    outcome = judge(RULE, Job().ticks({("gpu0", GPU): [100] * 6, ("gpu1", GPU): [0] * 6}))
    assert "unused: algo-1/gpu1" in outcome.findings[0].message
    workload = details(outcome)["algo-1"]["workloads"]["gpu0"]
    assert (len(workload), workload[-1]) == (50, 6)


def test_one_gpu_has_no_partner(judge: Judge) -> None:
    outcome = judge(RULE, Job().ticks({("gpu0", GPU): [10] * 20}))
    assert outcome.status == "not_evaluated"
    assert "one GPU" in str(outcome.reason)


def test_patience_is_strict(judge: Judge) -> None:
    assert judge(RULE, job((5, 0), (0, 5))).reason == "fewer samples than patience: at most 5, needs 6"
