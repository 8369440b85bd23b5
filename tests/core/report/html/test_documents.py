"""Documents of any layout: what rules and the service wrote may be anything."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("bokeh")

from smdbg_core import Measurements, Report, RunSummary
from smdbg_core.evidence import Evidence
from smdbg_core.report.html.details_sections import DETAILS_SECTIONS, details_sections
from smdbg_core.report.html.rules_table import rules_section
from smdbg_core.report.html.xgboost_sections import xgboost_sections
from tests.core.report.test_report import outcome

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    "job_start", "job_end", "step_num", "GPU", "CPU", "phase", "general", "dataloading_time", "algo-1",
    "low_gpu_utilization", "bottlenecks", "step_details", "forward_backward", "CPU_total",
)  # fmt: skip
SECTIONS = (
    "LabelsDistribution", "LossData", "FeatureImportance", "ConfusionMatrix", "EvaluationMetrics",
    "IterativeClassAccuracy", "ROCCurve", "ResidualDistribution", "AbsoluteErrorPerLabelBin", "Summary",
)  # fmt: skip


def measured(details: dict[str, Any], **changes: Any) -> Report:
    numbers = Measurements(triggered=2, violations=2, datapoints=10, details=details)
    one = outcome("Any", measurements=numbers, **changes)
    run = RunSummary(uri="u", has=["profiler"])
    return Report(smdbg_version="0", run=run, outcomes=[one])


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5))
def test_any_details_make_a_page(details: dict[str, Any]) -> None:
    report = measured(details)
    sections, _ = details_sections(report)
    assert list(sections) == [key for key, _ in DETAILS_SECTIONS]
    assert all(section.blocks for section in sections.values())
    assert rules_section(report) is not None


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(SECTIONS), st.dictionaries(st.text(max_size=5), JSON, max_size=3), min_size=1
    )
)
def test_any_sections_make_a_page(documents: dict[str, Any]) -> None:
    by_path = {f"xgboost-reports/{name}.json": document for name, document in documents.items()}
    report = Report(
        smdbg_version="0",
        run=RunSummary(uri="u", has=[]),
        outcomes=[],
        evidence=Evidence({}, {"any": by_path}, None, [], [], []),
    )
    sections = list(xgboost_sections(report))
    assert len(sections) == 11
    assert all(section.blocks for section in sections)


def test_a_section_of_another_layout_says_so() -> None:
    evidence = Evidence({}, {"any": {"xgboost-reports/ROCCurve.json": {"x": 1}}}, None, [], [], [])
    report = Report(smdbg_version="0", run=RunSummary(uri="u", has=[]), outcomes=[], evidence=evidence)
    (roc,) = [section for section in xgboost_sections(report) if section.key == "boosting-ROCCurve"]
    assert "cannot be shown: KeyError" in roc.blocks[0].text  # type: ignore[union-attr]


def test_any_rule_gets_the_sections_of_what_it_measured() -> None:
    details = {
        "n1": {"workloads": {"gpu0": [1, 2, 3], "gpu1": [3, 2, 1]}, "distances": {"gpu0": {"gpu1": 0.4}}}
    }
    sections, homes = details_sections(measured(details))
    assert [block.kind for block in sections["balance"].blocks] == ["chart", "table"]
    assert [link.target for link in homes["Any"]] == ["balance"]
    assert "Absent" in sections["job"].blocks[0].text  # type: ignore[union-attr]


def test_shares_of_a_bottleneck_have_the_right_base() -> None:
    details = {"low_gpu_utilization": 5, "bottlenecks": {"1": {}, "2": {}}}
    sections, _ = details_sections(measured(details))
    text, drawn = sections["bottlenecks"].blocks
    assert "40.0 % of the 5 samples" in text.text  # type: ignore[union-attr]
    assert "GPU busy 50.0 %; GPU low, other reason 30.0 %; GPU low, this bottleneck 20.0 %" in drawn.answer  # type: ignore[union-attr]
