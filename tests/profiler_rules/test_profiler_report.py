"""ProfilerReport."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest

from smdbg_core import (
    Finding,
    Meta,
    ParameterError,
    ProfilerRule,
    Registry,
    ScanReads,
    ScanWindow,
    evaluate,
)
from smdbg_core.discovery.finder import find
from smdbg_profiler_rules.profiler_report import ProfilerReport
from tests.profiler_job import Job
from tests.profiler_rules.conftest import CPU, GPU, MEMORY

KEYS = ["RuleTriggered", "Violations", "Details", "Datapoints", "RuleParameters"]
SERVICE = {
    "BatchSize",
    "CPUBottleneck",
    "Dataloader",
    "GPUMemoryIncrease",
    "IOBottleneck",
    "LoadBalancing",
    "LowGPUUtilization",
    "MaxInitializationTime",
    "OverallFrameworkMetrics",
    "OverallSystemUsage",
    "StepOutlier",
}


class Hot(ProfilerRule):
    """Somebody else's rule."""

    limit: Annotated[float, Meta(ge=0, description="Values above this fire.")] = 50

    def reads(self) -> ScanReads:
        return ScanReads(series=("GPUUtilization",))

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        for series in window.series("GPUUtilization"):
            yield from self.judge(series, "max", float(series.values.max()), ">", self.limit)


@pytest.fixture
def idle(tmp_path: Path) -> str:
    """A job whose GPU does nothing."""
    values = {("gpu0", GPU): [0] * 1300, ("gpu0", MEMORY): [5] * 1300, ("cpu0", CPU): [99] * 1300}
    return Job().ticks(values).write(tmp_path / "job")


def reports(output: Path) -> dict[str, dict[str, object]]:
    folder = output / "profiler-output" / "profiler-reports"
    return {path.stem: json.loads(path.read_text()) for path in folder.iterdir()}


def test_every_rule_reports_in_the_services_form(idle: str, tmp_path: Path) -> None:
    report = evaluate(idle, ["ProfilerReport"], output=tmp_path / "out")
    assert report.outcome("ProfilerReport").status == "fired"
    fired = {finding.subject for finding in report.outcome("ProfilerReport").findings}
    assert fired == {"CPUBottleneck", "LowGPUUtilization"}
    written = reports(tmp_path / "out")
    assert written.keys() == {*SERVICE, "smdbg-findings"}
    for name in SERVICE:
        assert list(written[name]) == KEYS
    low = written["LowGPUUtilization"]
    assert low["RuleParameters"] == "threshold_p95:70\nthreshold_p5:10\nwindow:500\npatience:1000"
    assert (low["RuleTriggered"], low["Datapoints"]) == (3, 1300)
    assert written["StepOutlier"]["RuleParameters"] == "threshold:3\nmode:None\nn_outliers:10\nstddev:3"
    assert written["MaxInitializationTime"]["RuleParameters"] == "threshold:20"
    assert written["GPUMemoryIncrease"]["RuleParameters"] == "increase:5\npatience:1000\nwindow:10"
    assert written["OverallSystemUsage"]["RuleParameters"] == ""
    bottleneck = written["CPUBottleneck"]
    assert bottleneck["RuleParameters"] == "threshold:50\ncpu_threshold:90\ngpu_threshold:10\npatience:1000"
    assert bottleneck["Violations"] == 1300
    findings = written["smdbg-findings"]["outcomes"]
    assert {one["rule"] for one in findings} == SERVICE  # type: ignore[index,union-attr]


def test_nothing_is_written_without_a_folder(idle: str) -> None:
    outcome = evaluate(idle, ["ProfilerReport"]).outcome("ProfilerReport")
    assert "12 files are not written" in str(outcome.reason)


