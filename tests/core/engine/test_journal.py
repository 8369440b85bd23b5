"""The journal: rows before and after, claims that die with their process, files that are no journal."""

from __future__ import annotations

import select
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from smdbg_core import Action, ActionResult, CorruptDataError, DataAccessError, Event, Finding
from smdbg_core.engine.action_roster import ActionEntry
from smdbg_core.engine.journal import FILE_NAME, Journal, state_folder


class Nothing(Action):
    """Does nothing."""

    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        return ActionResult(detail="")


ENTRY = ActionEntry("page", "Nothing", "acme==1[Nothing]", Nothing())


def event(number: int = 1, **changes: Any) -> Event:
    values: dict[str, Any] = {
        "id": f"{number:032x}",
        "run": "/data/run",
        "rule": "R",
        "name": "r",
        "plugin": "p",
        "state": "fired",
        "finding": Finding(subject="a\ud800\u00e9", message="m", value=float("nan"), worst=float("inf")),
        "time": 1.0,
    }
    return Event(**values | changes)


def test_a_row_is_written_before_and_settled_after(tmp_path: Path) -> None:
    with Journal(tmp_path / "state") as journal:
        assert journal.find(event().id, "page") is None
        journal.begin(event(), ENTRY)
        row = journal.find(event().id, "page")
        assert row is not None
        assert (row.status, row.attempts, row.settled, row.plugin) == ("in_flight", 1, None, ENTRY.plugin)
        journal.settle(event().id, "page", "failed", "no")
        journal.begin(event(time=99.0), ENTRY)
        journal.settle(event().id, "page", "sent", "yes")
        journal.extend(event().id, "page", 300, None)
        journal.extend(event().id, "page", 2, 7.0)
        journal.extend(event().id, "page", 2, 5.0)
        journal.extend(event().id, "page", 301, None)
    with Journal(tmp_path / "state") as journal:
        (row,) = journal.rows()
        assert (row.status, row.detail, row.attempts, row.findings) == ("sent", "yes", 2, 301)
        assert (row.settled is not None, row.through) == (True, 7.0)
        recorded = row.recorded_event
        assert recorded.time == 1.0  # what is sent again is what was sent first
        assert recorded.finding is not None
        assert (recorded.finding.subject, str(recorded.finding.value)) == ("a\ud800\u00e9", "nan")
        assert journal.rows("0" * 31) == [row]
        assert journal.rows("f") == []


def test_limits_count_what_was_sent(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        now = time.time()
        assert journal.last_attempt("page", "/data/run", "r", "fired") is None
        for number, status in enumerate(("sent", "failed", "suppressed", "vetoed")):
            journal.begin(event(number), ENTRY)
            journal.settle(event(number).id, "page", status, "")  # type: ignore[arg-type]
        last = journal.last_attempt("page", "/data/run", "r", "fired")
        assert last is not None
        assert last >= now
        assert journal.last_attempt("page", "/data/run", "r", "cleared") is None
        assert journal.sent_since("page", now - 1) == 1
        assert journal.sent_since("page", now + 60) == 0


def test_a_copy_changes_and_creates_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path / "none", copy=True) as journal:
        journal.begin(event(), ENTRY)
        assert len(journal.rows()) == 1
    assert not (tmp_path / "none").exists()
    with Journal(tmp_path) as journal:
        journal.begin(event(), ENTRY)
    before = {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir()}
    with Journal(tmp_path, copy=True) as journal:
        assert len(journal.rows()) == 1
        journal.begin(event(2), ENTRY)
    assert {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir()} == before


@pytest.mark.parametrize("copy", [False, True])
def test_what_is_no_journal_is_explained(tmp_path: Path, copy: bool) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"x" * 5000)
    with pytest.raises(CorruptDataError, match="move it away"):
        Journal(tmp_path, copy=copy)
    (tmp_path / FILE_NAME).unlink()
    later = sqlite3.connect(tmp_path / FILE_NAME)
    later.execute("PRAGMA user_version=99")
    later.close()
    with pytest.raises(DataAccessError, match="upgrade smdbg"):
        Journal(tmp_path, copy=copy)


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataAccessError, match="the journal cannot be used"):
        Journal(tmp_path / "file" / "state")


HOLDER = """
import sys, time
from pathlib import Path
from smdbg_core.engine.journal import Journal
journal = Journal(Path(sys.argv[1]))
with journal.claim("e", "page"):
    print("claimed", flush=True)
    time.sleep(60)
"""


@contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, folder], stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def claimed(process: subprocess.Popen[bytes], seconds: float) -> bool:
    return bool(select.select([process.stdout], [], [], seconds)[0])


def test_a_claim_excludes_others_and_dies_with_its_process(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with holder(tmp_path) as first:
        assert claimed(first, 30)
        with holder(tmp_path) as second:
            assert not claimed(second, 1)
            with Journal(tmp_path) as journal, journal.claim("another", "page"):
                pass  # other events are not held up
            first.kill()
            assert claimed(second, 30)


@pytest.mark.parametrize("value", ["/x/y", "relative", ""])
def test_the_state_folder(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", value)
    default = Path.home() / ".local" / "state" / "smdbg"
    assert state_folder() == (Path("/x/y/smdbg") if value == "/x/y" else default)
