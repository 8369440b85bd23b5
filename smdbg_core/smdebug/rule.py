"""`Rule`, from which rules written for smdebug derive."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from smdbg_core.smdebug.exceptions import (
    NoMoreData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdbg_core.smdebug.required_tensors import RequiredTensors
from smdbg_core.smdebug.trial import CustomTrial

__all__ = ["NOT_AT_THIS_STEP", "CustomRule", "invoke_rule"]

NOT_AT_THIS_STEP = (TensorUnavailableForStep, StepUnavailable, TensorUnavailable)
"""What a rule may raise at a step that it cannot judge."""


class CustomRule:
    """A rule that is asked at one global step after the other whether its condition is met.

    Args:
        base_trial: The trial that is judged.
        action_str: Kept, and nothing is done with it: configure actions of smdbg.
        other_trials: Trials to compare with.
    """

    def __init__(
        self,
        base_trial: CustomTrial,
        action_str: str | None = None,
        other_trials: Iterable[CustomTrial] | None = None,
    ) -> None:
        self.base_trial = base_trial
        self.other_trials = other_trials
        self.trials = [base_trial, *(other_trials or ())]
        self.req_tensors = RequiredTensors(base_trial)
        self.logger = logging.getLogger("smdebug")
        self.rule_name = type(self).__name__
        self.action_str = action_str
        self.report: dict[str, Any] = {
            "RuleTriggered": 0,
            "Violations": 0,
            "Details": {},
            "Datapoints": 0,
            "RuleParameters": "",
        }

    def set_required_tensors(self, step: int) -> None:
        """Say what is needed at a step. The default needs nothing."""

    def invoke_at_step(self, step: int) -> bool:
        """Whether the condition is met at a global step."""
        raise NotImplementedError

    def invoke(self, step: int) -> None:
        """Ask at one step.

        Raises:
            RuleEvaluationConditionMet: The condition is met.
        """
        self.base_trial.wait_for_steps([step])
        self.req_tensors.clear()
        self.set_required_tensors(step)
        self.req_tensors.fetch()
        if self.invoke_at_step(step):
            raise RuleEvaluationConditionMet(self.rule_name, step)


def invoke_rule(
    rule_obj: CustomRule,
    start_step: int | None = 0,
    end_step: int | None = None,
    raise_eval_cond: bool = False,
) -> None:
    """Ask at every step, as smdebug's function of that name does.

    Raises:
        NoMoreData: The trial has ended.
        RuleEvaluationConditionMet: If `raise_eval_cond`, at the first step that fires.
    """
    step = start_step or 0
    while end_step is None or step < end_step:
        try:
            rule_obj.invoke(step)
        except NOT_AT_THIS_STEP:
            last = rule_obj.base_trial.last_complete_step
            if step > last:
                raise NoMoreData(step, None, last) from None
        except RuleEvaluationConditionMet as met:
            if raise_eval_cond:
                raise
            if met.end_of_rule:
                return
        step += 1
