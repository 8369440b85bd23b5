"""`evaluate`: from a path and rules to a report; what the command line calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.action_roster import AskedAction
from smdbg_core.engine.assignment import Assignment
from smdbg_core.engine.roster import RuleConfig
from smdbg_core.engine.scope import Scope
from smdbg_core.outcomes import Report
from smdbg_core.rule import Rule
from smdbg_core.runs.run import Run

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
    cache: str | Path | None = None,
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
        cache: Folder in which measurements are kept, so that judging the same run again, with other
            parameters, reads hardly anything; without one nothing is kept.
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
    uri = run.uri if isinstance(run, Run) else str(run)
    assignment = Assignment(
        uri,
        rules,
        actions=actions,
        parameters=parameters,
        preset=preset,
        registry=registry,
        max_findings=max_findings,
        dry_run=dry_run,
        state=state,
        job_name=job_name,
        cache=cache,
        evidence=evidence,
    )
    opened = run if isinstance(run, Run) else assignment.open(uri)
    # What overflows or is NaN in the data is for rules to find, not for NumPy to warn of.
    with contextlib.closing(assignment.dispatcher), np.errstate(all="ignore"):
        evaluation = assignment.evaluation(opened, on_finding)
        evaluation.begin(executor, Scope(steps, mode, period, stop_on_first))
        evaluation.judge(on_step)
        evaluation.end()
        outcomes = evaluation.outcomes(output)
    return assignment.report(opened, evaluation, outcomes)
