"""An evaluation: a set of rules on one opened run, from planning to outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smdbg_core.discovery.hooks import Hooks
from smdbg_core.engine.artifacts import write_artifacts
from smdbg_core.engine.dispatch import Watch
from smdbg_core.engine.evidence_recorder import EvidenceRecorder
from smdbg_core.engine.judge import Judge
from smdbg_core.engine.measurement_cache import MeasurementCache
from smdbg_core.engine.plan import Plan, RulePlan
from smdbg_core.engine.roster import RosterEntry
from smdbg_core.engine.scan import Scan, ScannedFile
from smdbg_core.engine.scan_windows import Demand, ScanWindows
from smdbg_core.engine.scope import Scope
from smdbg_core.engine.tensor_judge import TensorJudge
from smdbg_core.engine.window_judge import WindowJudge
from smdbg_core.errors import DataError
from smdbg_core.outcomes import Coverage, Outcome, Status
from smdbg_core.rule import ALL_FRAMEWORKS, ProfilerRule, TensorRule
from smdbg_core.runs.damage import Damage
from smdbg_core.runs.framework import framework_of
from smdbg_core.runs.profiler import Batch, Profiler
from smdbg_core.runs.run import Run
from smdbg_core.runs.trial import Trial
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
        recorder: Keeps evidence while the run is judged; `None` if no report wants any.
        warnings: What users should know, in the order in which it was noticed.
        windows: The scan windows of the run, once judging has begun; `None` without profiler output.
    """

    def __init__(
        self,
        run: Run,
        entries: Sequence[RosterEntry],
        hooks: Hooks,
        cap: int,
        on_finding: Callable[[str, Finding], None] | None,
        watch: Callable[[RosterEntry], Watch | None] = lambda _: None,
        *,
        evidence: bool = False,
        cache: MeasurementCache | None = None,
    ) -> None:
        self.warnings: list[str] = []
        self.recorder = EvidenceRecorder(run.trial) if evidence else None
        self._run = run
        self._hooks = hooks
        self._settled: dict[str, Outcome] = {}
        self._judges: list[TensorJudge] = []
        self._window_judges: list[WindowJudge] = []
        self._entries = entries
        self._cache = cache
        self._resources = ExitStack()
        self._scan: Scan | None = None
        self.windows: ScanWindows | None = None
        self._by_clock: list[list[WindowJudge]] = []
        self._stop_on_first = False
        self._others: dict[str, Run] = {}
        framework = framework_of(run.trial.tensor_names()) if run.trial is not None else None
        for entry in entries:
            reason = self._unfit(entry, framework)
            if reason is not None:
                self._settled[entry.name] = _unjudged(entry, "not_evaluated", reason)
                continue
            others = self._open_others(entry)
            if others is not None:
                self._seat(entry, others, cap=cap, on_finding=on_finding, watch=watch(entry))
        seated: list[Judge[Any]] = [*self._judges, *self._window_judges]
        self._judges_by_name = {judge.name: judge for judge in seated}
        if self.recorder is not None:
            for judge in seated:
                judge.tally.on_point = self.recorder.points_of(judge.name)
        hooks.notify("smdbg_run_started", run=run, rules=tuple(judge.rule for judge in seated))

    def _seat(self, entry: RosterEntry, others: Mapping[str, Sequence[Run]], **options: Any) -> None:
        """Give a rule its judge."""
        identity = entry.rule_name, entry.plugin
        trial = self._run.trial
        common = self._run, others, self._hooks
        try:
            if isinstance(entry.rule, ProfilerRule):
                self._window_judges.append(WindowJudge(entry.name, identity, entry.rule, *common, **options))
            elif isinstance(entry.rule, TensorRule) and trial is not None:
                plan = RulePlan(entry.rule, trial)
                self._judges.append(TensorJudge(entry.name, identity, plan, *common, **options))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - isolation: `reads` is the plugin's code
            reason = f"reads: {type(error).__name__}: {error}"
            self._settled[entry.name] = _unjudged(entry, "error", reason)

    def _unfit(self, entry: RosterEntry, framework: str | None) -> str | None:
        """Why the rule cannot judge this run, known before anything is read."""
        profiler_rule = isinstance(entry.rule, ProfilerRule)
        if profiler_rule and self._run.profiler is None:
            return "not measured: the run has no profiler output"
        if not profiler_rule and self._run.trial is None:
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

    def begin(self, executor: Executor | None, scope: Scope) -> None:
        """Give every rule its state, and make ready to read.

        Args:
            executor: Where tensors are measured; by default in this thread.
            scope: What is judged of the run.
        """
        self._stop_on_first = scope.stop_on_first
        for judge in self._judges_by_name.values():
            judge.start()
        if self._run.trial is not None:
            self._scan = self._new_scan(self._run.trial, executor, scope)
        if self._run.profiler is not None:
            self.windows = self._new_windows(self._run.profiler, scope)

    def judge(self, on_step: Callable[[int, int], None] | None = None) -> None:
        """Judge all steps, then all scan windows.

        Args:
            on_step: Told how many steps of how many are judged.
        """
        fired = False
        if self._run.trial is not None:
            fired = self.judge_steps(self._run.trial.steps(), on_step)
        if self.windows is not None and not (fired and self._stop_on_first):
            self.judge_windows(self.windows.reader)

    def judge_steps(self, steps: Sequence[int], on_step: Callable[[int, int], None] | None = None) -> bool:
        """Judge steps, in order, all beyond those that were judged before; whether anything was found."""
        trial = self._run.trial
        if self._scan is None or trial is None:
            return False
        fired = False
        for number, (step, files) in enumerate(self._scan.over(steps), start=1):
            fired |= self._judge_step(trial, step, files)
            if on_step is not None:
                on_step(number, len(steps))
            if fired and self._stop_on_first:
                break
        return fired

    def judge_windows(self, batches: Iterable[Batch]) -> bool:
        """Judge the scan windows that further profiler output completes; whether anything was found."""
        if self.windows is None:
            return False
        for number, window in self.windows.over(batches):
            found = [judge.window(window) for judge in self._by_clock[number]]
            if self._stop_on_first and any(found):
                return True
        return False

    def idle(self, clock: float) -> None:
        """Let rules judge that nothing new came."""
        for judge in self._judges_by_name.values():
            judge.idle(clock)

    def recall(self, name: str, finding: Finding) -> None:
        """Take over what a rule found while nothing came, in an evaluation that this one replaces."""
        judge = self._judges_by_name.get(name)
        if judge is not None:
            judge.recall(finding)

    def end(self) -> None:
        """Stop reading, and note what was wrong with the data."""
        self._resources.close()
        if self._run.trial is not None and self._scan is not None:
            self._damaged([*self._run.trial.damage, *self._scan.damage])
            self.warnings += _incomplete_warnings(self._run.trial)
        if self._run.profiler is not None and self.windows is not None:
            self._damaged(self._run.profiler.damage)
            self.warnings += _window_warnings(self.windows)

    def _new_scan(self, trial: Trial, executor: Executor | None, scope: Scope) -> Scan:
        plan = Plan(trial, [judge.plan for judge in self._judges], self._others)
        parallel = trial.storage.parallel
        if executor is None and parallel > 1:
            # Where reading is waiting, threads read ahead of the judging.
            executor = self._resources.enter_context(ThreadPoolExecutor(parallel))
        mode = scope.mode.upper() if scope.mode else None
        ahead = max(3, parallel)
        return Scan(trial, plan, executor, ahead=ahead, steps=scope.steps, mode=mode, cache=self._cache)

    def _new_windows(self, profiler: Profiler, scope: Scope) -> ScanWindows:
        """The windows for all profiler rules, each with all of its length."""
        by_interval: dict[int, list[WindowJudge]] = {}
        for judge in self._window_judges:
            by_interval.setdefault(judge.rule.scan_interval_us, []).append(judge)
        demands = [_demand(interval, judges) for interval, judges in by_interval.items()]
        on_data = None
        if self.recorder is not None:
            self.recorder.restrict(*scope.period)
            on_data = self.recorder.data
        windows = ScanWindows(profiler, demands, scope.period, on_data)
        self._by_clock = list(by_interval.values())
        for judge in self._window_judges:
            judge.attach(windows)
        return windows

    def _damaged(self, damage: Sequence[Damage]) -> None:
        self.warnings += _damage_warnings(damage)
        if self.recorder is not None:
            self.recorder.damage(damage)

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
            if self.recorder is not None:
                self.recorder.artifacts(entry.name, judge.artifacts)
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
        if self.recorder is not None:
            self.recorder.tensors(view for view, one in zip(views, measured, strict=True) if one and one.row)
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


