"""Dispatch: from findings to events, and from events to actions, each once.

A rule that begins to fire is one event, however many findings follow; it is dispatched at once, so
that an action can still do something about the job. The journal remembers what was sent.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from smdbg_core.action import ActionResult, Event
from smdbg_core.discovery.hooks import Hooks
from smdbg_core.engine.action_roster import ActionEntry
from smdbg_core.engine.journal import Journal, JournalRow, JournalStatus
from smdbg_core.errors import ActionError, DataError, PluginExecutionError, UnknownOutcomeError, Veto
from smdbg_core.findings import Finding
from smdbg_core.masking import masked
from smdbg_core.outcomes import ActionRecord, ActionStatus
from smdbg_core.strict_text import strict_text

__all__ = ["Delivery", "Dispatcher", "Watch", "event_id"]

_HOUR = 3600.0
_LONGEST_DETAIL = 2000


class Delivery(NamedTuple):
    """What became of one event at one action."""

    status: ActionStatus
    detail: str
    requests: Sequence[dict[str, Any]] = ()
    through: float | None = None
    """Up to where the journal knows further events to be part of this one."""


_REPEATED = Delivery("suppressed", "")


@dataclass
class _Notice:
    """One event at one action, and everything that it stands for."""

    entry: ActionEntry
    event: Event
    delivery: Delivery
    count: int
    """Findings."""

    repeats: int = 0
    """Further events that a rate limit made part of this notice."""

    through: float | None = None
    """Place of the last of them."""

    superseded: bool = False
    """Whether later data changed what it told of."""


class Dispatcher:
    """Everything that is dispatched in one evaluation.

    Args:
        hooks: The plugins around each dispatch.
        run: URI of the run.
        job_name: SageMaker's name of the training job, if it is known.
        state: Folder of the journal; it is made when something is dispatched. `None` for one in memory.
        dry_run: Say what would be sent; send nothing and write nothing.

    Attributes:
        warnings: What users should know.
    """

    def __init__(
        self,
        hooks: Hooks,
        run: str,
        *,
        job_name: str | None = None,
        state: Path | None = None,
        dry_run: bool = False,
    ) -> None:
        self.warnings: list[str] = []
        self.run = ""
        self.at(run)
        self.job_name = job_name
        self._hooks = hooks
        self._state = state
        self._dry_run = dry_run
        self._journal: Journal | None = None
        self._notices: list[_Notice] = []
        self._latest: dict[tuple[str, str, str], _Notice] = {}
        self._by_event: dict[tuple[str, str], _Notice] = {}

    def at(self, run: str) -> None:
        """Say where the run was found."""
        # Receivers are elsewhere: neither a relative path nor a name that is no text means anything there.
        self.run = strict_text(run if "://" in run else str(Path(run).resolve()))

    def begin_again(self) -> None:
        """The run is judged anew from its start: what was sent stays, unless it happens again superseded."""
        self._latest.clear()
        for notice in self._notices:
            notice.superseded = True
            notice.repeats = 0

    def watch(
        self, name: str, rule: str, plugin: str, severity: str, entries: Sequence[ActionEntry]
    ) -> Watch | None:
        """A watch over one rule instance, `None` if it has no actions."""
        return Watch(self, name, rule, plugin, severity, entries) if entries else None

    def notify(self, event: Event, entries: Sequence[ActionEntry]) -> list[_Notice]:
        """Dispatch an event with those actions that want to know of it.

        Returns:
            The notices that stand for it: what follows it is counted there.
        """
        return [self._notice(event, entry) for entry in entries if event.state in entry.action.states]

    def _notice(self, event: Event, entry: ActionEntry) -> _Notice:
        key = entry.name, event.name, event.state
        before = self._by_event.get((event.id, entry.name))
        if before is not None and before.superseded:
            before.superseded = False
            before.count = event.count
            self._latest[key] = before
            return before
        latest, place = self._latest.get(key), _position(event)
        known = latest is not None and latest.through is not None and place <= latest.through
        delivery = _REPEATED if known else self.deliver(entry, event)
        if delivery.status == "suppressed" and latest is not None:
            latest.count += event.count
            latest.repeats += 1
            latest.through = place if latest.through is None else max(place, latest.through)
            return latest
        notice = _Notice(entry, event, delivery, event.count, through=delivery.through)
        self._notices.append(notice)
        self._by_event[event.id, entry.name] = notice
        self._latest[key] = notice
        return notice

    def deliver(self, entry: ActionEntry, event: Event, *, again: bool = False) -> Delivery:
        """Carry out one action for one event, unless the journal says that this was done.

        Args:
            entry: The action.
            event: What happened.
            again: Somebody asked for a repetition: neither an unknown outcome nor a limit is in the way.
        """
        journal = self._opened()
        with journal.claim(event.id, entry.name):
            try:
                row = journal.find(event.id, entry.name)
                settled = self._held_back(entry, event) if row is None else self._settled(row, entry, again)
                if settled is not None:
                    return settled
                if row is not None:
                    event = row.recorded_event
                journal.begin(event, entry)
            except DataError as error:
                self._without(error)
            delivery = self._call(entry, event)
            status: JournalStatus = "sent"
            if delivery.status == "failed" or delivery.status == "unknown" or delivery.status == "vetoed":
                status = delivery.status
            try:
                self._opened().settle(event.id, entry.name, status, delivery.detail)
            except DataError as error:
                self._without(error)
            return delivery

    def _settled(self, row: JournalRow, entry: ActionEntry, again: bool) -> Delivery | None:
        """What an earlier evaluation left to say, `None` if it is to be dispatched again."""
        if row.status == "sent":
            return Delivery("already_sent", row.detail, through=row.through)
        if row.status == "suppressed" and not again:
            return Delivery("suppressed", row.detail, through=row.through)
        if row.status in ("in_flight", "unknown") and not (again or entry.action.retry_unknown):
            detail = row.detail
            if row.status == "in_flight":
                detail = (
                    "an earlier dispatch was interrupted, and nothing tells whether it took effect; "
                    f"`smdbg journal retry {row.event[:12]}` repeats it"
                )
                self._opened().settle(row.event, row.action, "unknown", detail)
            return Delivery("unknown", detail, through=row.through)
        return None

    def _held_back(self, entry: ActionEntry, event: Event) -> Delivery | None:
        """What a rate limit says against a new event."""
        journal, action, now = self._opened(), entry.action, time.time()
        detail = ""
        last = journal.last_attempt(entry.name, event.run, event.name, event.state)
        if last is not None and 0 <= now - last < action.min_interval:
            detail = f"this rule's last notice is less than min_interval={action.min_interval:g} s old"
        elif action.max_per_hour is not None:
            sent = journal.sent_since(entry.name, now - _HOUR)
            if sent >= action.max_per_hour:
                detail = f"{sent} notices went out within an hour; max_per_hour={action.max_per_hour}"
        if not detail:
            return None
        if (entry.name, event.name, event.state) not in self._latest:  # nothing else remembers it
            journal.begin(event, entry, "suppressed", detail)
        return Delivery("suppressed", detail)

    def _call(self, entry: ActionEntry, event: Event) -> Delivery:
        """Dispatch through the hooks; whatever goes wrong is a result."""
        try:
            result: ActionResult = self._hooks.dispatch_action(entry.action, event, self._dry_run)
        except Veto as veto:
            return Delivery("vetoed", _shortened(veto.reason))
        except UnknownOutcomeError as error:
            return Delivery("unknown", _shortened(str(error)))
        except (ActionError, PluginExecutionError) as error:
            return Delivery("failed", _shortened(str(error)))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - isolation: the finding must not be lost
            return Delivery("failed", _shortened(f"{entry.plugin}: {type(error).__name__}: {error}"))
        return Delivery("dry_run" if self._dry_run else "sent", _shortened(result.detail), result.requests)

    def _opened(self) -> Journal:
        if self._journal is not None:
            return self._journal
        try:
            self._journal = Journal(self._state, copy=self._dry_run)
        except DataError as error:
            return self._without(error)
        return self._journal

    def _without(self, error: DataError) -> Journal:
        """Go on with a journal in memory: an alert is worth more than the memory of it."""
        if self._journal is not None:
            self._journal.close()
        self._journal = Journal(None)
        self.warnings.append(
            f"{error}; actions are dispatched all the same, and a rerun dispatches them again"
        )
        return self._journal

    def records(self) -> list[ActionRecord]:
        """What became of every event at every action."""
        return [_record(notice) for notice in self._notices]

    def close(self) -> None:
        """Write what each notice stands for, and close the journal."""
        if self._journal is None:
            return
        try:
            for notice in self._notices:
                self._journal.extend(notice.event.id, notice.entry.name, notice.count, notice.through)
        except DataError as error:
            self.warnings.append(str(error))
        finally:
            self._journal.close()
            self._journal = None


class Watch:
    """The state of one rule instance, as its actions are to see it.

    Args:
        dispatcher: What dispatches its events.
        name: Name of the instance.
        rule: Name of the rule.
        plugin: Identity of the rule's plugin.
        severity: Severity of the rule.
        entries: Its actions.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        name: str,
        rule: str,
        plugin: str,
        severity: str,
        entries: Sequence[ActionEntry],
    ) -> None:
        self._dispatcher = dispatcher
        self._identity = {"name": name, "rule": rule, "plugin": plugin, "severity": severity}
        self._entries = entries
        self._fired: Event | None = None
        self._notices: list[_Notice] = []

    def judged(self, findings: Sequence[Finding], *, clear: bool, waiting: bool = False) -> None:
        """Take note of what was found at one step or in one window.

        Args:
            findings: What was found, in order.
            clear: Whether something was judged, and no episode is open any more.
            waiting: Whether they were found while nothing new came. How long that was is no part of the
                event's id then: who starts again waits anew.
        """
        if findings and self._fired is None:
            place = _place(findings[0])[:-1] if waiting else _place(findings[0])
            self._fired = self._event("fired", findings[0], len(findings), place)
            self._notices = self._dispatcher.notify(self._fired, self._entries)
        elif findings:
            for notice in self._notices:
                notice.count += len(findings)
        elif clear and self._fired is not None:
            fired, self._fired = self._fired, None
            cleared = self._event("cleared", fired.finding, 1, [fired.id])
            self._dispatcher.notify(cleared, self._entries)

    def _event(
        self, state: Literal["fired", "cleared"], finding: Finding | None, count: int, place: list[Any]
    ) -> Event:
        dispatcher = self._dispatcher
        return Event(
            id=event_id(dispatcher.run, self._identity["name"], state, place),
            run=dispatcher.run,
            job_name=dispatcher.job_name,
            state=state,
            finding=finding,
            count=count,
            time=time.time(),
            **self._identity,
        )


