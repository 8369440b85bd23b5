"""The test kit for plugins: builders of data, and checks of the whole contract."""

from __future__ import annotations

from smdbg_core.testing.actions import ActionRecorder, action_checks, check_action, example_event
from smdbg_core.testing.clock import FakeClock
from smdbg_core.testing.contract import Check, ContractError
from smdbg_core.testing.profiler_builder import T0, ProfilerBuilder
from smdbg_core.testing.rules import Example, check_rule, rule_checks
from smdbg_core.testing.trial_builder import TrialBuilder

__all__ = [
    "ActionRecorder",
    "Check",
    "ContractError",
    "Example",
    "FakeClock",
    "ProfilerBuilder",
    "T0",
    "TrialBuilder",
    "action_checks",
    "check_action",
    "check_rule",
    "example_event",
    "rule_checks",
]
