"""StepOutlier: steps that take far longer than the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated, Any

import numpy as np

from smdbg_core import (
    Events,
    Finding,
    Measurements,
    Meta,
    ProfilerRule,
    RuleRun,
    ScanReads,
    ScanWindow,
    Step,
    constraint,
)
from smdbg_profiler_rules.breakdown import Breakdown
from smdbg_profiler_rules.step_durations import StepDurations

__all__ = ["StepOutlier"]

_MODES = ("TRAIN", "EVAL", "PREDICT", "GLOBAL")
_MIN_STEPS = 100
"""Steps beyond which the spread of a mode is judged; the service has the same fixed number."""


class StepOutlier(ProfilerRule):
    """Fires when many steps last much longer than is usual for their worker and mode.

    Why it matters: stragglers slow every synchronous worker, and often come from data loading or from
    checkpoints.
    What to do: look at what else happened during those steps: bottleneck rules, checkpoints, evaluation.
    """

    stddev: Annotated[
        float, Meta(gt=0, description="Standard deviations above the mean beyond which a step is an outlier.")
    ] = 3
    mode: Annotated[
        str | None, Meta(description="Only steps of this mode: TRAIN, EVAL, PREDICT or GLOBAL.")
    ] = None
    n_outliers: Annotated[int, Meta(gt=0, unit="steps", description="More outliers than this fire.")] = 10
    warmup_steps: Annotated[
        int, Meta(ge=0, unit="steps", local=True, description="First steps of each mode to leave out.")
    ] = 0

    @constraint("mode")
    def _mode_is_known(self) -> str | None:
        if self.mode is not None and self._wanted() not in _MODES:
            return f"mode={self.mode!r} is none of {', '.join(_MODES)}"
        return None

    def _wanted(self) -> str | None:
        """The mode without what the framework puts before it."""
        return (
            None if self.mode is None else self.mode.upper().removeprefix("STEP:").removeprefix("MODEKEYS.")
        )

    def reads(self) -> tuple[ScanReads, ...]:
        """Steps; other events for the breakdown."""
        return ScanReads(phases=("^Step:ModeKeys",)), ScanReads(phases=(".",), optional=True)

    def start(self, run: RuleRun) -> None:
        """Durations for each worker and mode."""
        self._durations: dict[tuple[str, str], StepDurations] = {}
        self._nodes: dict[str, str] = {}
        self._fired = self._violations = self._steps = 0
        self._breakdown = Breakdown()
        self._slow = np.empty((2, 0), np.int64)

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Take in the steps, then judge every worker and mode."""
        steps = window.steps()
        self._steps += len(steps)
        wanted = self._wanted()
        now: dict[tuple[str, str], list[Step]] = {}
        for (worker, node), group in groupby(steps, lambda step: (step.worker, step.node)):
            self._nodes[worker] = node
            for step in group:
                if wanted in (None, step.mode):
                    now.setdefault((worker, step.mode), []).append(step)
        for place, of_mode in now.items():
            self._durations.setdefault(place, StepDurations(self.warmup_steps)).add(of_mode)
        for (worker, mode), durations in self._durations.items():
            yield from self._judge(window, worker, mode, durations, now.get((worker, mode), []))
        self._breakdown.add(self._beside_outliers(window))

    def _judge(
        self, window: ScanWindow, worker: str, mode: str, durations: StepDurations, now: list[Step]
    ) -> Iterator[Finding]:
        place = window.place(f"{mode} steps", node=self._nodes[worker], worker=worker)
        if durations.size <= _MIN_STEPS:
            self.skip(place, f"fewer {mode} steps", durations.size, _MIN_STEPS + 1)
            return
        limit = self._limit(durations)
        outliers = durations.outliers(limit)
        message = (
            f"{outliers} of {durations.size} steps last longer than {limit:.4g} s; "
            f"the mean is {durations.mean:.4g} s, the longest {durations.all.max / 1e6:.4g} s"
        )
        found = self.judge(place, "outliers", outliers, ">", self.n_outliers, message=message)
        if found:
            self._fired += 1
            self._violations += outliers
            slow = [(step.start, step.end) for step in now if step.seconds > limit]
            if slow:
                self._slow = np.concatenate([self._slow, np.array(slow, np.int64).T], axis=1)
        yield from found

    def _limit(self, durations: StepDurations) -> float:
        return durations.mean + self.stddev * durations.deviation

    def _beside_outliers(self, window: ScanWindow) -> Iterator[Events]:
        """Events that overlap an outlier of a window in which the rule fired."""
        starts, ends = np.sort(self._slow[0]), np.sort(self._slow[1])
        if not len(starts):
            return
        for events in window.events():
            begun = np.searchsorted(starts, events.ends, side="right")
            over = np.searchsorted(ends, events.starts, side="left")
            rows = begun > over
            if rows.any():
                yield events.take(rows)

    def measurements(self) -> Measurements:
        """Statistics of each worker and, once it fired, what went on beside its outliers."""
        shown: dict[str, dict[str, Any]] = {}
        order: dict[str, tuple[int, int]] = {}
        for (worker, mode), durations in self._durations.items():
            if durations.size <= _MIN_STEPS:
                continue
            block = durations.details(self._limit(durations), f"Step:ModeKeys.{mode}")
            # Of each worker the mode with most outliers is shown.
            rank = block["number_of_outliers"], durations.size
            if rank > order.get(worker, (-1, -1)):
                shown[worker], order[worker] = block, rank
        details: dict[str, Any] = {"step_details": shown}
        if self._fired:
            details |= self._breakdown.details()
        return Measurements(
            triggered=self._fired,
            violations=self._violations,
            datapoints=self._steps,
            details=details,
            # The service names the deviations twice.
            parameters={
                "threshold": self.stddev,
                "mode": self.mode,
                "n_outliers": self.n_outliers,
                "stddev": self.stddev,
            },
        )
