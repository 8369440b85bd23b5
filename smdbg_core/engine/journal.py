"""The journal: what was dispatched, so that a notice is sent once and none is forgotten.

One row for each event and action. It is written before the dispatch and settled after it, so that a
process that dies in between leaves a row *in flight*: nobody knows whether that action took effect.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from smdbg_core.action import Event
from smdbg_core.engine.action_roster import ActionEntry
from smdbg_core.errors import CorruptDataError, DataAccessError

__all__ = ["Journal", "JournalRow", "state_folder"]

FILE_NAME = "journal.sqlite3"
LOCK_NAME = "journal.lock"
VERSION = 1

JournalStatus: TypeAlias = Literal["in_flight", "sent", "failed", "vetoed", "unknown", "suppressed"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS notices (
    event TEXT NOT NULL,
    action TEXT NOT NULL,
    type TEXT NOT NULL,
    plugin TEXT NOT NULL,
    run TEXT NOT NULL,
    rule TEXT NOT NULL,
    state TEXT NOT NULL,
    status TEXT NOT NULL,
    detail TEXT NOT NULL,
    findings INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    begun REAL NOT NULL,
    settled REAL,
    through REAL,
    content TEXT NOT NULL,
    PRIMARY KEY (event, action)
);
CREATE INDEX IF NOT EXISTS by_rule ON notices (action, run, rule, state);
"""


class JournalRow(NamedTuple):
    """One event at one action."""

    event: str
    action: str
    """Name of the action's instance."""

    type: str
    plugin: str
    run: str
    rule: str
    state: str
    status: JournalStatus
    detail: str
    findings: int
    """How many findings the notice stands for."""

    attempts: int
    begun: float
    """Seconds since the epoch at which the last attempt began."""

    settled: float | None
    through: float | None
    """Step, or microseconds, up to which further notices of this rule are part of this one."""

    content: str

    @property
    def recorded_event(self) -> Event:
        """The event as it was first dispatched: a repetition sends the same."""
        return msgspec.convert(json.loads(self.content), Event)


