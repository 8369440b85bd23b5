"""Judging tensors, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from smdbg_core.engine.judge import Judge
from smdbg_core.engine.plan import RulePlan
from smdbg_core.rule import TensorRule
from smdbg_core.runs.trial import Trial
from smdbg_core.runs.views import Point, StepView, TensorView

__all__ = ["TensorJudge"]


class TensorJudge(Judge[TensorRule]):
    """A tensor rule judging a trial.

    Args:
        plan: The planned rule.
        others: What every judge takes.
    """

    nothing_in_range: ClassVar = "no step in range has what the rule reads"

    def __init__(
        self, name: str, identity: tuple[str, str], plan: RulePlan, *others: Any, **options: Any
    ) -> None:
        super().__init__(name, identity, plan.rule, *others, **options)
        self.plan = plan
        self._seen_modes = [set[str]() for _ in plan.reads]

    def complaint(self) -> str | None:
        """What the rule needs and the trial does not have."""
        return self.plan.complaint()

    def step(self, trial: Trial, point: Point, groups: Mapping[str, Sequence[TensorView]]) -> bool:
        """Judge one step; whether anything was found."""
        if self.done:
            return False
        groups = self._preferred(point, groups)
        if not any(groups.values()):
            return False
        view = StepView(trial, point, groups)
        judged, fired = self._evaluate(view, f"at step {point.step}")
        if judged:
            self.tally.steps.add(point.step)
        return fired

    def _preferred(
        self, point: Point, groups: Mapping[str, Sequence[TensorView]]
    ) -> Mapping[str, Sequence[TensorView]]:
        """Leave groups out whose preferred mode has been seen and is not this step's."""
        if all(reads.modes is None or len(reads.modes) == 1 for reads in self.plan.reads):
            return groups
        kept = dict(groups)
        for reads, seen in zip(self.plan.reads, self._seen_modes, strict=True):
            if reads.modes is None or not groups[reads.group]:
                continue
            seen.add(point.mode)
            if next(mode for mode in reads.modes if mode in seen) != point.mode:
                kept[reads.group] = ()
        return kept
