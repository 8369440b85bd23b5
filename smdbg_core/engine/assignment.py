"""An assignment: which rules are to judge which run, and what is done when they fire.

Everything that can be wrong with what was asked for is found here, before any data is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smdbg_core.discovery.hooks import Hooks
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.action_roster import ActionRoster, AskedAction
from smdbg_core.engine.dispatch import Dispatcher, Watch
from smdbg_core.engine.evaluation import Evaluation
from smdbg_core.engine.journal import state_folder
from smdbg_core.engine.measurement_cache import MeasurementCache
from smdbg_core.engine.roster import Roster, RosterEntry, RuleConfig
from smdbg_core.errors import ConfigError, ParameterError
from smdbg_core.outcomes import Outcome, Report, RunSummary
from smdbg_core.rule import Documentation, Rule
from smdbg_core.runs.run import Run
from smdbg_core.version import __version__

if TYPE_CHECKING:
    from smdbg_core.findings import Finding

__all__ = ["Assignment"]


class Assignment:
    """Rules and actions for one run, resolved and validated.

    Args:
        uri: The run.
        rules: As `evaluate` takes them, and the same for those that follow.
        actions: What is done when a rule fires, for every rule.
        parameters: Values for rules and actions that are not configured otherwise.
        preset: Name of a preset.
        registry: Where plugins are found.
        max_findings: How many findings each rule keeps.
        dry_run: Say what actions would send; send nothing.
        state: Folder of the journal of actions.
        job_name: SageMaker's name of the training job.
        cache: Folder in which measurements are kept; without one they are not.
        evidence: Keep what reports show beside the verdicts.

    Attributes:
        dispatcher: Dispatches what actions are to be told.

    Raises:
        ConfigError: Something asked for makes no sense.
        PluginError: A plugin that was asked for is broken.
    """

    def __init__(
        self,
        uri: str,
        rules: Iterable[str | Rule | type[Rule] | RuleConfig] | None = None,
        *,
        actions: Iterable[AskedAction] = (),
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
        preset: str | None = None,
        registry: Registry | None = None,
        max_findings: int = 100,
        dry_run: bool = False,
        state: str | Path | None = None,
        job_name: str | None = None,
        cache: str | Path | None = None,
        evidence: bool = False,
    ) -> None:
        self._registry = registry or Registry()
        asked = None if rules is None else list(rules)
        own = [action for one in asked or () if isinstance(one, RuleConfig) for action in one.actions]
        with self._registry.active():
            self._action_roster = ActionRoster(self._registry, actions, own, parameters)
            others, problems = self._action_roster.other_parameters, self._action_roster.problems
            self._roster = Roster(self._registry, asked, others, problems, preset)
        self._hooks = Hooks(self._registry.load_hooks())
        self._max_findings = max_findings
        self._evidence = evidence
        self._cache_folder = None if cache is None else Path(cache)
        self._cache: MeasurementCache | None = None
        _validate(self._hooks, self._roster.entries, uri)
        folder = Path(state) if state is not None else state_folder()
        self.dispatcher = Dispatcher(self._hooks, uri, job_name=job_name, state=folder, dry_run=dry_run)

    def open(self, uri: str, *, since: int | None = None) -> Run:
        """Open the run; a plugin may do so.

        Args:
            uri: Where it lies.
            since: Of a trial, only the index files of this global step and later ones are read.
        """
        return self._hooks.open_run(uri, steps=None if since is None else (since, None))

    def evaluation(self, run: Run, on_finding: Callable[[str, Finding], None] | None) -> Evaluation:
        """A fresh evaluation of the run, in which nothing is judged yet."""
        if self._cache is not None:
            self._cache.close()
        self._cache = self._opened_cache(run)
        self.dispatcher.at(run.uri)
        return Evaluation(
            run,
            self._roster.entries,
            self._hooks,
            self._max_findings,
            on_finding,
            self._watch,
            evidence=self._evidence,
            cache=self._cache,
        )

    def report(self, run: Run, evaluation: Evaluation, outcomes: list[Outcome]) -> Report:
        """The report of an evaluation that has ended."""
        warnings = [
            *self._roster.warnings,
            *self._registry.problems(),
            *run.problems,
            *evaluation.warnings,
            *self._hooks.problems,
        ]
        if self._cache is not None:
            self._cache.close()
            warnings += self._cache.warnings
        recorder = evaluation.recorder
        report = Report(
            smdbg_version=__version__,
            run=_summary(run),
            outcomes=outcomes,
            actions=self.dispatcher.records(),
            warnings=list(dict.fromkeys([*warnings, *self.dispatcher.warnings])),
            evidence=recorder.evidence() if recorder is not None else None,
            documentation=dict(_documentation(self._roster.entries)) if self._evidence else {},
        )
        told = len(self._hooks.problems)
        self._hooks.notify("smdbg_run_finished", report=report)
        report.warnings.extend(self._hooks.problems[told:])
        return report

    def _opened_cache(self, run: Run) -> MeasurementCache | None:
        if self._cache_folder is None or run.trial is None:
            return None
        return MeasurementCache(self._cache_folder, run.trial.uri)

    def _watch(self, entry: RosterEntry) -> Watch | None:
        severity, own = entry.rule.severity, self._action_roster.of(entry.actions)
        return self.dispatcher.watch(entry.name, entry.rule_name, entry.plugin, severity, own)


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
