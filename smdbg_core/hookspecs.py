"""Every hook: how plugins stand around rules and actions.

Rules and actions need none of these: they are discovered by their entry points, and the core's own
implementations, which come last, call them. A hook-only plugin (group `smdbg.plugins`) wraps or
replaces those calls:

    from smdbg_core import Veto, hookimpl

    @hookimpl(wrapper=True)
    def smdbg_dispatch_action(action, event, dry_run):
        if event.run.startswith("s3://production/"):
            raise Veto("production jobs are not stopped by rules")
        return (yield)

A veto is raising `Veto` before the `yield`. A reroute is an implementation marked `tryfirst=True`
that returns a result. All hooks run in one thread, in the order of steps. Plugins are registered
in the order of distribution, then name; `smdbg plugins` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from smdbg_core.action import Action, ActionResult, Event
    from smdbg_core.errors import ParameterProblem
    from smdbg_core.findings import Artifact, Finding
    from smdbg_core.outcomes import Outcome, Report
    from smdbg_core.rule import Rule
    from smdbg_core.rule_run import RuleRun
    from smdbg_core.runs.run import Run

__all__ = ["PROJECT", "hookimpl", "hookspec"]

PROJECT = "smdbg"
"""Pluggy's project name: hooks are called `smdbg_...`."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec(firstresult=True)
def smdbg_open_run(uri: str, options: dict[str, Any]) -> Run | None:
    """Open a run; called before anything is planned, and when a followed run has ended once more.

    Args:
        uri: The path or URI as it was given.
        options: `steps`: the range of global steps to read, or `None`.

    Returns:
        The opened run, or `None` to leave it to the next plugin; the core opens local folders and
        `s3://`. For another kind of store, implement `smdbg_core.storage.Storage` and return
        `open_run(storage)`.

    An exception ends the evaluation; a `DataError` is reported as the user's.
    """


@hookspec
def smdbg_validate_parameters(
    rule_class: type[Rule], parameters: dict[str, Any], run: str
) -> Iterable[ParameterProblem] | None:
    """Check the effective parameters of a planned rule, beyond its own declarations.

    Called once for each planned rule, before data is opened.

    Args:
        rule_class: Class of the rule.
        parameters: Effective values by name.
        run: URI of the run.

    Returns:
        Problems, or nothing. All problems of all plugins are reported together; any one ends the
        evaluation before it begins. An exception is reported as this plugin's failure.
    """


@hookspec
def smdbg_run_started(run: Run, rules: tuple[Rule, ...]) -> None:
    """Told once, after planning and before the first step. An exception is a warning."""


@hookspec
def smdbg_run_finished(report: Report) -> None:
    """Told once, with the complete report. An exception is a warning."""


@hookspec
def smdbg_rule_started(rule: Rule, run: RuleRun) -> None:
    """Told once for each rule, before its first step. An exception is a warning."""


@hookspec
def smdbg_rule_finished(rule: Rule, outcome: Outcome) -> None:
    """Told once for each rule, with its outcome. An exception is a warning."""


@hookspec(firstresult=True)
def smdbg_evaluate(rule: Rule, view: Any, run: RuleRun) -> tuple[Finding, ...] | None:
    """Judge one step or scan window with one rule.

    Args:
        rule: The rule's working copy for this run.
        view: A `StepView` for tensor rules, a scan window for profiler rules.
        run: The run as the rule meets it.

    Returns:
        The findings at this point. The core's implementation calls `rule.evaluate(view)` and
        collects what it yields.

    `Veto` before the `yield` of a wrapper leaves this point out, counted by reason. Another
    exception in a wrapper costs the wrapper, which is named and unregistered; the rule's result is
    kept. An exception in the rule ends the rule with status `error`.
    """


@hookspec(firstresult=True)
def smdbg_finish(rule: Rule, run: RuleRun) -> tuple[Finding | Artifact, ...] | None:
    """Judge the end of the data with one rule; the same contract as `smdbg_evaluate`."""


@hookspec(firstresult=True)
def smdbg_dispatch_action(action: Action, event: Event, dry_run: bool) -> ActionResult | None:
    """Carry out one action for one event.

    Args:
        action: The configured action.
        event: What happened.
        dry_run: Say what would be done, and do nothing.

    Returns:
        The result. The core's implementation calls `action.dispatch(event, dry_run=dry_run)`.

    `Veto` before the `yield` of a wrapper stops the action; the reason is recorded. Any other
    exception before the `yield` means that nothing is sent; it is recorded as a failed action. After
    the `yield` it is too late: the action's own result or failure stands, and the exception is a warning.
    """


@hookspec(firstresult=True)
def smdbg_render_report(report: Report, format: str) -> str | None:  # noqa: A002 - the option's name
    """Render a report as text.

    Args:
        report: The complete report.
        format: What `--format` was given.

    Returns:
        The text, or `None` to leave it to the next plugin; the core renders its own formats.
    """
