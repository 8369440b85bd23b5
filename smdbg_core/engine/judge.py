"""Judging: one thread, in order, each rule on a copy of itself."""

from __future__ import annotations

import copy
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from smdbg_core.discovery.hooks import Hooks
from smdbg_core.engine.dispatch import Watch
from smdbg_core.errors import ConfigError, Veto
from smdbg_core.findings import Artifact, Finding
from smdbg_core.outcomes import Measurements, Outcome
from smdbg_core.rule import Rule
from smdbg_core.rule_run import RuleRun
from smdbg_core.runs.profiler import ScanWindow
from smdbg_core.runs.run import Run
from smdbg_core.runs.views import StepView
from smdbg_core.tally import Tally

__all__ = ["Judge"]


RuleT = TypeVar("RuleT", bound=Rule)


class Judge(ABC, Generic[RuleT]):
    """One rule instance judging one run.

    Args:
        name: Name of the instance.
        identity: `(rule name, plugin identity)`.
        rule: The configured rule; the judge works on a copy of it.
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
        rule: RuleT,
        run: Run,
        others: Mapping[str, Sequence[Run]],
        hooks: Hooks,
        *,
        cap: int = 100,
        on_finding: Callable[[str, Finding], None] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.name = name
        self.tally = Tally(cap)
        self.artifacts: list[Artifact] = []
        self.rule = copy.copy(rule)
        self.rule._count_in(self.tally)
        self.run = RuleRun(run, others)
        self.done = False
        self._evaluated = False
        self._rule_name, self._plugin = identity
        self._hooks = hooks
        self._on_finding = on_finding
        self._watch = watch
        self._error: tuple[str, str] | None = None

    nothing_in_range: ClassVar[str]
    """Why nothing was judged, when nothing else explains it."""

    @abstractmethod
    def complaint(self) -> str | None:
        """What the rule needs and the run does not have."""

    def lack(self) -> str | None:
        """What is missing without which a clean verdict would mean nothing."""
        return None

    def measurements(self) -> Measurements | None:
        """What the rule measured, apart from its verdict."""
        return None

    def start(self) -> None:
        """Give the rule its state."""
        self._hooks.notify("smdbg_rule_started", rule=self.rule, run=self.run)
        self._guard(lambda: self.rule.start(self.run), "at start")

    def _evaluate(self, view: StepView | ScanWindow, where: str) -> tuple[bool, bool]:
        """Whether a view gave the rule anything to judge, and whether anything was found."""
        self._evaluated = True
        points = self.tally.points
        found = self._guard(lambda: self._hooks.evaluate(self.rule, view, self.run), where)
        judged = self.tally.points > points
        return judged or bool(found), self._record(found or (), judged=judged)

    def idle(self, clock: float) -> None:
        """Judge that nothing new came; what is found keeps no point of its own."""
        if self._error is None and not self.done:
            found = self._guard(lambda: tuple(self.rule.idle(clock)), "while waiting")
            self._record(found or (), waiting=True)

    def recall(self, finding: Finding) -> None:
        """Take over what an earlier evaluation found while nothing new came."""
        self._record((finding,), waiting=True)

    def finish(self, outcomes: Mapping[str, Outcome]) -> None:
        """Judge the end of the data."""
        if self._error is None and not self.done:
            self.run.outcomes.update(outcomes)
            found = self._guard(lambda: self._hooks.finish(self.rule, self.run), "at the end")
            self._record(found or ())

    def _record(
        self, found: Iterable[Finding | Artifact], *, judged: bool = False, waiting: bool = False
    ) -> bool:
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
            self._watch.judged(findings, clear=judged and not self.tally.has_open, waiting=waiting)
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
        measurements = self._guard(self.measurements, "at the end")
        status, reason = "clean", None
        if self._error is not None:
            status, reason = "error", self._error[0]
        elif tally.fired:
            status = "fired"
        elif (lack := self.lack()) is not None:
            status, reason = "not_evaluated", lack
        elif not tally.points and (tally.skipped or not self.artifacts):
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
            measurements=measurements,
            artifacts=list(artifacts),
            traceback=self._error[1] if self._error else None,
        )
        self._hooks.notify("smdbg_rule_finished", rule=self.rule, outcome=outcome)
        return outcome

    def _nothing_judged(self) -> str:
        complaint = self.complaint()
        if complaint:
            return complaint
        if self.tally.skipped:
            reason, count = self.tally.skipped.most_common(1)[0]
            if reason in self.tally.needs:
                have, need = self.tally.needs[reason]
                return f"{reason}: at most {have}, needs {need}"
            return f"{reason} ({count} {'point' if count == 1 else 'points'})"
        if self._evaluated:
            return "nothing in what the rule reads can be judged"
        return self.nothing_in_range


def _place(error: BaseException) -> str:
    """File and line where the exception was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
