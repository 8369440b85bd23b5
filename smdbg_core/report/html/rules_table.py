"""The table of profiler rules: what each looks for, what to do, how often it triggered."""

from __future__ import annotations

from smdbg_core.outcomes import Outcome, Report
from smdbg_core.report.html.blocks import Section, Table, number, readable, sentence

__all__ = ["rules_section"]


def rules_section(report: Report) -> Section | None:
    """All profiler rules: what each looks for, what to do, how often it triggered, over how much."""
    rows = []
    measured = [one for one in report.outcomes if one.measurements is not None]
    for outcome in sorted(measured, key=lambda one: -_triggered(one)):
        numbers = outcome.measurements
        if numbers is None:
            continue
        summary, _, remedy = report.documentation.get(outcome.name, ("", "", ""))
        given = "; ".join(f"{name}: {number(value)}" for name, value in numbers.parameters.items())
        judged = outcome.status in ("fired", "clean")
        rows.append(
            [
                readable(outcome.name),
                readable(summary) or "–",
                sentence(remedy) or "–",
                number(numbers.triggered) if judged else outcome.status.replace("_", " "),
                number(numbers.datapoints),
                readable(given) or "–",
            ]
        )
    if not rows:
        return None
    head = ("Rule", "Description", "Recommendation", "Times triggered", "Data points", "Parameters")
    first = (
        f"{rows[0][0]} triggered most often."
        if rows[0][3] not in ("0", "not evaluated")
        else "No rule triggered."
    )
    return Section(
        "rules-table",
        "Profiler rules",
        [Table(first, head, rows, (False, False, False, True, True, False), stacked=True)],
    )


def _triggered(outcome: Outcome) -> int:
    return outcome.measurements.triggered if outcome.measurements is not None else 0
