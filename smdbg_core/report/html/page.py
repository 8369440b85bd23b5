"""The page: one file, nothing loaded from elsewhere, names from data inert."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np
from bokeh.resources import INLINE
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from smdbg_core.outcomes import Outcome, Report
from smdbg_core.report.html.blocks import Link, Section, Table, Text, count, number, readable, sentence
from smdbg_core.report.html.details_sections import details_sections
from smdbg_core.report.html.rules_table import rules_section
from smdbg_core.report.html.system_sections import device_section, step_section, timeline_section
from smdbg_core.report.html.tensor_sections import damage_section, heat_sections, loss_section, rule_evidence
from smdbg_core.report.html.verdict import coverage_tables, judge_text, verdict
from smdbg_core.report.html.xgboost_sections import boosting_documents, xgboost_sections

__all__ = ["render_html"]

_WARNINGS = 100


def render_html(report: Report) -> str:
    """The report as one HTML file.

    Args:
        report: From `evaluate(..., evidence=True)`; without evidence the page has no charts of points.
    """
    anchors = {outcome.name: index for index, outcome in enumerate(report.outcomes, start=1)}
    environment = Environment(
        loader=PackageLoader("smdbg_core.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    scripts = [_plotting(), _own("page.js")]
    # Values of any size are drawn as they are; what overflows on the way is not worth a warning.
    with np.errstate(all="ignore"):
        sections = list(_sections(report, anchors))
    return environment.get_template("page.html.j2").render(
        title=readable(report.run.uri).rstrip("/").rpartition("/")[2] or "run",
        report=report,
        uri=readable(report.run.uri),
        facts=list(_facts(report)),
        verdict=verdict(report, anchors),
        coverage=list(coverage_tables(report, anchors)),
        warnings=[readable(one) for one in report.warnings[:_WARNINGS]],
        warnings_omitted=max(0, len(report.warnings) - _WARNINGS),
        sections=sections,
        rules=[_rule(report, one, anchors[one.name]) for one in sorted(report.outcomes, key=_interest)],
        style=Markup(_own("page.css")),  # noqa: S704 - a file of this package
        scripts=[Markup(one) for one in scripts],  # noqa: S704 - of this package, and of Bokeh
        policy=_policy(scripts),
        markup=Markup,
    )


def _own(name: str) -> str:
    return files("smdbg_core.report.html").joinpath("templates", name).read_text(encoding="utf-8")


def _plotting() -> str:
    """Bokeh's core: no widgets, tables, WebGL or MathJax, which these pages do not use."""
    resources = INLINE.clone(components=["bokeh"])
    return "\n".join(resources.js_raw).replace("</script", "<\\/script")


def _policy(scripts: list[str]) -> str:
    """Only the scripts of this page run, and nothing is loaded or sent."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "font-src data:; base-uri 'none'; form-action 'none'"
    )


def _facts(report: Report) -> Iterator[str]:
    """What the run holds, in a line each."""
    run = report.run
    if "trial" in run.has and run.steps:
        modes = ", ".join(f"{found:,} {mode}" for mode, found in run.modes.items())
        yield f"{count(run.steps, 'saved step')}, {run.first_step} to {run.last_step} ({readable(modes)})"
        yield f"{count(run.tensors, 'tensor')}, {count(len(run.workers), 'worker')}"
        if run.ended is False:
            yield "no end marker: still running, or killed"
    if "profiler" in run.has:
        nodes = f" of {', '.join(map(readable, run.nodes))}" if run.nodes else ""
        yield f"profiler output: {count(run.profiler_files, 'file')}{nodes}"
    yield f"smdbg {report.smdbg_version}"


def _sections(report: Report, anchors: dict[str, int]) -> Iterator[Section]:
    """The evidence, in the order of the page."""
    profiled = "profiler" in report.run.has
    made, homes = details_sections(report) if profiled else ({}, {})
    steps = step_section(report)
    if steps is not None:
        # Raw data say more of steps than the figures of a rule; its section takes their place.
        homes = {
            name: [Link(steps.title, steps.key) if link.target == "outliers" else link for link in links]
            for name, links in homes.items()
        }
    fired = sorted(report.fired, key=lambda one: anchors[one.name])
    if fired:
        yield Section("evidence", "Evidence of what fired", [], "One part for each rule that fired.")
        for outcome in fired:
            yield rule_evidence(report, outcome, anchors[outcome.name], homes.get(outcome.name, ()))
    if "trial" in report.run.has:
        yield from heat_sections(report)
        losses = loss_section(report)
        # A boosting run has a section of its own for them.
        if losses is not None and "LossData" not in boosting_documents(report):
            yield losses
    if profiled:
        for section in (
            made["job"],
            made["usage"],
            timeline_section(report) or _absent("timelines", "Utilisation over time"),
            device_section(report) or _absent("devices", "Devices over time"),
            steps or made["outliers"],
            *(made[key] for key in ("phases", "loading", "balance", "spread", "bottlenecks")),
            rules_section(report),
        ):
            if section is not None:
                yield section
    yield from xgboost_sections(report)
    damage = damage_section(report)
    if damage is not None:
        yield damage


def _absent(key: str, title: str) -> Section:
    return Section(key, title, [Text("Absent: there are no raw data of this.", "note")])


def _interest(outcome: Outcome) -> int:
    return ("fired", "error", "clean", "not_evaluated").index(outcome.status)


def _rule(report: Report, outcome: Outcome, anchor: int) -> dict[str, Any]:
    """A rule's meaning and remedy, its parameters and how it ended."""
    summary, matters, remedy = report.documentation.get(outcome.name, ("", "", ""))
    shown = outcome.name if outcome.name == outcome.rule else f"{outcome.name} ({outcome.rule})"
    parameters = [[readable(name), number(value)] for name, value in outcome.parameters.items()]
    return {
        "anchor": f"rule-{anchor}",
        "evidence": f"evidence-{anchor}" if outcome.status == "fired" else "",
        "name": readable(shown),
        "status": outcome.status,
        "summary": readable(summary),
        "matters": sentence(matters),
        "remedy": sentence(remedy),
        "reason": readable(outcome.reason or ""),
        "judged": judge_text(outcome.coverage) if outcome.coverage.points else "",
        "plugin": readable(outcome.plugin),
        "parameters": Table("Parameters", ("Parameter", "Value"), parameters),
        "traceback": readable_lines(outcome.traceback or ""),
        "artifacts": [readable(one) for one in outcome.artifacts],
    }


def readable_lines(text: str) -> str:
    """A text of several lines with what cannot be shown made visible."""
    return "\n".join(map(readable, text.splitlines()))
