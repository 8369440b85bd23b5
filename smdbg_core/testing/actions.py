"""`check_action`: the whole contract of an action, and a recorder of what is dispatched."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from smdbg_core.action import Action, ActionResult, Event
from smdbg_core.findings import Finding
from smdbg_core.hookspecs import hookimpl
from smdbg_core.testing.contract import Check, ContractError, common_checks, require, run_checks

__all__ = ["ActionRecorder", "action_checks", "check_action", "example_event"]


def example_event(**changes: Any) -> Event:
    """An event as a rule that fires makes it."""
    finding = Finding(
        subject="gradient/a", step=7, last_step=7, mode="TRAIN", mode_step=7, message="too small"
    )
    values: dict[str, Any] = {
        "id": "0" * 32,
        "run": "runs/example",
        "rule": "VanishingGradient",
        "name": "VanishingGradient",
        "plugin": "example==1.0[VanishingGradient]",
        "state": "fired",
        "finding": finding,
        "time": 1_700_000_000.0,
    }
    return Event(**{**values, **changes})


class ActionRecorder:
    """A hook plugin that records every dispatch instead of carrying it out.

    Register it with the hooks of a test, or look at `events` after an evaluation.
    """

    def __init__(self) -> None:
        self.events: list[tuple[Action, Event]] = []

    @hookimpl(tryfirst=True)
    def smdbg_dispatch_action(self, action: Action, event: Event, dry_run: bool) -> ActionResult:
        """Remember the event."""
        self.events.append((action, event))
        return ActionResult(detail="recorded")


def check_action(action: Action) -> None:
    """Check the whole contract of an action.

    Raises:
        ContractError: Everything that does not hold, together.
    """
    run_checks(type(action), action_checks(action))


def action_checks(action: Action) -> list[Check]:
    """The properties of the contract one by one, to be parametrized over."""
    return [
        *common_checks(type(action), lambda: action),
        Check("dry-run-says-what-it-would-do", lambda: _check_dry_run(action)),
        Check("dry-run-opens-no-connection", lambda: _check_silence(action)),
        Check("dry-run-is-deterministic", lambda: _check_determinism(action)),
        Check("dry-run-takes-cleared-events", lambda: _check_cleared(action)),
    ]


def _check_dry_run(action: Action) -> None:
    result = action.dispatch(example_event(), dry_run=True)
    require(
        isinstance(result, ActionResult), f"dispatch returns {type(result).__name__}, not an ActionResult"
    )
    require(bool(result.detail.strip()), "the dry run does not say what it would do")


def _check_silence(action: Action) -> None:
    with _no_connections():
        action.dispatch(example_event(), dry_run=True)


def _check_determinism(action: Action) -> None:
    one, other = (action.dispatch(example_event(), dry_run=True) for _ in range(2))
    require(one == other, "two dry runs of one event differ")


def _check_cleared(action: Action) -> None:
    action.dispatch(example_event(state="cleared", finding=None), dry_run=True)


@contextmanager
def _no_connections() -> Iterator[None]:
    """Make every attempt to connect an error."""

    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        raise ContractError("the dry run opens a network connection")

    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    socket.socket.connect = refuse  # type: ignore[method-assign]
    socket.socket.connect_ex = refuse  # type: ignore[method-assign]
    try:
        yield
    finally:
        socket.socket.connect = connect  # type: ignore[method-assign]
        socket.socket.connect_ex = connect_ex  # type: ignore[method-assign]
