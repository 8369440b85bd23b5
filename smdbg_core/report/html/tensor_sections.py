"""Evidence of rules, and of the trial as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smdbg_core.evidence import Evidence
from smdbg_core.findings import Finding
from smdbg_core.outcomes import Outcome, Report
from smdbg_core.report.html.blocks import (
    Chart,
    Link,
    Links,
    Section,
    Table,
    Text,
    count,
    number,
    readable,
    sentence,
)
from smdbg_core.report.html.track_charts import (
    constant_value,
    episode_text,
    heat_chart,
    judged_chart,
    lines_chart,
)
from smdbg_core.report.service import SERVICE

__all__ = ["damage_section", "heat_sections", "loss_section", "rule_evidence"]

_LISTED = 50
_CHARTS = 3
_MAPS = 6
_FEW = 4
_WANTED = ("mean_abs", "update_ratio", "zero_percent", "non_finite")
"""Statistics whose map says where in a network a fault lives, in this order, fired or not."""

_QUESTIONS = {
    "mean_abs": "Where in the network do gradients vanish or explode?",
    "update_ratio": "Which layers move too much, or not at all?",
    "zero_percent": "Where are tensors all zero?",
    "non_finite": "Where do NaN and infinities appear first?",
}


def rule_evidence(report: Report, outcome: Outcome, number_: int, homes: Sequence[Link] = ()) -> Section:
    """What a fired rule saw: the statistic against its limit, and the findings.

    Args:
        report: The report.
        outcome: Of the rule.
        number_: Its number on the page.
        homes: Sections that show what the rule measured.
    """
    blocks: list[Text | Table | Links | Chart] = []
    evidence: Evidence | None = report.evidence
    judged = evidence.judged.get(outcome.name, []) if evidence is not None else []
    fired = {one.statistic for one in outcome.findings}
    judged = [one for one in judged if one.statistic in fired and one.points.tracks]
    blocks += [judged_chart(one, outcome.findings) for one in judged[:_CHARTS]]
    if len(judged) > _CHARTS:
        names = ", ".join(readable(one.statistic) for one in judged[_CHARTS:])
        blocks.append(Text(f"Not drawn: {names}.", "note"))
    if outcome.plugin == SERVICE:
        said = sentence("; ".join(one.message for one in outcome.findings))
        blocks.append(Text(f"{said}, over {count(outcome.coverage.points, 'data point')}."))
    else:
        blocks.append(_findings(outcome))
    if homes:
        blocks.append(Links("What it measured:", homes))
    if evidence is None and outcome.plugin != SERVICE:
        blocks.append(Text("Points were not recorded; there is no chart.", "note"))
    lead = f"{outcome.severity}; {count(len(outcome.findings) + outcome.findings_truncated, 'finding')}"
    return Section(f"evidence-{number_}", readable(outcome.name), blocks, lead, level=3)


def _findings(outcome: Outcome) -> Table:
    rows = [_row(one) for one in outcome.findings[:_LISTED]]
    total = len(outcome.findings) + outcome.findings_truncated
    shown = f"the first {len(rows)} of {total:,}" if total > len(rows) else f"all {total}"
    caption = f"Findings of {readable(outcome.name)}: {shown}"
    head = ("Subject", "Where", "Points", "First value", "Worst value", "Limit", "Message")
    return Table(
        caption, head, rows, (False, False, True, True, True, True, False), folded=len(rows) > 6, stacked=True
    )


def _row(one: Finding) -> list[str | Link]:
    place = ", ".join(part for part in (one.node, one.worker) if part and part != "worker_0")
    limit = "–" if one.limit is None else f"{one.comparison} {one.limit:g}"
    return [
        readable(f"{one.subject} ({place})" if place else one.subject),
        readable(episode_text(one)),
        number(one.count),
        number(one.value),
        number(one.worst),
        limit,
        readable(one.message),
    ]


def heat_sections(report: Report) -> Iterator[Section]:
    """Where in the network a fault lives: each measured statistic, layer by layer and step by step."""
    evidence: Evidence | None = report.evidence
    if evidence is None or "trial" not in report.run.has:
        return
    fired = {outcome.name for outcome in report.fired}
    maps = [
        (name, one)
        for name, judged in evidence.judged.items()
        for one in judged
        # What few subjects have, losses for one, shows in lines; a map is for the layers of a network.
        if one.points.axis == "step"
        and (one.statistic in _WANTED or (name in fired and len(one.points.tracks) > _FEW))
    ]
    order = {statistic: place for place, statistic in enumerate(_WANTED)}
    maps.sort(key=lambda pair: order.get(pair[1].statistic, len(order)))
    blocks: list[Text | Table | Chart] = []
    for name, one in maps:
        if len(blocks) == _MAPS:
            break
        asked = _QUESTIONS.get(one.statistic, f"Where is {one.statistic} beyond its limit?")
        constant = constant_value(one)
        if constant is not None:
            subjects = count(len(one.points.tracks), "row")
            text = (
                f"{asked} Nowhere ({name}): {one.statistic} is {constant:g} in all {subjects} at every step."
            )
            blocks.append(Text(readable(text)))
            continue
        drawn = heat_chart(one, readable(f"{asked} ({name})"))
        if drawn is not None:
            blocks.append(drawn)
    if blocks:
        lead = "Rows are tensors, columns are steps. ▲ before a name: it violates the limit of the rule."
        yield Section("layers", "Layer by layer", blocks, lead)


def loss_section(report: Report) -> Section | None:
    """Losses and metrics, each mode a line."""
    evidence: Evidence | None = report.evidence
    if evidence is None or evidence.losses is None:
        return None
    drawn = lines_chart(
        evidence.losses, "Is the model learning, and does it hold on new data?", "Loss (no unit)"
    )
    return Section("losses", "Losses", [drawn], "Every tensor of the collections losses and metrics.")


def damage_section(report: Report) -> Section | None:
    """Files that could not be read in full."""
    evidence: Evidence | None = report.evidence
    if evidence is None or not evidence.damage:
        return None
    rows = [[readable(file), readable(problem)] for file, problem in evidence.damage[:200]]
    caption = f"{count(len(evidence.damage), 'damaged file')}; what is readable of them was judged"
    return Section(
        "damage", "Damaged files", [Table(caption, ("File", "First problem"), rows, folded=len(rows) > 10)]
    )