def state_folder() -> Path:
    """The folder for what outlives a command: `smdbg` below the XDG state folder."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    root = Path(configured) if Path(configured).is_absolute() else Path.home() / ".local" / "state"
    return root / "smdbg"


class Journal:
    """An opened journal.

    Args:
        folder: Where it lies; it is made if it is not there. `None` keeps the journal in memory.
        copy: Work on a copy in memory: nothing is created or changed, and a journal that is not there
            is empty.

    Raises:
        DataAccessError: It cannot be opened or written.
        CorruptDataError: The file is no journal.
    """

    def __init__(self, folder: Path | None, *, copy: bool = False) -> None:
        self._folder = folder
        self._lock: int | None = None
        self._path = str(folder / FILE_NAME) if folder is not None else ":memory:"
        with self._explained(), contextlib.ExitStack() as undo:
            if folder is not None and not copy:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
                undo.callback(os.close, self._lock)
            file = ":memory:" if folder is None or copy else folder / FILE_NAME
            self._connection = sqlite3.connect(file, timeout=30, isolation_level=None)
            undo.callback(self._connection.close)
            if copy and folder is not None and (folder / FILE_NAME).exists():
                self._copy(folder / FILE_NAME)
            self._connection.execute("PRAGMA synchronous=FULL")
            self._check_version(self._connection)
            self._connection.executescript(_SCHEMA + f"PRAGMA user_version={VERSION};")
            undo.pop_all()

    def _copy(self, file: Path) -> None:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as source:
            source.backup(self._connection)

    def _check_version(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            message = f"it is of a later release (version {version}; known is {VERSION}): upgrade smdbg"
            raise DataAccessError(self._path, message)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @contextlib.contextmanager
    def claim(self, event: str, action: str) -> Iterator[None]:
        """Keep every other process from dispatching this event with this action meanwhile.

        The operating system takes the claim from a process that dies. So a row that is in flight
        although nobody holds the claim belongs to a process that died. Where files cannot be locked,
        nobody is kept out.
        """
        # A byte of the lock file for each pair; a collision only makes one wait for the other.
        place = zlib.crc32(f"{event} {action}".encode())
        held = self._lock is not None and _lock(self._lock, place)
        try:
            yield
        finally:
            if held and self._lock is not None:  # closing the journal lets go of it, too
                _unlock(self._lock, place)

    def begin(
        self, event: Event, entry: ActionEntry, status: JournalStatus = "in_flight", detail: str = ""
    ) -> None:
        """Write that a dispatch begins, or begins again, or (with another status) does not."""
        now = time.time()
        content = json.dumps(msgspec.to_builtins(event))
        with self._explained():
            self._connection.execute(
                "INSERT INTO notices VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, NULL, ?)"
                " ON CONFLICT (event, action) DO UPDATE SET status=excluded.status, detail=excluded.detail,"
                " type=excluded.type, plugin=excluded.plugin, begun=excluded.begun, settled=excluded.settled,"
                " attempts=attempts+1",
                (
                    event.id,
                    entry.name,
                    entry.type,
                    entry.plugin,
                    event.run,
                    event.name,
                    event.state,
                    status,
                    detail,
                    event.count,
                    now,
                    None if status == "in_flight" else now,
                    content,
                ),
            )

    def settle(self, event: str, action: str, status: JournalStatus, detail: str) -> None:
        """Write what came of a dispatch."""
        with self._explained():
            self._connection.execute(
                "UPDATE notices SET status=?, detail=?, settled=? WHERE event=? AND action=?",
                (status, detail, time.time(), event, action),
            )

    def extend(self, event: str, action: str, findings: int, through: float | None) -> None:
        """Write how many findings a notice stands for, and up to where; less than before changes nothing."""
        with self._explained():
            self._connection.execute(
                "UPDATE notices SET findings=max(findings, :findings),"
                " through=coalesce(max(through, :through), through, :through)"
                " WHERE event=:event AND action=:action"
                " AND (findings<:findings OR coalesce(through<:through, :through IS NOT NULL))",
                {"event": event, "action": action, "findings": findings, "through": through},
            )

    def find(self, event: str, action: str) -> JournalRow | None:
        """The row of one event at one action."""
        rows = self._select("WHERE event=? AND action=?", event, action)
        return rows[0] if rows else None

    def rows(self, event_prefix: str = "") -> list[JournalRow]:
        """All rows, or those of events whose id begins so, in the order in which they were written."""
        return self._select("WHERE substr(event, 1, ?)=? ORDER BY rowid", len(event_prefix), event_prefix)

    def last_attempt(self, action: str, run: str, rule: str, state: str) -> float | None:
        """When the action last acted, or tried to, on such a change of one rule on one run."""
        return self._begun(
            "SELECT max(begun) FROM notices WHERE action=? AND run=? AND rule=? AND state=?"
            " AND status IN ('sent', 'failed', 'unknown')",
            action,
            run,
            rule,
            state,
        )

    def sent_since(self, action: str, since: float) -> int:
        """How many notices the action has sent since then."""
        with self._explained():
            (number,) = self._connection.execute(
                "SELECT count(*) FROM notices WHERE action=? AND begun>? AND status='sent'", (action, since)
            ).fetchone()
        return int(number)

    def _begun(self, query: str, *values: Any) -> float | None:
        with self._explained():
            (found,) = self._connection.execute(query, values).fetchone()
        return None if found is None else float(found)

    def _select(self, condition: str, *values: Any) -> list[JournalRow]:
        columns = ", ".join(JournalRow._fields)
        with self._explained():
            found = self._connection.execute(f"SELECT {columns} FROM notices {condition}", values)  # noqa: S608 - constants
            return [JournalRow(*row) for row in found]

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataAccessError(
                self._path, f"the journal cannot be used: {error.strerror or error}"
            ) from error
        except sqlite3.OperationalError as error:
            raise DataAccessError(self._path, f"the journal cannot be used: {error}") from error
        except sqlite3.Error as error:
            raise CorruptDataError(
                self._path, f"no journal, or a damaged one: {error}; move it away to begin a new one"
            ) from error


def _lock(descriptor: int, place: int) -> bool:
    """Wait for a byte of the file; whether this system and file system can lock it."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, place)
    except OSError:
        return False
    return True


def _unlock(descriptor: int, place: int) -> None:
    import fcntl

    fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, place)
