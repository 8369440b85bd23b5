"""The verdict: what is wrong, how sure that is, what to do; what was judged and what was not."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from smdbg_core.findings import Finding
from smdbg_core.outcomes import Coverage, Outcome, Report
from smdbg_core.report.html.blocks import Link, Table, count, number, readable, sentence
from smdbg_core.report.html.track_charts import episode_text
from smdbg_core.report.service import SERVICE

__all__ = ["Problem", "Verdict", "coverage_tables", "judge_text", "verdict"]

_ORDER = {"critical": 0, "warning": 1, "info": 2}


class Problem(NamedTuple):
    """A rule that fired, as the top of the page has it."""

    name: str
    summary: str
    where: str
    sure: str
    remedy: str
    severity: str
    evidence: str
    """Anchor of its evidence."""

    rule: str
    """Anchor of its meaning."""


class Verdict(NamedTuple):
    """What the top of the page says."""

    headline: str
    tone: str
    """`fired`, `error`, `clean` or `nothing`."""

    counts: list[tuple[str, int]]
    names: list[Problem]
    """The problems that are in the run itself, not in what another rule found."""

    problems: list[Problem]
    failures: list[tuple[str, str]]


def verdict(report: Report, anchors: dict[str, int]) -> Verdict:
    """What the report says at a glance.

    Args:
        report: The report.
        anchors: Number of each rule instance on the page.
    """
    by_status = {
        status: [one for one in report.outcomes if one.status == status]
        for status in ("fired", "error", "clean", "not_evaluated")
    }
    # A report rule that only says that others fired is no problem of its own.
    fired = sorted(
        by_status["fired"], key=lambda one: (_second_hand(one), _ORDER[one.severity], -_extent(one))
    )
    problems = [_problem(one, report, anchors[one.name]) for one in fired]
    failures = [(readable(one.name), readable(one.reason or "")) for one in by_status["error"]]
    own = sum(not _second_hand(one) for one in fired)
    if fired:
        headline, tone = f"{count(own or len(fired), 'problem')} found", "fired"
    elif by_status["error"]:
        headline, tone = f"{count(len(by_status['error']), 'rule')} failed; nothing else was found", "error"
    elif by_status["clean"]:
        headline, tone = "Nothing wrong was found", "clean"
    else:
        headline, tone = "Nothing could be judged", "nothing"
    labels = {"fired": "fired", "error": "failed", "clean": "clean", "not_evaluated": "not evaluated"}
    counts = [(labels[status], len(found)) for status, found in by_status.items()]
    return Verdict(headline, tone, counts, problems[: own or None], problems, failures)


def _second_hand(outcome: Outcome) -> bool:
    """Whether the findings have no place in the run: they are about other rules."""
    return bool(outcome.findings) and all(
        one.step is None and one.window_start_us is None and one.statistic == "times fired"
        for one in outcome.findings
    )


def _extent(outcome: Outcome) -> float:
    """The share of what was judged that is affected."""
    points = sum(one.count for one in outcome.findings)
    return points / outcome.coverage.points if outcome.coverage.points else 0.0


def _problem(outcome: Outcome, report: Report, anchor: int) -> Problem:
    summary, _, remedy = report.documentation.get(outcome.name, ("", "", ""))
    return Problem(
        name=readable(outcome.name),
        summary=sentence(_condition(summary)),
        where=_where(outcome),
        sure=_sure(outcome),
        remedy=sentence(remedy) or "No advice comes with this rule.",
        severity=outcome.severity,
        evidence=f"evidence-{anchor}",
        rule=f"rule-{anchor}",
    )


def _condition(summary: str) -> str:
    """What is the case where a rule fired, from what it says of when it fires."""
    matched = re.match(r"Fires (?P<at>[^,;]*?)\s*\b(?:when|where|if) (?P<what>.*)", summary, re.DOTALL)
    if matched is None:
        return summary
    return f"{matched['at']}, {matched['what']}" if matched["at"] else matched["what"]


def _where(outcome: Outcome) -> str:
    """The worst finding, and how many others there are."""
    if not outcome.findings:
        return ""
    if outcome.plugin == SERVICE:
        return sentence(outcome.findings[0].message) + "."
    worst = max(outcome.findings, key=_severity)
    subjects = {(one.subject, one.worker, one.node) for one in outcome.findings}
    place = f" on {worst.node}" if worst.node else ""
    text = f"{worst.subject}{place}, {episode_text(worst)}: {worst.message}"
    more = len(subjects) - 1
    text += f" — and {count(more, 'more subject')}" if more else ""
    if outcome.findings_truncated:
        text += f" ({count(outcome.findings_truncated, 'finding')} beyond the cap)"
    return readable(text)


def _severity(one: Finding) -> float:
    return one.count * (1 + math.log10(max(_times_beyond(one), 1)))


def _times_beyond(one: Finding) -> float:
    """How many times the worst value is beyond its limit; 1 where that has no meaning."""
    if one.worst is None or one.limit is None or one.limit <= 0:
        return 1.0
    if not math.isfinite(one.worst) or one.worst < 0:
        return 1.0
    if (one.comparison or ">").startswith("<"):
        return min(one.limit / one.worst, 1e12) if one.worst else 1e12
    return min(one.worst / one.limit, 1e12)


def _sure(outcome: Outcome) -> str:
    """How sure a verdict is: how many points it rests on, how far beyond the limit, what was missing."""
    coverage = outcome.coverage
    if outcome.plugin == SERVICE or not outcome.findings:
        measured = outcome.measurements
        return (
            f"Reported by the service, from {count(measured.datapoints, 'data point')}." if measured else ""
        )
    points = sum(one.count for one in outcome.findings)
    beyond = max(map(_times_beyond, outcome.findings))
    finite = any(one.worst is not None and not math.isfinite(one.worst) for one in outcome.findings)
    worst = max(outcome.findings, key=_times_beyond)
    level = (
        "Sure"
        if points >= 10 or beyond >= 10 or finite
        else "Likely"
        if points > 1 or beyond >= 1.5
        else "A hint"
    )
    at_least = "at least " if outcome.findings_truncated else ""
    text = f"{level}: {at_least}{count(points, 'violation')} in {count(coverage.points, 'judged point')}"
    if worst.worst is not None and worst.limit is not None and worst.statistic:
        text += f"; worst {readable(worst.statistic)} {number(worst.worst)} against {worst.comparison} {number(worst.limit)}"
        if 1.5 <= beyond < 1e12 and worst.limit > 0:
            text += f" ({number(float(f'{beyond:.2g}'))} times beyond)"
    unsure = [f"{count(coverage.non_finite, 'point')} indeterminate"] if coverage.non_finite else []
    skipped = sum(coverage.skipped.values())
    unsure += [f"{count(skipped, 'point')} not judged"] if skipped else []
    return text + (f"; {', '.join(unsure)}" if unsure else "") + "."


def judge_text(coverage: Coverage) -> str:
    """How much was judged."""
    if coverage.windows:
        judged = f"{coverage.series:,} series, {count(coverage.windows, 'window')}"
    elif coverage.steps:
        judged = f"{count(coverage.tensors, 'tensor')}, {count(coverage.steps, 'step')}"
    else:
        judged = count(coverage.points, "point")
    return judged


def coverage_tables(report: Report, anchors: dict[str, int]) -> Iterator[Table]:
    """What was judged and what was not, and why."""
    judged: list[list[str | Link]] = []
    missing: list[list[str | Link]] = []
    for outcome in report.outcomes:
        link = Link(readable(outcome.name), f"rule-{anchors[outcome.name]}")
        if outcome.status in ("fired", "clean"):
            closest = outcome.closest
            near = "–"
            if closest is not None:
                near = f"{closest.statistic} {number(closest.value)} at {closest.subject}; fires at {closest.comparison} {number(closest.limit)}"
            skipped = "; ".join(f"{reason}: {number(n)}" for reason, n in outcome.coverage.skipped.items())
            judged.append(
                [
                    link,
                    outcome.status,
                    judge_text(outcome.coverage),
                    number(outcome.coverage.points),
                    readable(near),
                    readable("; ".join(filter(None, (outcome.reason, skipped)))) or "–",
                ]
            )
        else:
            missing.append([link, outcome.status.replace("_", " "), readable(outcome.reason or "–")])
    if judged:
        head = ("Rule", "Verdict", "Judged", "Points", "Nearest clean point to its limit", "Left out")
        right = (False, False, False, True, False, False)
        yield Table("Judged", head, judged, right, stacked=True)
    if missing:
        yield Table(
            f"Not judged: {count(len(missing), 'rule')}",
            ("Rule", "State", "Why"),
            missing,
            folded=len(missing) > 8,
        )
