"""Reports from the service's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smdbg_core import Report
from smdbg_core.report.service import SERVICE, read_service_reports

__all__ = ["write_service_files"]


def rule_file(**changes: Any) -> dict[str, Any]:
    values = {
        "RuleTriggered": 3,
        "Violations": 4,
        "Details": {},
        "Datapoints": 100,
        "RuleParameters": "threshold:50\npatience:1000",
    }
    return values | changes


def write_service_files(folder: Path, report: Report) -> Path:
    """What the service would have written of a judged run."""
    place = folder / "rule-output" / "ProfilerReport" / "profiler-output" / "profiler-reports"
    place.mkdir(parents=True)
    for outcome in report.outcomes:
        if outcome.measurements is not None and outcome.rule != "ProfilerReport":
            numbers = outcome.measurements
            found = rule_file(
                RuleTriggered=numbers.triggered,
                Violations=numbers.violations,
                Details=numbers.details,
                Datapoints=numbers.datapoints,
            )
            (place / f"{outcome.rule}.json").write_text(json.dumps(found, default=list))
    return folder


def write(folder: Path, **files: Any) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content) if not isinstance(content, str) else content)
    return folder


@pytest.mark.parametrize(
    "below",
    [
        "profiler-reports",
        "profiler-output/profiler-reports",
        "rule-output/PR/profiler-output/profiler-reports",
    ],
)
def test_folders_where_they_are_found(tmp_path: Path, below: str) -> None:
    write(tmp_path / below, CPUBottleneck=rule_file())
    report = read_service_reports(tmp_path)
    assert report is not None
    (outcome,) = report.outcomes
    assert (outcome.rule, outcome.status, outcome.plugin) == ("CPUBottleneck", "fired", SERVICE)
    assert outcome.parameters == {"threshold": "50", "patience": "1000"}
    assert outcome.measurements is not None
    assert (outcome.measurements.triggered, outcome.measurements.violations) == (3, 4)


def test_the_folder_itself(tmp_path: Path) -> None:
    folder = write(tmp_path / "profiler-reports", BatchSize=rule_file(RuleTriggered=0))
    report = read_service_reports(folder)
    assert report is not None
    assert [one.status for one in report.outcomes] == ["clean"]


def test_a_rule_without_data_points_was_not_evaluated(tmp_path: Path) -> None:
    folder = write(tmp_path / "profiler-reports", BatchSize=rule_file(RuleTriggered=0, Datapoints=0))
    report = read_service_reports(folder)
    assert report is not None
    assert [one.status for one in report.outcomes] == ["not_evaluated"]


@pytest.mark.parametrize("content", ["{", "[]", '{"RuleTriggered": "many"}'])
def test_other_files_are_named_and_left_out(tmp_path: Path, content: str) -> None:
    folder = write(tmp_path / "profiler-reports", Good=rule_file(), Bad=content)
    report = read_service_reports(folder)
    assert report is not None
    assert [one.rule for one in report.outcomes] == ["Good"]
    assert "Bad.json is no report" in report.warnings[0]


def test_sections_of_a_training_report(tmp_path: Path) -> None:
    section = {"labels_and_samples": [{"labels": 0, "num_samples_per_label": 5}]}
    write(tmp_path / "rule-output" / "CreateXgboostReport" / "xgboost-reports", LabelsDistribution=section)
    report = read_service_reports(tmp_path)
    assert report is not None
    (documents,) = report.evidence.documents.values()
    assert documents["xgboost-reports/LabelsDistribution.json"] == section
    assert "LossData" in documents["xgboost-reports/Summary.json"]["notices"][0]


@pytest.mark.parametrize("content", [None, "empty"])
def test_nothing_there(tmp_path: Path, content: str | None) -> None:
    if content:
        (tmp_path / "profiler-reports").mkdir()
    assert read_service_reports(tmp_path) is None
    assert read_service_reports(tmp_path / "missing") is None
