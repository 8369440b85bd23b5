"""Actions: the contract between the engine and everyone who writes one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Struct

from smdbg_core.findings import Finding
from smdbg_core.finite import finite
from smdbg_core.parameters import Meta, Parameterized

__all__ = ["Action", "ActionResult", "Event"]


class Event(Struct, frozen=True, kw_only=True):
    """One change of state of one rule: what an action is told."""

    id: str
    """The same for the same change, however often it is delivered."""

    run: str
    """URI of the run."""

    job_name: str | None = None
    """SageMaker's name of the training job, where somebody said it."""

    rule: str
    name: str
    """Name of the rule's instance."""

    plugin: str
    severity: str = "warning"
    state: Literal["fired", "cleared"]
    finding: Finding | None = None
    """The first finding behind the change."""

    count: int = 1
    """How many findings the event stands for when it is dispatched; the report has the final count."""

    time: float
    """Seconds since the epoch at which the change was noticed."""

    @property
    def headline(self) -> str:
        """One line: `VanishingGradient fired`, and on which job."""
        return f"{self.name} {self.state}" + (f" on {self.job_name}" if self.job_name else "")

    @property
    def text(self) -> str:
        """The event for people: job, run, rule, and place and values of the first finding."""
        lines = [f"rule: {self.name}" + (f" ({self.rule})" if self.rule != self.name else "")]
        lines += [f"job: {self.job_name}"] if self.job_name else []
        lines.append(f"run: {self.run}")
        if self.finding is not None:
            lines += [f"{self.finding.subject}: {self.finding.message}", f"at: {_place(self.finding)}"]
        return "\n".join(lines)

    def document(self) -> dict[str, Any]:
        """The event as strict JSON has it: dicts, lists, texts, finite numbers."""
        return finite(msgspec.to_builtins(self))  # type: ignore[no-any-return]


class ActionResult(Struct, frozen=True, kw_only=True):
    """What came of a dispatch."""

    detail: str
    """What was done, or what would be done in a dry run; it holds no secrets."""

    requests: list[dict[str, Any]] = []
    """In a dry run: everything that would be sent, in order, with secrets by name only."""


class Action(Parameterized):
    """Something to do when a rule's state changes; its fields are its parameters.

    An action resolves its target when it is dispatched, not when it is made. The engine calls it once
    for each rule and change of state; `event.id` stays the same when a delivery is repeated.
    """

    policy: ClassVar[Mapping[str, Any] | None] = None
    """The least that AWS must allow, as an IAM policy; `smdbg explain` prints it."""

    states: Annotated[
        tuple[Literal["fired", "cleared"], ...],
        Meta(description="Changes of state to act on.", local=True),
    ] = ("fired",)
    min_interval: Annotated[
        float,
        Meta(
            ge=0,
            unit="seconds",
            local=True,
            description="Further notices of one rule on one run within this time are suppressed and counted.",
        ),
    ] = 300.0
    max_per_hour: Annotated[
        int | None,
        Meta(gt=0, local=True, description="Notices of this action in an hour; further ones are suppressed."),
    ] = None
    retry_unknown: Annotated[
        bool,
        Meta(
            local=True,
            description="Whether to act again when a crash left it unknown whether the action took effect.",
        ),
    ] = True

    @abstractmethod
    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        """Act, or say what would be done.

        Args:
            event: What happened.
            dry_run: Say what would be sent, and send nothing.

        Raises:
            ActionError: It could not be done; the message says what to try.
            UnknownOutcomeError: Nothing tells whether it took effect.
        """


def _place(finding: Finding) -> str:
    parts = [] if finding.step is None else [f"step {finding.step}"]
    parts += [finding.mode] if finding.mode not in (None, "GLOBAL") else []
    if finding.window_start_us is not None:
        parts.append(f"{finding.window_start_us / 1e6:.3f} to {(finding.window_end_us or 0) / 1e6:.3f} s")
    parts += [part for part in (finding.node, finding.worker) if part is not None]
    return ", ".join(map(str, parts)) or "the end of the data"
