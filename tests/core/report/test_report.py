"""Reports: strict JSON, JUnit, the table, and names that mean harm."""

from __future__ import annotations

import json
import math
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from smdbg_core import Coverage, Finding, Outcome, Report, RunSummary
from smdbg_core.outcomes import Closest
from smdbg_core.report.console import plain, render_console
from smdbg_core.report.document import report_schema
from smdbg_core.report.json import render_finding_line, render_json, render_lines
from smdbg_core.report.junit import render_junit
from smdbg_core.rule import Documentation

HOSTILE = 'a<b>&"\x1b[31m\n\x00\U0001f600inf_nan_rate'


def finding(**changes: Any) -> Finding:
    values: dict[str, Any] = {
        "subject": "gradient/a", "worker": "worker_0", "step": 12, "last_step": 40, "mode": "TRAIN", "mode_step": 12,
        "count": 9, "statistic": "mean_abs", "value": 3e-9, "worst": 1e-9, "comparison": "<", "limit": 1e-7,
        "message": "mean_abs 3e-09 < 1e-07",
    }  # fmt: skip
    return Finding(**values | changes)


def outcome(name: str = "VanishingGradient", status: Any = "fired", **changes: Any) -> Outcome:
    values: dict[str, Any] = {
        "rule": name,
        "name": name,
        "plugin": f"smdbg-builtin-rules==0.1.0[{name}]",
        "severity": "warning",
        "status": status,
        "parameters": {"threshold": 1e-7},
        "coverage": Coverage(steps=60, tensors=6, points=360),
        "findings": [finding()] if status == "fired" else [],
    }
    return Outcome(**values | changes)


def report(*outcomes: Outcome, **changes: Any) -> Report:
    run = RunSummary(
        uri="/data/t",
        has=["trial"],
        ended=True,
        steps=60,
        first_step=0,
        last_step=99,
        modes={"TRAIN": 60},
        workers=["worker_0"],
        tensors=6,
    )
    return Report(
        **{"smdbg_version": "0.1.0", "run": run, "outcomes": list(outcomes), "warnings": [], **changes}
    )


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_json_has_the_documented_keys() -> None:
    document = strict(render_json(report(outcome())))
    assert list(document) == ["schema_version", "smdbg_version", "run", "outcomes", "actions", "warnings"]
    (one,) = document["outcomes"]
    assert list(one)[:11] == [
        "rule", "name", "plugin", "severity", "status", "reason", "parameters", "coverage", "findings",
        "findings_truncated", "closest",
    ]  # fmt: skip
    assert one["coverage"] == {"steps": 60, "tensors": 6, "points": 360, "non_finite": 0, "skipped": {}}
    assert one["findings"][0] == {
        "subject": "gradient/a", "worker": "worker_0", "node": None, "step": 12, "last_step": 40, "mode": "TRAIN",
        "mode_step": 12, "window_start_us": None, "window_end_us": None, "count": 9, "statistic": "mean_abs",
        "value": 3e-9, "worst": 1e-9, "comparison": "<", "limit": 1e-7, "message": "mean_abs 3e-09 < 1e-07",
    }  # fmt: skip


def test_numbers_that_json_lacks_are_strings_and_names_are_left_alone() -> None:
    text = render_json(
        report(
            outcome(
                findings=[finding(subject="inf_nan_rate", value=math.nan, worst=-math.inf)],
                parameters={"x": (math.inf,)},
            )
        )
    )
    (one,) = strict(text)["outcomes"]
    assert (one["findings"][0]["value"], one["findings"][0]["worst"]) == ("nan", "-inf")
    assert one["findings"][0]["subject"] == "inf_nan_rate"
    assert one["parameters"] == {"x": ["inf"]}


def test_profiler_outcomes_count_windows() -> None:
    (one,) = strict(render_json(report(outcome(coverage=Coverage(windows=3, series=2, points=6)))))[
        "outcomes"
    ]
    assert one["coverage"] == {"windows": 3, "series": 2, "points": 6, "non_finite": 0, "skipped": {}}


def test_lines() -> None:
    assert strict(render_finding_line("n", finding()))["type"] == "finding"
    lines = [strict(line) for line in render_lines(report(outcome(), outcome("B", "clean"))).splitlines()]
    assert [line["type"] for line in lines] == ["outcome", "outcome", "run"]


def test_junit_says_the_same() -> None:
    root = ET.fromstring(
        render_junit(
            report(
                outcome(),
                outcome("B", "clean"),
                outcome("C", "error", reason="r"),
                outcome("D", "not_evaluated", reason="n"),
                warnings=["w"],
            )
        )
    )
    suite = root[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "4",
        "1",
        "1",
        "1",
    )
    assert [[child.tag for child in case] for case in suite.findall("testcase")] == [
        ["failure"],
        [],
        ["error"],
        ["skipped"],
    ]


def test_hostile_names_are_harmless_everywhere() -> None:
    one = report(
        outcome(name=HOSTILE, findings=[finding(subject=HOSTILE, message=HOSTILE)]),
        outcome("B", "not_evaluated", reason=HOSTILE),
        warnings=[HOSTILE],
    )
    assert strict(render_json(one))["outcomes"][0]["name"] == HOSTILE
    suite = ET.fromstring(render_junit(one))[0]
    assert "inf_nan_rate" in str(suite.findall("testcase")[0].get("name"))
    table = render_console(one)
    assert "\x1b" not in table
    assert "\x00" not in table
    assert "\\x1b[31m\\n" in table
    assert plain("é\t\u202e") == "é\\t\\u202e"


def test_the_table_tells_what_and_what_to_do() -> None:
    closest = Closest(subject="a", worker=None, step=3, statistic="x", value=2.0, comparison="<", limit=1.0)
    text = render_console(
        report(
            outcome("Quiet", "clean", closest=closest),
            outcome(severity="info"),
            outcome(
                "Worse",
                severity="critical",
                findings=[finding(subject=f"t{n}") for n in range(7)],
                findings_truncated=2,
            ),
            outcome("Broken", "error", reason="at step 3: ValueError: x"),
            outcome("Idle", "not_evaluated", reason="nothing matched"),
            warnings=["damaged: f"],
        ),
        {"VanishingGradient": Documentation("s", "m", "look at the first layers")},
        width=70,
    )
    assert all(len(line) <= 70 for line in text.splitlines())
    assert text.index("Worse") < text.index("VanishingGradient") < text.index("Broken") < text.index("Quiet")
    for part in (
        "gradient/a, steps 12 to 40 (9 points) TRAIN: mean_abs 3e-09 < 1e-07",
        "What to do: look at the first layers",
        "... and 2 more tensors",
        "... and 2 findings beyond the cap",
        "fires at < 1",
        "ERROR",
        "Idle",
        "damaged: f",
        "Verdict: 2 fired, 1 error, 1 clean, 1 not evaluated.",
    ):
        assert part in " ".join(text.split()) or part in text, part


def test_colours_only_where_asked_for() -> None:
    assert "<red>FIRED" in render_console(report(outcome()), style=lambda text, colour: f"<{colour}>{text}")
    assert "\x1b" not in render_console(report(outcome()))


def test_the_schema_describes_the_report() -> None:
    schema = report_schema()
    report_part = schema["$defs"]["Report"]["properties"]
    assert set(report_part) == set(strict(render_json(report())))
    value = schema["$defs"]["Finding"]["properties"]["value"]
    assert {"enum": ["nan", "inf", "-inf"]} in value["anyOf"][0]["anyOf"] or "nan" in str(value)
