"""Judging: one thread, step by step, all rules over what was measured once."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from smdbg_core.discovery.hooks import Hooks
from smdbg_core.engine.dispatch import Watch
from smdbg_core.engine.plan import RulePlan
from smdbg_core.errors import ConfigError, Veto
from smdbg_core.findings import Artifact, Finding
from smdbg_core.outcomes import Outcome
from smdbg_core.rule_run import RuleRun
from smdbg_core.runs.run import Run
from smdbg_core.runs.trial import Trial
from smdbg_core.runs.views import Point, StepView, TensorView
from smdbg_core.tally import Tally

__all__ = ["Judge"]


class Judge:
    """One rule instance judging one run.

    Args:
        name: Name of the instance.
        identity: `(rule name, plugin identity)`.
        plan: The planned rule; the judge works on a copy of it.
        run: The run.
        others: Opened runs behind the rule's `RunURI` parameters.
        hooks: The plugins around it.
        cap: How many findings are kept.
        on_finding: Told each finding at once.
        watch: Told what every step came to; it dispatches the rule's actions.
    """

    def __init__(
        self,
        name: str,
        identity: tuple[str, str],
        plan: RulePlan,
        run: Run,
        others: Mapping[str, Sequence[Run]],
        hooks: Hooks,
        *,
        cap: int = 100,
        on_finding: Callable[[str, Finding], None] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.name = name
        self.plan = plan
        self.tally = Tally(cap)
        self.artifacts: list[Artifact] = []
        self.rule = copy.copy(plan.rule)
        self.rule._tally = self.tally
        self.run = RuleRun(run, others)
        self.done = False
        self._evaluated = False
        self._rule_name, self._plugin = identity
        self._hooks = hooks
        self._on_finding = on_finding
        self._watch = watch
        self._error: tuple[str, str] | None = None
        self._seen_modes = [set[str]() for _ in plan.reads]

    def start(self) -> None:
        """Give the rule its state."""
        self._hooks.notify("smdbg_rule_started", rule=self.rule, run=self.run)
        self._guard(lambda: self.rule.start(self.run), "at start")

    def step(self, trial: Trial, point: Point, groups: Mapping[str, Sequence[TensorView]]) -> bool:
        """Judge one step; whether anything was found."""
        if self.done:
            return False
        groups = self._preferred(point, groups)
        if not any(groups.values()):
            return False
        self._evaluated = True
        view = StepView(trial, point, groups)
        points = self.tally.points
        found = self._guard(lambda: self._hooks.evaluate(self.rule, view, self.run), f"at step {point.step}")
        if self.tally.points > points or found:
            self.tally.steps.add(point.step)
        return self._record(found or (), judged=self.tally.points > points)

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

    def finish(self, outcomes: Mapping[str, Outcome]) -> None:
        """Judge the end of the data."""
        if self._error is None and not self.done:
            self.run.outcomes.update(outcomes)
            found = self._guard(lambda: self._hooks.finish(self.rule, self.run), "at the end")
            self._record(found or ())

    def _record(self, found: Iterable[Finding | Artifact], *, judged: bool = False) -> bool:
        findings = []
        for one in found:
            if isinstance(one, Artifact):
                self.artifacts.append(one)
                continue
            findings.append(one)
            self.tally.record(one)
            if self._on_finding is not None:
                self._on_finding(self.name, one)
        if self._watch is not None:
            self._watch.judged(findings, clear=judged and not self.tally.has_open)
        return bool(findings)

    def _guard(self, call: Callable[[], Any], where: str) -> Any:
        """Call into the rule; what it raises ends this rule only."""
        try:
            return call()
        except Veto as veto:
            self.tally.skip(f"vetoed: {veto.reason}")
        except ConfigError as error:
            self._fail(f"{error}", error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - isolation: a rule may raise anything
            self._fail(f"{where}: {type(error).__name__}: {error}{_place(error)}", error)
        return None

    def _fail(self, reason: str, error: BaseException) -> None:
        self._error = reason, "".join(traceback.format_exception(error))
        self.done = True

    def outcome(self, artifacts: Sequence[str] = ()) -> Outcome:
        """How the rule ended."""
        tally = self.tally
        status, reason = "clean", None
        if self._error is not None:
            status, reason = "error", self._error[0]
        elif tally.fired:
            status = "fired"
        elif not tally.points and not self.artifacts:
            status, reason = "not_evaluated", self._nothing_judged()
        elif tally.points and tally.points == tally.non_finite:
            status, reason = "not_evaluated", f"non-finite: all {tally.points} points hold NaN or infinities"
        if self.artifacts and not artifacts:
            reason = reason or f"{len(self.artifacts)} files are not written: no output folder was given"
        if reason is None and tally.non_finite:
            reason = f"{tally.non_finite} of {tally.points} points are indeterminate: NaN or infinities"
        outcome = Outcome(
            rule=self._rule_name,
            name=self.name,
            plugin=self._plugin,
            severity=self.rule.severity,
            status=status,  # type: ignore[arg-type]
            reason=reason,
            parameters=self.rule.parameters,
            coverage=tally.coverage(),
            findings=tally.episodes,
            findings_truncated=tally.dropped,
            closest=next(iter(tally.closest.values()), None),
            artifacts=list(artifacts),
            traceback=self._error[1] if self._error else None,
        )
        self._hooks.notify("smdbg_rule_finished", rule=self.rule, outcome=outcome)
        return outcome

    def _nothing_judged(self) -> str:
        if self.tally.skipped:
            reason, count = self.tally.skipped.most_common(1)[0]
            if reason in self.tally.needs:
                have, need = self.tally.needs[reason]
                return f"{reason}: at most {have}, needs {need}"
            return f"{reason} ({count} {'point' if count == 1 else 'points'})"
        complaint = self.plan.complaint()
        if complaint:
            return complaint
        if self._evaluated:
            return "nothing in what the rule reads can be judged"
        return "no step in range has what the rule reads"


def _place(error: BaseException) -> str:
    """File and line where the exception was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
