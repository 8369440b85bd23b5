"""Recall, precision, false alarms and their Wilson intervals, from verdicts on labelled runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Rate", "Scores", "Verdict", "score", "wilson"]

_Z = 1.959963984540054
"""Of the two-sided 95 % interval."""


class Verdict(NamedTuple):
    """What rules said about a labelled run."""

    fault: str | None
    """The injected fault, `None` for a healthy run."""

    family: str
    fired: frozenset[str]


class Rate(NamedTuple):
    """A share with its 95 % interval."""

    hits: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share itself; NaN of nothing."""
        return self.hits / self.of if self.of else math.nan

    def __str__(self) -> str:
        if not self.of:
            return "–"
        return f"{self.share:.2f} ({self.hits}/{self.of}, {self.low:.2f}–{self.high:.2f})"


def wilson(hits: int, of: int) -> Rate:
    """The Wilson score interval of a share."""
    if not of:
        return Rate(0, 0, 0.0, 1.0)
    share, square = hits / of, _Z**2
    centre = (share + square / (2 * of)) / (1 + square / of)
    reach = _Z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of**2))
    return Rate(hits, of, centre - reach if hits else 0.0, centre + reach if hits < of else 1.0)


class Scores(NamedTuple):
    """All rates of one set of verdicts."""

    recall: Rate
    """Over all faults that a rule is mapped to: runs in which a mapped rule fires."""

    false_alarms: Rate
    """Healthy runs in which anything fires."""

    precision: Rate
    """Of the runs in which anything fires: those in which a rule fires that is mapped to their fault."""

    by_fault: Mapping[str, Rate]
    rule_recall: Mapping[str, Rate]
    """Of the runs with a fault that is mapped to the rule: those in which it fires."""

    rule_false_alarms: Mapping[str, Rate]
    rule_precision: Mapping[str, Rate]
    """Of the runs in which the rule fires: those with a fault that it is mapped to."""

    by_family: Mapping[str, Rate]
    matrix: Mapping[str, Mapping[str, int]]
    """Runs of a fault, by the rules that fired; `healthy` is one of the rows."""


def score(verdicts: Sequence[Verdict], mapped: Mapping[str, tuple[str, ...]], rules: Iterable[str]) -> Scores:
    """All rates.

    Args:
        verdicts: One for each run.
        mapped: By fault the rules that should find it; faults that no rule can see have none.
        rules: Every rule that took part.
    """
    healthy = [one for one in verdicts if one.fault is None]
    visible = [one for one in verdicts if one.fault is not None and mapped[one.fault]]
    alarmed = [one for one in verdicts if one.fired and (one.fault is None or mapped[one.fault])]
    names = list(rules)
    return Scores(
        recall=_rate(visible, lambda one: _found(one, mapped)),
        false_alarms=_rate(healthy, lambda one: bool(one.fired)),
        precision=_rate(alarmed, lambda one: _found(one, mapped)),
        by_fault={
            fault: _rate([one for one in visible if one.fault == fault], lambda one: _found(one, mapped))
            for fault in mapped
        },
        rule_recall={
            rule: _rate(
                [one for one in visible if rule in mapped[one.fault or ""]],
                lambda one, r=rule: r in one.fired,
            )
            for rule in names
        },
        rule_false_alarms={rule: _rate(healthy, lambda one, r=rule: r in one.fired) for rule in names},
        rule_precision={
            rule: _rate(
                [one for one in verdicts if rule in one.fired],
                lambda one, r=rule: one.fault is not None and r in mapped[one.fault],
            )
            for rule in names
        },
        by_family={
            family: _rate([one for one in healthy if one.family == family], lambda one: bool(one.fired))
            for family in dict.fromkeys(one.family for one in healthy)
        },
        matrix={
            fault or "healthy": {
                rule: sum(rule in one.fired for one in verdicts if one.fault == fault) for rule in names
            }
            for fault in (None, *mapped)
        },
    )


def _found(one: Verdict, mapped: Mapping[str, tuple[str, ...]]) -> bool:
    return one.fault is not None and bool(one.fired & set(mapped[one.fault]))


def _rate(verdicts: Sequence[Verdict], hit: Callable[[Verdict], bool]) -> Rate:
    return wilson(sum(hit(one) for one in verdicts), len(verdicts))
