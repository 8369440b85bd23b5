"""OverallFrameworkMetrics: where the framework spent its time, for the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from smdbg_core import Finding, Measurements, ProfilerRule, RuleRun, ScanReads, ScanWindow, Step
from smdbg_profiler_rules.breakdown import Breakdown

__all__ = ["OverallFrameworkMetrics"]

_APART = 4096
"""Pauses between steps that may still be filled by a step that began before them."""


class OverallFrameworkMetrics(ProfilerRule):
    """Measures the time of training phases, operators and categories; never fires.

    Why it matters: it tells whether time goes into training, evaluation, data loading or something else.
    What to do: nothing; read it beside the verdicts of the other rules. Operators nest, so that their
    shares count some time twice.
    """

    def reads(self) -> ScanReads:
        """All framework events."""
        return ScanReads(phases=(".",))

    def start(self, run: RuleRun) -> None:
        """Totals, and the time that steps cover."""
        self._breakdown = Breakdown()
        self._covered: dict[str, _Covered] = {}

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Take in the window."""
        self._breakdown.add(window.events())
        for step in window.steps():
            self._covered.setdefault(step.worker, _Covered()).add([step])
        for events in window.events():
            self.observe(window.place(f"{events.source} events", node=events.node, worker=events.worker))
        yield from ()

    def measurements(self) -> Measurements:
        """Shares of phases, operators and categories."""
        between = sum(covered.pauses for covered in self._covered.values())
        return Measurements(details=self._breakdown.details(between if self._covered else None))


class _Covered:
    """The time that the steps of one worker cover together: the union of their intervals."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._last = 0
        self._settled = 0
        self._intervals: list[tuple[int, int]] = []

    @property
    def pauses(self) -> int:
        """Microseconds from the first start to the last end in which no step ran."""
        if self._first is None:
            return 0
        covered = self._settled + sum(end - start for start, end in self._intervals)
        return max(0, self._last - self._first - covered)

    def add(self, steps: Iterable[Step]) -> None:
        for step in steps:
            start, end = step.start, step.end
            self._first = start if self._first is None else min(self._first, start)
            self._last = max(self._last, end)
            # Steps come in order of their ends: only the latest intervals can touch this one.
            later = []
            while self._intervals and self._intervals[-1][1] >= start:
                known = self._intervals.pop()
                if known[0] > end:
                    later.append(known)
                else:
                    start, end = min(start, known[0]), max(end, known[1])
            self._intervals.append((start, end))
            self._intervals += reversed(later)
            if len(self._intervals) > 2 * _APART:
                settled = self._intervals[:_APART]
                self._settled += sum(end - start for start, end in settled)
                del self._intervals[:_APART]
