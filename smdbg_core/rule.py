"""Rules: the contract between the engine and everyone who writes one."""

from __future__ import annotations

import math
import operator
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, NamedTuple, Protocol

from smdbg_core.findings import Artifact, Finding
from smdbg_core.outcomes import Closest, Measurements, Severity
from smdbg_core.parameters import Meta, Parameterized, Regex, constraint
from smdbg_core.reads import Reads, ScanReads
from smdbg_core.tally import Tally

if TYPE_CHECKING:
    from smdbg_core.rule_run import RuleRun
    from smdbg_core.runs.profiler import ScanWindow
    from smdbg_core.runs.views import StepView

__all__ = [
    "ALL_FRAMEWORKS",
    "DEEP_LEARNING",
    "XGBOOST",
    "Collection",
    "Documentation",
    "ProfilerRule",
    "Rule",
    "Subject",
    "TensorRule",
]

DEEP_LEARNING: Final = ("tensorflow", "mxnet", "pytorch")
XGBOOST: Final = ("xgboost",)
ALL_FRAMEWORKS: Final = (*DEEP_LEARNING, *XGBOOST)

_VIOLATES = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


class Collection(NamedTuple):
    """A collection that a rule wants the training job to save."""

    name: str
    include_regex: str | None = None
    save_interval: int | None = None
    save_steps: tuple[int, ...] | None = None


class Documentation(NamedTuple):
    """What the docstring of a rule says, in parts."""

    summary: str
    """First paragraph."""

    matters: str
    """The paragraph that begins with `Why it matters:`."""

    remedy: str
    """The paragraph that begins with `What to do:`."""


class Subject(Protocol):
    """What a point is about: a tensor at a step, or a series in a scan window."""

    @property
    def name(self) -> str: ...  # noqa: D102 - the protocol's docstring says it
    @property
    def worker(self) -> str | None: ...  # noqa: D102
    @property
    def node(self) -> str | None: ...  # noqa: D102
    @property
    def non_finite(self) -> int: ...  # noqa: D102
    @property
    def location(self) -> dict[str, Any]: ...  # noqa: D102


class Rule(Parameterized):
    """What all rules share; derive from `TensorRule` or `ProfilerRule`.

    An object is a configured rule. The engine works on a fresh copy for each run, so state belongs
    in `start`, and one object serves many runs.
    """

    frameworks: ClassVar[tuple[str, ...]] = ALL_FRAMEWORKS
    """Frameworks for which the rule makes sense; elsewhere it runs with a warning."""

    group: ClassVar[str] = "custom"
    """Heading under which the rule is listed."""

    severity: ClassVar[Severity] = "warning"
    collections_to_save: ClassVar[tuple[Collection, ...]] = ()
    """What a training job must save for this rule."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    """Values of parameters by name of a preset; a rule without the asked one keeps its defaults."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for preset, values in cls.presets.items():
            problems = cls.problems_of(values)
            if problems:
                message = f"{cls.__qualname__}.presets[{preset!r}]: {'; '.join(p.message for p in problems)}"
                raise TypeError(message)

    def _count_in(self, tally: Tally) -> None:
        """Say where points are counted."""
        self._tally = tally  # annotated in the class, it would be a parameter to type checkers

    @abstractmethod
    def reads(self) -> Any:
        """What the rule needs, from its parameters alone; called once, before data is opened."""

    def start(self, run: RuleRun) -> None:
        """Create the state for one run. The default has none."""

    def finish(self, run: RuleRun) -> Iterable[Finding | Artifact]:
        """Judge what only the end of the data tells; called once, when it is exhausted."""
        return ()

    def idle(self, clock: float) -> Iterable[Finding]:
        """Judge silence; called while a job is followed and nothing new came.

        Args:
            clock: Seconds on the monotonic clock of the engine.
        """
        return ()

    def children(self) -> tuple[Rule, ...]:
        """Rules whose outcomes this one needs; they are in `run.outcomes` at `finish`."""
        return ()

    @classmethod
    def documentation(cls) -> Documentation:
        """The parts of the class's docstring."""
        paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", cls.__doc__ or "")]
        lines = [line.strip() for line in (cls.__doc__ or "").splitlines()]
        return Documentation(
            paragraphs[0], _labelled(lines, "Why it matters:"), _labelled(lines, "What to do:")
        )

    def judge(
        self,
        subject: Subject,
        statistic: str,
        value: float,
        comparison: str,
        limit: float,
        *,
        message: str | None = None,
        non_finite: int | None = None,
    ) -> tuple[Finding, ...]:
        """Judge one point: count it, and find it when `value comparison limit` holds.

        Args:
            subject: Tensor or series that the value belongs to.
            statistic: Name of what was measured.
            value: The measured value. NaN makes the point indeterminate.
            comparison: `<`, `<=`, `>`, `>=` or `==`; it holding is the violation.
            limit: What the value is compared with.
            message: Text of the finding, if the measured comparison does not say enough.
            non_finite: Non-finite elements behind the value. By default those of the subject: such a
                point is indeterminate. Give 0 when the value is exact in spite of them.

        Returns:
            One finding or none, to be yielded.
        """
        tally = self._tally
        tally.points += 1
        tally.subjects.add((subject.name, subject.worker, subject.node))
        if (subject.non_finite if non_finite is None else non_finite) or value != value:
            tally.non_finite += 1
            if tally.on_point is not None:
                tally.on_point(subject, statistic, math.nan, comparison, limit, False)
            return ()
        violates = bool(_VIOLATES[comparison](value, limit))
        if tally.on_point is not None:
            tally.on_point(subject, statistic, value, comparison, limit, violates)
        if violates:
            return (self.finding(subject, message, statistic, value, comparison, limit),)
        closest = tally.closest.get(statistic)
        if closest is None or (value < closest.value if comparison[0] == "<" else value > closest.value):
            tally.closest[statistic] = Closest(
                subject=subject.name,
                worker=subject.worker,
                step=subject.location.get("step"),
                statistic=statistic,
                value=float(value),
                comparison=comparison,
                limit=float(limit),
            )
        if tally.has_open:
            mode = subject.location.get("mode")
            tally.close((subject.name, subject.worker, subject.node, mode, statistic, comparison))
        return ()

    def finding(
        self,
        subject: Subject,
        message: str | None = None,
        statistic: str | None = None,
        value: float | None = None,
        comparison: str | None = None,
        limit: float | None = None,
    ) -> Finding:
        """A finding at the place of `subject`, for what `judge` cannot express."""
        value = None if value is None else float(value)
        limit = None if limit is None else float(limit)
        return Finding(
            subject=subject.name,
            worker=subject.worker,
            node=subject.node,
            statistic=statistic,
            value=value,
            worst=value,
            comparison=comparison,
            limit=limit,
            message=message or f"{statistic} {value:.6g} {comparison} {limit:g}",
            **subject.location,
        )

    def observe(self, subject: Subject) -> None:
        """Count a point that is measured and needs no verdict."""
        self._tally.points += 1
        self._tally.subjects.add((subject.name, subject.worker, subject.node))

    def skip(
        self, subject: Subject | None, reason: str, have: int | None = None, need: int | None = None
    ) -> None:
        """Record a point that cannot be judged.

        Args:
            subject: What could not be judged, if it is one thing.
            reason: Why, in a few words; points are counted by it.
            have: How many there are of what is too few.
            need: How many the rule needs.
        """
        self._tally.skip(reason, have, need)


