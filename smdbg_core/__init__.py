"""smdbg: the open rule engine for debugging and profiling machine-learning training.

What is imported from here is the public interface; see `docs/architecture.md`. Names are loaded
when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdbg_core.action import Action, ActionResult, Event
    from smdbg_core.capture import Capture
    from smdbg_core.declaration import Meta, Regex, RunURI
    from smdbg_core.discovery.registry import Registry
    from smdbg_core.engine.action_roster import ActionConfig
    from smdbg_core.engine.clock import Clock
    from smdbg_core.engine.evaluate import evaluate
    from smdbg_core.engine.follow import follow
    from smdbg_core.engine.roster import RuleConfig
    from smdbg_core.errors import (
        ActionError,
        ConfigError,
        CorruptDataError,
        DataAccessError,
        DataError,
        MissingDataError,
        ParameterError,
        ParameterProblem,
        PluginConflictError,
        PluginContractError,
        PluginError,
        PluginExecutionError,
        PluginIncompatibleError,
        PluginLoadError,
        SmdbgError,
        UnknownOutcomeError,
        Veto,
    )
    from smdbg_core.findings import Artifact, Finding
    from smdbg_core.hookspecs import hookimpl
    from smdbg_core.outcomes import Coverage, Measurements, Outcome, Report, RunSummary
    from smdbg_core.parameters import constraint
    from smdbg_core.reads import Compare, Reads, ScanReads
    from smdbg_core.report.document import outcome_document
    from smdbg_core.rule import (
        ALL_FRAMEWORKS,
        DEEP_LEARNING,
        XGBOOST,
        Collection,
        ProfilerRule,
        Rule,
        TensorRule,
    )
    from smdbg_core.rule_run import RuleRun
    from smdbg_core.runs.profiler import (
        Events,
        MetricsWriter,
        Place,
        Profiler,
        ScanWindow,
        Series,
        Snapshots,
        Step,
        TimelineWriter,
    )
    from smdbg_core.runs.run import Run, open_run
    from smdbg_core.runs.trial import Mode, StepWriter, Tensor, Trial, TrialWriter, open_trial
    from smdbg_core.runs.views import AcrossWorkers, StepView, TensorView
    from smdbg_core.stats import statistic
    from smdbg_core.version import __version__

__all__ = [
    "ALL_FRAMEWORKS",
    "AcrossWorkers",
    "Action",
    "ActionConfig",
    "ActionError",
    "ActionResult",
    "Artifact",
    "Capture",
    "Clock",
    "Collection",
    "Compare",
    "ConfigError",
    "CorruptDataError",
    "Coverage",
    "DEEP_LEARNING",
    "DataAccessError",
    "DataError",
    "Event",
    "Events",
    "Finding",
    "Measurements",
    "Meta",
    "MetricsWriter",
    "MissingDataError",
    "Mode",
    "Outcome",
    "ParameterError",
    "ParameterProblem",
    "Place",
    "PluginConflictError",
    "PluginContractError",
    "PluginError",
    "PluginExecutionError",
    "PluginIncompatibleError",
    "PluginLoadError",
    "Profiler",
    "ProfilerRule",
    "Reads",
    "Regex",
    "Registry",
    "Report",
    "Rule",
    "RuleConfig",
    "RuleRun",
    "Run",
    "RunSummary",
    "RunURI",
    "ScanReads",
    "ScanWindow",
    "Series",
    "SmdbgError",
    "Snapshots",
    "Step",
    "StepView",
    "StepWriter",
    "Tensor",
    "TensorRule",
    "TensorView",
    "TimelineWriter",
    "Trial",
    "TrialWriter",
    "UnknownOutcomeError",
    "Veto",
    "XGBOOST",
    "__version__",
    "constraint",
    "evaluate",
    "follow",
    "hookimpl",
    "open_run",
    "open_trial",
    "outcome_document",
    "statistic",
]

_HOMES = {
    "smdbg_core.action": (
        "Action",
        "ActionResult",
        "Event",
    ),
    "smdbg_core.capture": ("Capture",),
    "smdbg_core.declaration": (
        "Meta",
        "Regex",
        "RunURI",
    ),
    "smdbg_core.discovery.registry": ("Registry",),
    "smdbg_core.engine.action_roster": ("ActionConfig",),
    "smdbg_core.engine.clock": ("Clock",),
    "smdbg_core.engine.evaluate": ("evaluate",),
    "smdbg_core.engine.follow": ("follow",),
    "smdbg_core.engine.roster": ("RuleConfig",),
    "smdbg_core.errors": (
        "ActionError",
        "ConfigError",
        "CorruptDataError",
        "DataAccessError",
        "DataError",
        "MissingDataError",
        "ParameterError",
        "ParameterProblem",
        "PluginConflictError",
        "PluginContractError",
        "PluginError",
        "PluginExecutionError",
        "PluginIncompatibleError",
        "PluginLoadError",
        "SmdbgError",
        "UnknownOutcomeError",
        "Veto",
    ),
    "smdbg_core.findings": (
        "Artifact",
        "Finding",
    ),
    "smdbg_core.hookspecs": ("hookimpl",),
    "smdbg_core.outcomes": (
        "Coverage",
        "Measurements",
        "Outcome",
        "Report",
        "RunSummary",
    ),
    "smdbg_core.parameters": ("constraint",),
    "smdbg_core.reads": (
        "Compare",
        "Reads",
        "ScanReads",
    ),
    "smdbg_core.report.document": ("outcome_document",),
    "smdbg_core.rule": (
        "ALL_FRAMEWORKS",
        "Collection",
        "DEEP_LEARNING",
        "ProfilerRule",
        "Rule",
        "TensorRule",
        "XGBOOST",
    ),
    "smdbg_core.rule_run": ("RuleRun",),
    "smdbg_core.runs.profiler": (
        "Events",
        "MetricsWriter",
        "Place",
        "Profiler",
        "ScanWindow",
        "Series",
        "Snapshots",
        "Step",
        "TimelineWriter",
    ),
    "smdbg_core.runs.run": (
        "Run",
        "open_run",
    ),
    "smdbg_core.runs.trial": (
        "Mode",
        "StepWriter",
        "Tensor",
        "Trial",
        "TrialWriter",
        "open_trial",
    ),
    "smdbg_core.runs.views": (
        "AcrossWorkers",
        "StepView",
        "TensorView",
    ),
    "smdbg_core.stats": ("statistic",),
    "smdbg_core.version": ("__version__",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
