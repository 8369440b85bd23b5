"""An evaluation: a set of rules on one opened run, from planning to outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smdbg_core.discovery.hooks import Hooks
from smdbg_core.engine.artifacts import write_artifacts
from smdbg_core.engine.dispatch import Watch
from smdbg_core.engine.judge import Judge
from smdbg_core.engine.plan import Plan, RulePlan
from smdbg_core.engine.roster import RosterEntry
from smdbg_core.engine.scan import Scan, ScannedFile
from smdbg_core.errors import DataError
from smdbg_core.outcomes import Coverage, Outcome, Status
from smdbg_core.rule import ALL_FRAMEWORKS, TensorRule
from smdbg_core.runs.framework import framework_of
from smdbg_core.runs.run import Run
from smdbg_core.runs.trial import Damage, Trial
from smdbg_core.runs.views import Measurement, Point, TensorView

if TYPE_CHECKING:
    from smdbg_core.findings import Finding

__all__ = ["Evaluation"]

_OTHER_RUN = "run-uri"
DAMAGED = "damaged record"
NOT_NUMERIC = "not a number"


class Evaluation:
    """A set of rules on one opened run: judged once, then asked for the outcomes.

    Attributes:
        warnings: What users should know, in the order in which it was noticed.
    """

    def __init__(
        self,
        run: Run,
        entries: Sequence[RosterEntry],
        hooks: Hooks,
        cap: int,
        on_finding: Callable[[str, Finding], None] | None,
        watch: Callable[[RosterEntry], Watch | None] = lambda _: None,
    ) -> None:
        self.warnings: list[str] = []
        self._run = run
        self._hooks = hooks
        self._settled: dict[str, Outcome] = {}
        self._judges: list[Judge] = []
        self._entries = entries
        self._others: dict[str, Run] = {}
        framework = framework_of(run.trial.tensor_names()) if run.trial is not None else None
        for entry in entries:
            reason = self._unfit(entry, framework)
            if reason is not None:
                self._settled[entry.name] = _unjudged(entry, "not_evaluated", reason)
                continue
            others = self._open_others(entry)
            if others is None or run.trial is None:
                continue
            try:
                plan = RulePlan(entry.rule, run.trial)  # type: ignore[arg-type]
            except Exception as error:  # noqa: BLE001 - isolation: `reads` is the plugin's code
                self._settled[entry.name] = _unjudged(
                    entry, "error", f"reads: {type(error).__name__}: {error}"
                )
                continue
            identity = entry.rule_name, entry.plugin
            options: dict[str, Any] = {"cap": cap, "on_finding": on_finding, "watch": watch(entry)}
            self._judges.append(Judge(entry.name, identity, plan, run, others, hooks, **options))
        self._judges_by_name = {judge.name: judge for judge in self._judges}
        hooks.notify("smdbg_run_started", run=run, rules=tuple(judge.rule for judge in self._judges))

    def _unfit(self, entry: RosterEntry, framework: str | None) -> str | None:
        """Why the rule cannot judge this run, known before anything is read."""
        if not isinstance(entry.rule, TensorRule):
            return "not measured: this release reads no profiler output"
        if "trial" not in self._run.has:
            return "not measured: the run has no saved tensors"
        missing = entry.rule.missing()
        if missing:
            return "needs a parameter: " + ", ".join(" or ".join(group) for group in missing)
        frameworks = entry.rule.frameworks
        if framework is None or framework in frameworks or framework not in ALL_FRAMEWORKS:
            return None
        mismatch = f"for {', '.join(frameworks)}; the tensors look like {framework}'s"
        if not entry.named:
            return f"not applicable: {mismatch}"
        self.warnings.append(f"{entry.name} is {mismatch}")
        return None

    def _open_others(self, entry: RosterEntry) -> dict[str, list[Run]] | None:
        """The runs that the rule's parameters name, opened."""
        others: dict[str, list[Run]] = {}
        for name, parameter in entry.rule.__parameters__.items():
            if parameter.conversion.format != _OTHER_RUN:
                continue
            value = entry.rule.parameters[name]
            uris = (value,) if isinstance(value, str) else value or ()
            try:
                for uri in uris:
                    if uri not in self._others:
                        self._others[uri] = self._hooks.open_run(uri, steps=None)
            except DataError as error:
                self._settled[entry.name] = _unjudged(entry, "error", f"{name}: {error}")
                return None
            others[name] = [self._others[uri] for uri in uris]
        return others

    def judge(
        self,
        executor: Executor | None,
        steps: tuple[int | None, int | None],
        mode: str | None,
        stop_on_first: bool,
        on_step: Callable[[int, int], None] | None,
    ) -> None:
        """Judge all steps, then the end of the data."""
        trial = self._run.trial
        if trial is None:
            return
        for judge in self._judges:
            judge.start()
        plans = [judge.plan for judge in self._judges]
        plan = Plan(trial, plans, self._others)
        scan = Scan(trial, plan, executor, steps=steps, mode=mode)
        total = len(trial.steps())
        for number, (step, files) in enumerate(scan, start=1):
            fired = self._judge_step(trial, step, files)
            if on_step is not None:
                on_step(number, total)
            if fired and stop_on_first:
                break
        self.warnings += _damage_warnings([*trial.damage, *scan.damage])

    def outcomes(self, output: Path | None) -> list[Outcome]:
        """Finish every rule, write what rules want written, and collect the outcomes.

        Args:
            output: Folder for artifacts; without one they are named in a warning and not written.
        """
        for entry in self._entries:
            self._settle(entry, output)
        return [self._settled[entry.name] for entry in self._entries]

    def _settle(self, entry: RosterEntry, output: Path | None) -> Outcome:
        """Finish a rule, after those whose outcomes it needs."""
        if entry.name not in self._settled:
            by_name = {one.name: one for one in self._entries}
            needed = {name: self._settle(by_name[name], output) for name in entry.children}
            judge = self._judges_by_name[entry.name]
            judge.finish(needed)
            self.warnings += [f"{entry.name}: {text}" for text in judge.run.warnings]
            written = write_artifacts(output, judge.artifacts) if output is not None else []
            self._settled[entry.name] = judge.outcome(written)
        return self._settled[entry.name]

    def _judge_step(self, trial: Trial, step: int, files: Sequence[ScannedFile]) -> bool:
        """All rules at one step; whether anything was found."""
        groups: list[dict[str, list[TensorView]]] = [
            {reads.group: [] for reads in judge.plan.reads} for judge in self._judges
        ]
        point = Point(step, files[0].file.mode, files[0].file.mode_step)
        for scanned in files:
            self._place(trial, scanned, groups)
        fired = False
        for judge, found in zip(self._judges, groups, strict=True):
            if len(files) > 1:
                for views in found.values():
                    views.sort(key=lambda view: (view.name, view.worker))
            fired |= judge.step(trial, point, found)
        return fired

    def _place(self, trial: Trial, scanned: ScannedFile, groups: list[dict[str, list[TensorView]]]) -> None:
        """Sort the tensors of one file into the groups of the rules; all rules share the views."""
        file, plan, measurements = scanned
        point = Point(file.step, file.mode, file.mode_step)
        measured: list[Measurement | None] = [None] * len(plan.items)
        for index, measurement in zip(plan.measured, measurements, strict=True):
            measured[index] = measurement
        needs_file = set(plan.measured)
        views = [
            TensorView(trial, point, item.name, file.worker, measurement, item.wanted)
            for item, measurement in zip(plan.items, measured, strict=True)
        ]
        for index, rule, group in plan.members:
            judge = self._judges[rule]
            reads = judge.plan.reads[group]
            measurement = measured[index]
            if measurement is None:
                if index in needs_file:
                    judge.tally.skip(DAMAGED)
                    continue
            elif measurement.row is None and not reads.strings:
                judge.tally.skip(NOT_NUMERIC)
                continue
            groups[rule][reads.group].append(views[index])
        for rule, reason in plan.skips:
            self._judges[rule].tally.skip(reason)


def _unjudged(entry: RosterEntry, status: Status, reason: str) -> Outcome:
    return Outcome(
        rule=entry.rule_name,
        name=entry.name,
        plugin=entry.plugin,
        severity=entry.rule.severity,
        status=status,
        reason=reason,
        parameters=entry.rule.parameters,
        coverage=Coverage(),
    )


def _damage_warnings(damage: Iterable[Damage]) -> list[str]:
    """One line for each damaged file."""
    by_file: dict[str, list[Damage]] = {}
    for one in damage:
        by_file.setdefault(one.file, []).append(one)
    lines = []
    for file, all_damage in by_file.items():
        first = all_damage[0]
        where = file if first.offset is None else f"{file} at byte {first.offset}"
        more = f" (and {len(all_damage) - 1} more places in this file)" if len(all_damage) > 1 else ""
        lines.append(f"damaged: {where}: {first.kind}: {first.detail}{more}")
    return lines
