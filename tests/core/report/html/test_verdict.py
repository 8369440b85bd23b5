"""Verdicts: the order of problems, how sure they are, and what was judged."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("bokeh")

from smdbg_core import Coverage, Finding, Outcome, Report
from smdbg_core.report.html.blocks import duration, number, readable
from smdbg_core.report.html.verdict import coverage_tables, verdict
from tests.core.report.test_report import finding, outcome, report


def at_a_glance(*outcomes: Outcome, **changes: Any) -> Any:
    made: Report = report(*outcomes, **changes)
    return verdict(made, {one.name: index for index, one in enumerate(made.outcomes)})


def test_severity_then_extent_is_the_order() -> None:
    wide = outcome("Wide", findings=[finding(count=300)])
    small = outcome("Small", findings=[finding(count=2)])
    worst = outcome("Worst", severity="critical", findings=[finding(count=1)])
    found = at_a_glance(small, wide, worst)
    assert [one.name for one in found.problems] == ["Worst", "Wide", "Small"]
    assert found.headline == "3 problems found"
    assert found.tone == "fired"


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({"count": 1, "worst": 0.9e-7}, "A hint"),
        ({"count": 1, "worst": 0.6e-7}, "Likely"),
        ({"count": 2, "worst": 0.9e-7}, "Likely"),
        ({"count": 10, "worst": 0.9e-7}, "Sure"),
        ({"count": 1, "worst": 0.9e-8}, "Sure"),
        ({"count": 1, "worst": 0.0}, "Sure"),
        ({"count": 1, "worst": math.nan, "value": math.nan}, "Sure"),
        ({"count": 1, "worst": math.inf, "comparison": ">"}, "Sure"),
        ({"count": 1, "worst": 1.2e-7, "comparison": ">"}, "A hint"),
        ({"count": 1, "worst": None, "limit": None}, "A hint"),
    ],
)
def test_how_sure(changes: dict[str, Any], level: str) -> None:
    (problem,) = at_a_glance(outcome(findings=[finding(**changes)])).problems
    assert problem.sure.startswith(level)


def test_what_was_left_out_is_said_with_how_sure() -> None:
    coverage = Coverage(steps=6, tensors=1, points=6, non_finite=2, skipped={"too few": 3})
    (problem,) = at_a_glance(outcome(coverage=coverage)).problems
    assert "2 points indeterminate, 3 points not judged" in problem.sure


def test_a_report_on_other_rules_is_no_problem_of_its_own() -> None:
    other = finding(subject="CPUBottleneck", statistic="times fired", step=None, last_step=None, value=3.0)
    found = at_a_glance(outcome("Summary", findings=[other]), outcome("CPUBottleneck"))
    assert found.headline == "1 problem found"
    assert [one.name for one in found.problems] == ["CPUBottleneck", "Summary"]


@pytest.mark.parametrize(
    ("statuses", "headline"),
    [
        (["clean"], "Nothing wrong was found"),
        (["not_evaluated"], "Nothing could be judged"),
        ([], "Nothing could be judged"),
        (["error", "clean"], "1 rule failed; nothing else was found"),
    ],
)
def test_headlines(statuses: list[str], headline: str) -> None:
    found = at_a_glance(*(outcome(f"Rule{i}", status=status) for i, status in enumerate(statuses)))
    assert found.headline == headline


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ("Fires when a loss rises.", "A loss rises."),
        ("Fires in the first steps when layers differ.", "In the first steps, layers differ."),
        ("Measures, never fires.", "Measures, never fires."),
        ("", ""),
    ],
)
def test_what_is_wrong_is_said_of_the_run(summary: str, said: str) -> None:
    (problem,) = at_a_glance(outcome(), documentation={"VanishingGradient": (summary, "", "do")}).problems
    assert problem.summary == said
    assert problem.remedy == "Do"


def test_judged_and_not_judged() -> None:
    made = report(outcome(), outcome("Other", status="not_evaluated", reason="not saved"))
    judged, missing = coverage_tables(made, {"VanishingGradient": 1, "Other": 2})
    assert judged.rows[0][2:4] == ["6 tensors, 60 steps", "360"]
    assert missing.rows[0][1:] == ["not evaluated", "not saved"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (3, "3"), (1234567, "1,234,567"), (2.0, "2"), (0.123456, "0.123"), (12.3456, "12.35"),
     (1234567.5, "1,234,568"), (3e-9, "3e-09"), (math.nan, "nan"), (True, "True"), ("a\n", "a\\n")],
)  # fmt: skip
def test_numbers(value: object, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "0.5 s"), (119, "119 s"), (134, "2 min 14 s"), (86400, "1 d 0 h"), (90000, "1 d 1 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_no_page_can_carry_is_made_visible() -> None:
    assert readable("a\x00\udcff\n") == "a\\x00\\udcff\\n"


def test_findings_without_a_place() -> None:
    (problem,) = at_a_glance(outcome(findings=[Finding(subject="s", message="m")])).problems
    assert problem.where == "s, whole run: m"
