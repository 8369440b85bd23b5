"""StopFile: a file that appears whole, and the helper that looks for it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from smdbg_actions import StopFile, stop_requested
from smdbg_core import ActionError, Event


def test_the_file_appears_with_the_reason(tmp_path: Path, event: Event) -> None:
    path = tmp_path / "deep" / "STOP"
    action = StopFile(path=str(path))
    assert not stop_requested(path)
    assert "would create" in action.dispatch(event, dry_run=True).detail
    assert not path.parent.exists()
    assert action.dispatch(event).detail == f"created {path}"
    assert stop_requested(path)
    assert json.loads(path.read_text()) == event.document()
    assert [one.name for one in path.parent.iterdir()] == ["STOP"]
    before = path.stat()
    assert action.dispatch(event).detail == f"{path} is there already"
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_the_file_is_never_seen_unfinished(tmp_path: Path, event: Event) -> None:
    path = tmp_path / "STOP"
    broken: list[str] = []
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            if stop_requested(path):
                try:
                    json.loads(path.read_text())
                except FileNotFoundError:
                    continue
                except ValueError as error:
                    broken.append(str(error))

    poller = threading.Thread(target=poll)
    poller.start()
    for _ in range(50):
        StopFile(path=str(path)).dispatch(event)
        path.unlink()
    done.set()
    poller.join()
    assert broken == []


def test_a_path_that_cannot_be_written_is_an_error(tmp_path: Path, event: Event) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ActionError, match=r"cannot be created: .*; try another `path`"):
        StopFile(path=str(tmp_path / "file" / "STOP")).dispatch(event)


def test_a_training_loop_pays_nothing_for_the_helper() -> None:
    code = "import sys; from smdbg_actions import stop_requested; stop_requested('x'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    roots = {name.partition(".")[0] for name in done.stdout.split()}
    assert not roots & {"smdbg_core", "boto3", "botocore", "numpy", "msgspec", "email_validator", "json"}