def _demand(interval: int, judges: Iterable[WindowJudge]) -> Demand:
    """What rules with scan windows of one length read together."""
    reads = [one for judge in judges for one in judge.reads]
    measures = frozenset(measure for one in reads for measure in one.series)
    return Demand(interval, measures, tuple(dict.fromkeys(phase for one in reads for phase in one.phases)))


def _incomplete_warnings(trial: Trial) -> list[str]:
    """Steps that are judged although not all workers have written them."""
    incomplete = trial.incomplete_steps()
    if not incomplete:
        return []
    silent = sorted(set(trial.workers) - {file.worker for file in trial.files(incomplete[0])})
    lack = ", ".join(silent) or f"some of {trial.num_workers} workers"
    steps = "1 step was" if len(incomplete) == 1 else f"{len(incomplete)} steps were"
    return [f"{steps} judged without all workers, from step {incomplete[0]} on, which lacks {lack}"]


def _window_warnings(windows: ScanWindows) -> list[str]:
    """What was left out of scan windows, or came too late for its own."""
    texts = []
    if windows.dropped:
        texts.append(f"{windows.dropped} samples were left out: no finite value, or no time")
    if windows.unpaired:
        texts.append(f"{windows.unpaired} ends of events were left out: they had no beginning")
    if windows.late:
        text = f"{windows.late} samples or events came after the end of their scan window"
        texts.append(f"{text}; they count in a later one")
    return texts


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
