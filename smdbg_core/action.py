"""Actions: the contract between the engine and everyone who writes one."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

from msgspec import Struct

from smdbg_core.findings import Finding
from smdbg_core.parameters import Parameterized

__all__ = ["Action", "ActionResult", "Event"]


class Event(Struct, frozen=True, kw_only=True):
    """One change of state of one rule: what an action is told."""

    id: str
    """The same for the same change, however often it is delivered."""

    run: str
    """URI of the run."""

    job_name: str | None = None
    rule: str
    name: str
    """Name of the rule's instance."""

    plugin: str
    state: Literal["fired", "cleared"]
    finding: Finding | None = None
    """The first finding behind the change."""

    count: int = 1
    """How many findings the event stands for."""

    time: float
    """Seconds since the epoch."""


class ActionResult(Struct, frozen=True, kw_only=True):
    """What came of a dispatch."""

    detail: str
    """What was done, or what would be done in a dry run."""


class Action(Parameterized):
    """Something to do when a rule's state changes; its fields are its parameters.

    An action resolves its target when it is dispatched, not when it is made.
    """

    @abstractmethod
    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        """Act, or say what would be done.

        Raises:
            ActionError: It could not be done; the message says what to try.
        """