def test_prefixed_parameters_are_applied_in_any_case(idle: str) -> None:
    rule = ProfilerReport(CPUBottleneck_threshold=30, lowgpuutilization_patience="500")  # type: ignore[call-arg]
    assert rule.parameters == {
        "scan_interval_us": 60_000_000,
        "opt_out_telemetry": False,
        "CPUBottleneck_threshold": 30.0,
        "LowGPUUtilization_patience": 500,
    }
    report = evaluate(idle, [rule])
    assert report.outcome("LowGPUUtilization").parameters["patience"] == 500
    assert report.outcome("CPUBottleneck").parameters["threshold"] == 30.0
    assert report.outcome("CPUBottleneck").parameters["patience"] == 1000


def test_all_problems_come_at_once() -> None:
    with pytest.raises(ParameterError) as raised:
        ProfilerReport(
            CPUBottleneckthreshold=30,  # type: ignore[call-arg]
            BadRule_threshold=30,
            CPUBottleneck_bad_param=30,
            CPUBottleneck_threshold=200,
            LowGPUUtilization_patience=-1,
            stepoutlier_stddev=3,
            StepOutlier_stddev=4,
            Dataloader_min_threshold=300,
            opt_out_telemetry="perhaps",
        )
    text = str(raised.value)
    for said in (
        "'CPUBottleneckthreshold' does not follow <RuleName>_<parameter>",
        "'BadRule_threshold': no ",
        "CPUBottleneck: no parameter 'bad_param'",
        "CPUBottleneck: threshold=200:",
        "LowGPUUtilization: patience=-1:",
        "'stepoutlier_stddev' and 'StepOutlier_stddev' are one parameter",
        "Dataloader: min_threshold=300 is above max_threshold=200",
        "opt_out_telemetry='perhaps'",
    ):
        assert said in text, text
    assert {problem.parameter for problem in raised.value.problems} >= {
        "CPUBottleneck_threshold",
        "Dataloader_min_threshold",
    }


def test_the_report_does_not_configure_itself() -> None:
    with pytest.raises(ParameterError, match="is this report"):
        ProfilerReport(ProfilerReport_opt_out_telemetry=True)  # type: ignore[call-arg]


def test_children_are_evaluated_once_however_they_are_asked_for(idle: str) -> None:
    for asked in (["LowGPUUtilization", "ProfilerReport"], ["ProfilerReport", "LowGPUUtilization"], None):
        report = evaluate(idle, asked)
        assert [outcome.rule for outcome in report.outcomes].count("LowGPUUtilization") == 1


def test_a_child_with_parameters_of_its_own_is_another(idle: str) -> None:
    strict = ProfilerReport(LowGPUUtilization_patience=5)  # type: ignore[call-arg]
    report = evaluate(idle, ["LowGPUUtilization", strict])
    patience = [o.parameters["patience"] for o in report.outcomes if o.rule == "LowGPUUtilization"]
    assert patience == [1000, 5]


def test_rules_of_others_take_part(idle: str, tmp_path: Path) -> None:
    spec = find()[0]._replace(
        distribution="acme", version="1.0", kind="profiler rule", name="Hot", value=f"{__name__}:Hot"
    )
    registry = Registry(specs=[*find(), spec])
    with registry.active():
        rule = ProfilerReport(hot_limit="0.5")  # type: ignore[call-arg]
    report = evaluate(idle, [rule], registry=registry, output=tmp_path)
    assert report.outcome("Hot").parameters["limit"] == 0.5
    written = reports(tmp_path)["Hot"]
    assert written == {
        "RuleTriggered": 0,
        "Violations": 0,
        "Details": {},
        "Datapoints": 11,
        "RuleParameters": "limit:0.5",
    }


def test_without_data_it_is_not_evaluated(tmp_path: Path) -> None:
    outcome = evaluate(Job().write(tmp_path / "job"), ["ProfilerReport"]).outcome("ProfilerReport")
    assert (outcome.status, outcome.reason) == (
        "not_evaluated",
        "no profiler rule could judge anything (1 point)",
    )
