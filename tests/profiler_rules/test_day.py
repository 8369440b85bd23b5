"""A whole day of a two-node job: exactly what was planted fires."""

from __future__ import annotations

from pathlib import Path

import pytest

from smdbg_core import Report, evaluate
from tests.profiler_day import PLANTED, write_day

RECENT = {"CPUBottleneck": {"window": 1000}, "IOBottleneck": {"window": 1000}}
"""An hour in a day is seen in the latest snapshots, not in the share of the whole day."""


def judged(report: Report) -> set[str]:
    errors = [outcome.reason for outcome in report.outcomes if outcome.status == "error"]
    assert errors == []
    assert report.warnings == []
    return {outcome.rule for outcome in report.fired}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = write_day(tmp_path_factory.mktemp("planted"), healthy=False)
    return evaluate(path, parameters=RECENT)


def test_a_healthy_day_is_clean(tmp_path: Path) -> None:
    report = evaluate(write_day(tmp_path, healthy=True), parameters=RECENT)
    assert judged(report) == set()
    silent = {
        outcome.rule for outcome in report.outcomes if outcome.coverage.windows and outcome.status == "clean"
    }
    assert silent >= {*PLANTED, "BatchSize", "Dataloader", "OverallSystemUsage", "OverallFrameworkMetrics"}


def test_exactly_the_planted_problems_are_found(planted: Report) -> None:
    assert judged(planted) == {*PLANTED, "ProfilerReport"}


def test_findings_say_where_and_when(planted: Report) -> None:
    def places(rule: str) -> set[tuple[str | None, str]]:
        return {(finding.node, finding.subject) for finding in planted.outcome(rule).findings}

    def hours(rule: str) -> list[int]:
        firsts = [finding.window_start_us for finding in planted.outcome(rule).findings]
        return [((first or 0) // 1_000_000 - 1_700_006_400) // 3600 for first in firsts]

    assert hours("CPUBottleneck") == [8]
    assert hours("IOBottleneck") == [12]
    assert (places("GPUMemoryIncrease"), set(hours("GPUMemoryIncrease"))) == (
        {("algo-1", "gpu3 GPUMemoryUtilization")},
        {20},
    )
    lagging = {subject for _, subject in places("LoadBalancing")}
    assert len(lagging) == 15
    assert all("gpu7" in subject for subject in lagging)
    assert hours("MaxInitializationTime") == [0]
    assert {finding.worker for finding in planted.outcome("StepOutlier").findings} == {
        "algo-1-27",
        "algo-2-27",
    }
