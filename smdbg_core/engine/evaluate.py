"""`evaluate`: from a path and rules to a report; what the command line calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smdbg_core.discovery.hooks import Hooks
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.action_roster import ActionRoster, AskedAction
from smdbg_core.engine.dispatch import Dispatcher, Watch
from smdbg_core.engine.evaluation import Evaluation
from smdbg_core.engine.journal import state_folder
from smdbg_core.engine.roster import Roster, RosterEntry, RuleConfig
from smdbg_core.errors import ConfigError, ParameterError
from smdbg_core.outcomes import Report, RunSummary
from smdbg_core.rule import Documentation, Rule
from smdbg_core.runs.run import Run
from smdbg_core.version import __version__

if TYPE_CHECKING:
    from smdbg_core.findings import Finding

__all__ = ["evaluate"]


def evaluate(
    run: str | Path | Run,
    rules: Iterable[str | Rule | type[Rule] | RuleConfig] | None = None,
    *,
    actions: Iterable[AskedAction] = (),
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    preset: str | None = None,
    registry: Registry | None = None,
    executor: Executor | None = None,
    steps: tuple[int | None, int | None] = (None, None),
    mode: str | None = None,
    period: tuple[float | None, float | None] = (None, None),
    stop_on_first: bool = False,
    output: Path | None = None,
    max_findings: int = 100,
    dry_run: bool = False,
    state: str | Path | None = None,
    job_name: str | None = None,
    on_finding: Callable[[str, Finding], None] | None = None,
    on_step: Callable[[int, int], None] | None = None,
    evidence: bool = False,
) -> Report:
    """Judge a run with rules.

    Args:
        run: Path of a run, or one that is already open.
        rules: Names, classes, objects or configurations; by default every registered rule that
            applies to the data.
        actions: What is done when a rule fires, for every rule: names, classes, objects or configurations.
        parameters: Values for rules and actions that are not configured otherwise:
            `{"AllZero": {"threshold": 90}}`.
        preset: Name of a preset, such as `recommended`: values that rules bring along. Those given
            in `parameters` or in a configuration count more; objects stay as they are.
        registry: Where plugins are found; by default those that are installed.
        executor: Where tensors are measured; by default in this thread. The result is the same.
        steps: Global steps to judge, `begin <= step < end`.
        mode: Judge only steps of this mode.
        period: Of profiler output, judge only scan windows that begin in `begin <= time < end`, seconds
            since the epoch.
        stop_on_first: End as soon as anything fires.
        output: Folder for the files that rules write; without one nothing is written.
        max_findings: How many findings each rule keeps; further ones are counted.
        dry_run: Say what actions would send; send nothing.
        state: Folder of the journal of actions, made when one is dispatched; by default `smdbg` below the
            XDG state folder.
        job_name: SageMaker's name of the training job, for actions.
        on_finding: Told the rule instance and each finding at once.
        on_step: Told how many steps of how many are judged.
        evidence: Keep, in bounded memory, what reports show beside the verdicts: the points that rules
            judged, losses, system metrics, step durations.

    Returns:
        The outcome of every rule.

    Raises:
        ConfigError: Something asked for makes no sense; nothing was judged.
        PluginError: A plugin that was asked for is broken.
        DataError: The run cannot be read.
    """
    registry = registry or Registry()
    asked = None if rules is None else list(rules)
    own = [action for one in asked or () if isinstance(one, RuleConfig) for action in one.actions]
    with registry.active():
        action_roster = ActionRoster(registry, actions, own, parameters)
        roster = Roster(registry, asked, action_roster.other_parameters, action_roster.problems, preset)
    hooks = Hooks(registry.load_hooks())
    uri = run.uri if isinstance(run, Run) else str(run)
    _validate(hooks, roster.entries, uri)
    opened = run if isinstance(run, Run) else hooks.open_run(uri, steps=None)
    folder = Path(state) if state is not None else state_folder()
    dispatcher = Dispatcher(hooks, opened.uri, job_name=job_name, state=folder, dry_run=dry_run)

    def watch(entry: RosterEntry) -> Watch | None:
        severity, own = entry.rule.severity, action_roster.of(entry.actions)
        return dispatcher.watch(entry.name, entry.rule_name, entry.plugin, severity, own)

    # What overflows or is NaN in the data is for rules to find, not for NumPy to warn of.
    with contextlib.closing(dispatcher), np.errstate(all="ignore"):
        evaluation = Evaluation(
            opened, roster.entries, hooks, max_findings, on_finding, watch, evidence=evidence
        )
        evaluation.judge(executor, steps, mode.upper() if mode else None, stop_on_first, on_step, period)
        outcomes = evaluation.outcomes(output)
    warnings = [
        *roster.warnings,
        *registry.problems(),
        *opened.problems,
        *evaluation.warnings,
        *hooks.problems,
    ]
    report = Report(
        smdbg_version=__version__,
        run=_summary(opened),
        outcomes=outcomes,
        actions=dispatcher.records(),
        warnings=list(dict.fromkeys([*warnings, *dispatcher.warnings])),
        evidence=evaluation.recorder.evidence() if evaluation.recorder is not None else None,
        documentation=dict(_documentation(roster.entries)) if evidence else {},
    )
    told = len(hooks.problems)
    hooks.notify("smdbg_run_finished", report=report)
    report.warnings.extend(hooks.problems[told:])
    return report


def _validate(hooks: Hooks, entries: Sequence[RosterEntry], uri: str) -> None:
    """Let plugins object to parameters; all objections are raised together."""
    problems = []
    for entry in entries:
        found = hooks.validate_parameters(entry.rule, uri)
        if found:
            problems.append(str(ParameterError(entry.name, found)))
    if problems:
        raise ConfigError("\n".join(problems))


def _documentation(entries: Sequence[RosterEntry]) -> dict[str, Documentation]:
    """What the rules say about themselves, by instance."""
    return {entry.name: type(entry.rule).documentation() for entry in entries}


def _summary(run: Run) -> RunSummary:
    summary: dict[str, Any] = {"uri": run.uri, "has": run.has}
    if run.trial is not None:
        trial = run.trial
        steps = trial.steps()
        summary |= {
            "ended": trial.ended,
            "steps": len(steps),
            "first_step": steps[0] if steps else None,
            "last_step": steps[-1] if steps else None,
            "modes": {str(mode): len(trial.steps(mode=mode)) for mode in trial.modes},
            "workers": list(trial.workers),
            "tensors": len(trial.tensor_names()),
        }
    if run.profiler is not None:
        summary |= {"nodes": list(run.profiler.nodes), "profiler_files": len(run.profiler.files)}
    return RunSummary(**summary)
