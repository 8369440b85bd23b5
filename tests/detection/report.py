"""The tables of a measurement, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from smdbg_core import Registry
from tests.detection.faults import FAULTS
from tests.detection.judging import SETTINGS, UNMEASURED
from tests.detection.metrics import Rate, Scores, score
from tests.detection.runs import Judged

__all__ = ["embed", "recommended", "render", "to_json"]

_BEGIN, _END = "<!-- begin: written by `make detection` -->", "<!-- end -->"
_OWNER = "smdbg-builtin-rules"


def render(judged: Judged, split: str) -> str:
    """Every table as Markdown."""
    return "\n".join(_lines(_scores(judged), judged, split)) + "\n"


def embed(document: str, tables: str) -> str:
    """A document with the tables between its two markers.

    Raises:
        ValueError: It has no markers.
    """
    before, begin, rest = document.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        message = f"no {_BEGIN} and {_END} in the document"
        raise ValueError(message)
    return f"{before}{_BEGIN}\n\n{tables}\n{_END}{after}"


def recommended() -> str:
    """The table of what the preset sets."""
    registry = Registry()
    rows = []
    for spec in (one for one in registry.rules() if one.distribution == _OWNER):
        rule = registry.load(spec).object
        for name, value in rule.presets.get("recommended", {}).items():
            meta = rule.__parameters__[name].meta
            default = rule.__parameters__[name].default
            local = " †" if meta.local else ""
            rows.append([spec.name, f"`{name}`{local}", _value(default), _value(value), meta.description])
    table = _table(["rule", "parameter", "default", "recommended", "meaning"], rows)
    return "\n".join([*table, "† not known to SageMaker; it stays out of requests."])


def to_json(judged: Judged, split: str) -> str:
    """The same numbers for machines."""
    document = {
        "split": split,
        "dropped": dict(judged.dropped),
        "map": {fault.name: fault.rules for fault in FAULTS},
        "settings": {name: _plain(scores) for name, scores in _scores(judged).items()},
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _scores(judged: Judged) -> dict[str, Scores]:
    mapped = {fault.name: fault.rules for fault in FAULTS}
    rules = [spec.name for spec in Registry().rules() if spec.distribution == _OWNER]
    named = ((setting or "defaults", one) for setting, one in zip(SETTINGS, judged.verdicts, strict=True))
    return {name: score(verdicts, mapped, rules) for name, verdicts in named}


def _plain(scores: Scores) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, Rate):
            return {"hits": value.hits, "of": value.of, "low": value.low, "high": value.high}
        return {key: plain(one) for key, one in value.items()} if isinstance(value, dict) else value

    return {name: plain(value) for name, value in scores._asdict().items()}


def _lines(scores: dict[str, Scores], judged: Judged, split: str) -> Iterator[str]:
    settings = list(scores)
    last = scores[settings[-1]]
    yield f"### Overall ({split} split)"
    yield ""
    yield from _table(
        ["", *settings],
        [
            ["recall", *(str(one.recall) for one in scores.values())],
            ["precision", *(str(one.precision) for one in scores.values())],
            ["false alarms on healthy runs", *(str(one.false_alarms) for one in scores.values())],
        ],
    )
    dropped = ", ".join(f"{name} {number}" for name, number in sorted(judged.dropped.items()))
    yield f"Runs that the oracle could not label, and that were left out: {dropped or 'none'}."
    yield ""
    yield "### What the preset sets"
    yield ""
    yield recommended()
    yield ""
    yield "### By fault"
    yield ""
    yield from _table(
        ["fault", "rules that should find it", *(f"found, {name}" for name in settings)],
        (
            [fault.name, ", ".join(fault.rules), *(str(one.by_fault[fault.name]) for one in scores.values())]
            for fault in FAULTS
            if fault.rules
        ),
    )
    yield "### What no rule can see"
    yield ""
    yield from _table(
        ["fault", *(f"runs in which anything fired, {name}" for name in settings)],
        (
            [fault.name, *(_incidental(one.matrix[fault.name]) for one in scores.values())]
            for fault in FAULTS
            if not fault.rules
        ),
    )
    yield "### By rule"
    yield ""
    for name, one in scores.items():
        yield f"With {name}:"
        yield ""
        yield from _table(
            ["rule", "recall", "precision", "false alarms"],
            (
                [
                    rule,
                    str(one.rule_recall[rule]),
                    str(one.rule_precision[rule]),
                    str(one.rule_false_alarms[rule]),
                ]
                for rule in one.rule_recall
                if rule not in UNMEASURED
            ),
        )
    yield "### False alarms by family of healthy runs"
    yield ""
    yield from _table(
        ["family", *settings],
        ([family, *(str(one.by_family[family]) for one in scores.values())] for family in last.by_family),
    )
    yield "### Faults by rules"
    yield ""
    yield "Runs in which each rule fired; **bold** where it should."
    yield ""
    for name, one in scores.items():
        yield f"With {name}:"
        yield ""
        yield from _matrix(one)


def _matrix(scores: Scores) -> Iterator[str]:
    mapped = {fault.name: fault.rules for fault in FAULTS}
    rules = [rule for rule in scores.rule_recall if rule not in UNMEASURED]
    rows = []
    for fault, counts in scores.matrix.items():
        cells = [str(counts[rule]) if counts[rule] else "" for rule in rules]
        should = mapped.get(fault, ())
        marked = [
            f"**{cell or 0}**" if rule in should else cell for rule, cell in zip(rules, cells, strict=True)
        ]
        rows.append([fault, *marked])
    yield from _table(["fault", *map(_short, rules)], rows)
    yield "; ".join(f"{_short(rule)} {rule}" for rule in rules if _short(rule) != rule) + "."
    yield ""


def _short(rule: str) -> str:
    """The capitals of a name of several words."""
    capitals = "".join(letter for letter in rule if letter.isupper())
    return capitals if len(capitals) > 1 else rule


def _value(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else value
    return "none" if text in (None, "") else f"`{text}`".replace("|", "\\|")


def _incidental(counts: dict[str, int]) -> str:
    fired = [f"{rule} {number}" for rule, number in counts.items() if number]
    return ", ".join(fired) or "none"


def _table(head: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "| " + " | ".join("---" for _ in head) + " |"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""
