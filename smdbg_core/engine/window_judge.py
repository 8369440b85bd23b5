"""Judging profiler output, scan window by scan window."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec

from smdbg_core.engine.judge import Judge
from smdbg_core.engine.scan_windows import ScanWindows
from smdbg_core.outcomes import Measurements
from smdbg_core.reads import ScanReads
from smdbg_core.rule import ProfilerRule
from smdbg_core.runs.profiler import ScanWindow

__all__ = ["WindowJudge"]


class WindowJudge(Judge[ProfilerRule]):
    """A profiler rule judging profiler output.

    Attributes:
        reads: What the rule reads.
    """

    nothing_in_range: ClassVar = "no scan window has what the rule reads"

    def __init__(
        self, name: str, identity: tuple[str, str], rule: ProfilerRule, *others: Any, **options: Any
    ) -> None:
        super().__init__(name, identity, rule, *others, **options)
        declared = rule.reads()
        self.reads = (declared,) if isinstance(declared, ScanReads) else declared
        self._seen: ScanWindows | None = None
        self._triggered = 0
        self._violations = 0

    def attach(self, windows: ScanWindows) -> None:
        """Tell where the windows come from: it knows in the end what there was to read."""
        self._seen = windows

    def complaint(self) -> str | None:
        """What the rule needs and the profiler output does not have."""
        if self._seen is None:
            return None
        for reads in self.reads:
            if reads.optional:
                continue
            missing = sorted(set(reads.series) - self._seen.measures)
            if missing:
                return f"not measured: no samples of {', '.join(missing)}"
            if reads.phases and not self._met(reads):
                of = "" if "." in reads.phases else f" of a phase like {' or '.join(reads.phases)}"
                return f"not recorded: no framework events{of}"
        if not any(set(reads.series) & self._seen.measures or self._met(reads) for reads in self.reads):
            series = ", ".join(dict.fromkeys(name for reads in self.reads for name in reads.series))
            return f"not measured: no samples of {series}" if series else None
        return None

    def _met(self, reads: ScanReads) -> bool:
        """Whether there are events of a phase that is read."""
        phases = self._seen.phases if self._seen is not None else ()
        return any(re.search(pattern, phase) for pattern in reads.phases for phase in phases)

    def lack(self) -> str | None:
        """Missing is not low: a rule that lacks a series is not clean."""
        return self.complaint()

    def _concerns(self, window: ScanWindow) -> bool:
        """Whether the window has samples for the rule, or events that it cannot do without.

        Other rules may read more.
        """
        needed = [reads for reads in self.reads if not reads.optional] or self.reads
        series = tuple(name for reads in self.reads for name in reads.series)
        if series and window.series(*series):
            return True
        phases = [phase for reads in needed for phase in reads.phases]
        return bool(phases) and bool(
            window.events(lambda phase: any(re.search(pattern, phase) for pattern in phases))
        )

    def window(self, window: ScanWindow) -> bool:
        """Judge one window; whether anything was found."""
        if self.done or not self._concerns(window):
            return False
        violations = self.tally.fired
        judged, fired = self._evaluate(window, f"in the window from {window.start}")
        if judged:
            self.tally.windows.add(window.start)
        self._triggered += fired
        self._violations += self.tally.fired - violations
        return fired

    def measurements(self) -> Measurements:
        """What the rule measured; where it does not say, what the engine counted."""
        measured = self.rule.measurements() or Measurements(
            triggered=self._triggered, violations=self._violations, datapoints=self.tally.points
        )
        if measured.parameters:
            return measured
        declared = type(self.rule).__parameters__
        known = {
            name: value
            for name, value in self.rule.parameters.items()
            if name in declared and not declared[name].meta.local
        }
        return msgspec.structs.replace(measured, parameters=known)