def event_id(run: str, name: str, state: str, place: Sequence[Any]) -> str:
    """The id of a change of state: the same whenever the same run is judged again.

    Args:
        run: URI of the run, or its absolute path.
        name: Name of the rule's instance.
        state: `fired` or `cleared`.
        place: What tells this change from others of the same rule.
    """
    text = json.dumps([run, name, state, list(place)], ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def _place(finding: Finding) -> list[Any]:
    """Where the first finding lies, and its value: a run that was recorded anew is another one."""
    value = None if finding.value is None else repr(finding.value)
    return [
        finding.subject,
        finding.worker,
        finding.node,
        finding.step,
        finding.mode,
        finding.window_start_us,
        finding.statistic,
        value,
    ]


def _position(event: Event) -> float:
    """The place of an event in the data, so that places can be compared; the end is beyond all of them."""
    finding = event.finding
    place = None if finding is None else finding.step if finding.step is not None else finding.window_start_us
    return float("inf") if place is None else float(place)


def _record(notice: _Notice) -> ActionRecord:
    entry, event, delivery = notice.entry, notice.event, notice.delivery
    detail = delivery.detail
    if notice.superseded:
        detail += "; superseded: data that came later changed what it told of"
    if notice.repeats:
        times = "once more" if notice.repeats == 1 else f"{notice.repeats} more times"
        detail += f"; it {event.state} {times}, which a rate limit made part of this notice"
    return ActionRecord(
        action=entry.type,
        name=entry.name,
        plugin=entry.plugin,
        rule=event.name,
        event=event.id,
        state=event.state,
        status=delivery.status,
        count=notice.count,
        superseded=notice.superseded,
        detail=detail,
        requests=list(delivery.requests),
    )


def _shortened(text: str) -> str:
    """What an action said, as journal, reports and logs may keep it."""
    text = masked(text)
    return text if len(text) <= _LONGEST_DETAIL else text[: _LONGEST_DETAIL - 3] + "..."
