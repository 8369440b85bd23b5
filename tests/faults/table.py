"""The fault table: a row for each kind of fault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.faults.damages import Case
from tests.faults.sandbox import Ended

__all__ = ["Row", "show"]


class Row:
    """Counts of one kind of fault."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.cases = self.judged = self.costly = self.named = 0
        self.crashes = self.hangs = self.wrong = 0
        self.growth = self.seconds = 0.0

    def add(self, case: Case, ended: Ended, problems: Sequence[str]) -> None:
        """Count one case."""
        self.cases += 1
        self.hangs += ended.hung
        self.crashes += ended.problem is not None and not ended.hung
        self.wrong += bool(problems)
        self.growth = max(self.growth, ended.growth)
        self.seconds = max(self.seconds, ended.seconds)
        if ended.problem is None:
            self.judged += bool(ended.result.points)
            lost = bool(case.subject.points - ended.result.points)
            texts = (*ended.result.warnings, ended.result.refused or "")
            self.costly += lost
            self.named += lost and case.is_named(texts)


def show(rows: Iterable[Row]) -> str:
    """The table, as Markdown."""
    rows = list(rows)
    total = Row("all")
    for row in rows:
        for field in ("cases", "judged", "costly", "named", "crashes", "hangs", "wrong"):
            setattr(total, field, getattr(total, field) + getattr(row, field))
        total.growth, total.seconds = max(total.growth, row.growth), max(total.seconds, row.seconds)
    head = (
        "kind of fault",
        "cases",
        "judged",
        "cost data",
        "named",
        "crashes",
        "hangs",
        "wrong",
        "peak MiB",
        "longest s",
    )
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for row in (*rows, total):
        counts = (row.cases, row.judged, row.costly, row.named, row.crashes, row.hangs, row.wrong)
        figures = (f"{row.growth:.0f}", f"{row.seconds:.2f}")
        lines.append(f"| {row.kind} | " + " | ".join([*map(str, counts), *figures]) + " |")
    return "\n".join(lines)