class TensorRule(Rule):
    """A rule over the tensors of a trial."""

    exclude: Annotated[
        tuple[Regex, ...], Meta(description="Tensors to leave out: patterns that match anywhere.", local=True)
    ] = ()
    start_step: Annotated[int, Meta(ge=0, description="First global step to judge.")] = 0
    end_step: Annotated[int | None, Meta(ge=0, description="Global step at which to end; not judged.")] = None

    @constraint("start_step", "end_step")
    def _steps_in_order(self) -> str | None:
        if self.end_step is not None and self.end_step <= self.start_step:
            return f"end_step={self.end_step} must be above start_step={self.start_step}"
        return None

    @abstractmethod
    def reads(self) -> Reads | tuple[Reads, ...]:
        """What the rule needs, from its parameters alone; called once, before data is opened."""

    @abstractmethod
    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge one step; called for every step that has a tensor of `reads`, in order."""


class ProfilerRule(Rule):
    """A rule over profiler output, called for one scan window after the other."""

    group: ClassVar[str] = "profiler"

    scan_interval_us: Annotated[
        int, Meta(gt=0, unit="microseconds", description="Length of a scan window.")
    ] = 60_000_000

    @abstractmethod
    def reads(self) -> ScanReads | tuple[ScanReads, ...]:
        """What the rule needs, from its parameters alone; called once, before data is opened."""

    @abstractmethod
    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Judge one window: the data whose times (of events: the ends) lie in `[start, end)`.

        Called for every window that has data of `reads`, in order.
        """

    def measurements(self) -> Measurements | None:
        """What the rule measured, apart from its verdict; asked once, after `finish`.

        Without an answer the engine counts: windows with findings, findings, points.
        """
        return None


def _labelled(lines: list[str], label: str) -> str:
    """The paragraph that begins with `label`, without it."""
    for index, line in enumerate(lines):
        if line.startswith(label):
            rest = [line[len(label) :]]
            for following in lines[index + 1 :]:
                if not following or re.match(r"[A-Z][a-z ]+:", following):
                    break
                rest.append(following)
            return " ".join(" ".join(rest).split())
    return ""
