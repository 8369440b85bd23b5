"""Reports from the files that the service's report rules wrote, without the raw data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from smdbg_core.evidence import Evidence
from smdbg_core.findings import Finding
from smdbg_core.outcomes import Coverage, Measurements, Outcome, Report, RunSummary
from smdbg_core.version import __version__

__all__ = ["SERVICE", "read_service_reports"]

SERVICE: Final = "read from the service's report"
"""Stands for the plugin of an outcome that was not judged here."""

_PROFILER: Final = "profiler-reports"
_XGBOOST: Final = "xgboost-reports"
_BELOW: Final = (
    "",
    "profiler-output",
    "rule-output/*",
    "rule-output/*/profiler-output",
    "*/rule-output",
    "*/profiler-output",
)
_SECTIONS: Final = (
    "LabelsDistribution", "LossData", "FeatureImportance", "ConfusionMatrix", "EvaluationMetrics",
    "IterativeClassAccuracy", "ROCCurve", "ResidualDistribution", "AbsoluteErrorPerLabelBin",
)  # fmt: skip
_FAMILIES: Final = {
    "ROCCurve": "binary",
    "ConfusionMatrix": "multiclass",
    "AbsoluteErrorPerLabelBin": "regression",
}

Documented = Callable[[str], tuple[str, str, str] | None]
"""What an installed rule of a name says about itself."""


class _RuleFile(msgspec.Struct):
    """A file of `profiler-reports`: its five keys."""

    RuleTriggered: int
    Violations: int
    Details: dict[str, Any]
    Datapoints: int
    RuleParameters: str


def read_service_reports(path: str | Path, documented: Documented = lambda _: None) -> Report | None:
    """The report that the service's JSON files below `path` make.

    Args:
        path: The folder `profiler-reports` or `xgboost-reports` itself, the output of the rule that wrote
            it, or the job's folder.
        documented: Texts for rules that are installed here.

    Returns:
        The report; `None` if there are no such files.
    """
    root = Path(path).expanduser()
    if not root.is_dir():
        return None
    outcomes: list[Outcome] = []
    documents: dict[str, dict[str, Any]] = {}
    warnings: list[str] = []
    for file in _files(root, _PROFILER):
        try:
            found = msgspec.json.decode(file.read_bytes(), type=_RuleFile)
        except (OSError, msgspec.MsgspecError, RecursionError) as error:
            if not file.stem.startswith("smdbg-"):
                warnings.append(f"{file.name} is no report of a profiler rule: {error}")
            continue
        outcomes.append(_outcome(file.stem, found))
    for file in _files(root, _XGBOOST):
        try:
            documents[f"{_XGBOOST}/{file.name}"] = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.MsgspecError, RecursionError) as error:
            warnings.append(f"{file.name} is no section of a training report: {error}")
    if documents and f"{_XGBOOST}/Summary.json" not in documents:
        documents[f"{_XGBOOST}/Summary.json"] = _summary(documents)
    if not outcomes and not documents:
        return None
    texts = {one.name: text for one in outcomes if (text := documented(one.rule)) is not None}
    evidence = Evidence({}, {_XGBOOST: documents}, None, [], [], []) if documents else None
    return Report(
        smdbg_version=__version__,
        run=RunSummary(uri=str(root), has=["profiler"] if outcomes else [], nodes=_nodes(outcomes)),
        outcomes=outcomes,
        warnings=[*warnings, "made from report files: the raw data were not read, nothing was judged again"],
        evidence=evidence,
        documentation=texts,
    )


def _files(root: Path, folder: str) -> Iterator[Path]:
    """The JSON files of the first such folder."""
    places = [root] if root.name == folder else []
    for below in _BELOW:
        places += sorted(root.glob(f"{below}/{folder}" if below else folder))
    for place in places:
        found = sorted(one for one in place.glob("*.json") if one.is_file())
        if found:
            yield from found
            return


def _outcome(rule: str, found: _RuleFile) -> Outcome:
    parameters: dict[str, Any] = {}
    for line in re.split(r"[\n;]", found.RuleParameters):
        name, colon, value = line.partition(":")
        if colon:
            parameters[name.strip()] = value.strip()
    judged = found.Datapoints > 0 or found.RuleTriggered > 0 or bool(found.Details)
    times = f"triggered {found.RuleTriggered:,} time{'s' * (found.RuleTriggered != 1)}"
    times += f", with {found.Violations:,} violation{'s' * (found.Violations != 1)}"
    fired = found.RuleTriggered > 0
    return Outcome(
        findings=[Finding(subject=rule, count=found.RuleTriggered, message=times)] if fired else [],
        rule=rule,
        name=rule,
        plugin=SERVICE,
        severity="warning",
        status="fired" if fired else "clean" if judged else "not_evaluated",
        reason=None if judged else "the report has no data points of it",
        parameters=parameters,
        coverage=Coverage(points=max(found.Datapoints, 0)),
        measurements=Measurements(
            triggered=found.RuleTriggered,
            violations=found.Violations,
            datapoints=found.Datapoints,
            details=found.Details,
            parameters=parameters,
        ),
    )


def _nodes(outcomes: list[Outcome]) -> list[str]:
    """Nodes that the usage of the system names."""
    found: set[str] = set()
    for outcome in outcomes:
        details = outcome.measurements.details if outcome.measurements is not None else {}
        usage = details.get("CPU")
        if isinstance(usage, dict):
            found |= {str(node) for node, values in usage.items() if isinstance(values, dict)}
    return sorted(found)


def _summary(documents: dict[str, Any]) -> dict[str, Any]:
    """What can be told of the run from the sections that there are."""
    names = {name.rpartition("/")[2].removesuffix(".json") for name in documents}
    kind = next((kind for section, kind in _FAMILIES.items() if section in names), None)
    residuals = documents.get(f"{_XGBOOST}/ResidualDistribution.json", {})
    missing = [name for name in _SECTIONS if name not in names]
    return {
        "objective": None,
        "kind": kind,
        "plot_step": residuals.get("plot_step"),
        "notices": [f"no file for: {', '.join(missing)}"] if missing else [],
    }
