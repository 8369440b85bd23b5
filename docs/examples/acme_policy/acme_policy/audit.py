"""Every dispatch leaves two lines in a file: one before it, one with what became of it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any

from smdbg_core import Action, ActionResult, Event, Veto, hookimpl

DEFAULT = "/var/log/smdbg/audit.jsonl"


# First of all wrappers, so that it also sees what the others veto.
@hookimpl(wrapper=True, tryfirst=True)
def smdbg_dispatch_action(
    action: Action, event: Event, dry_run: bool
) -> Generator[None, ActionResult, ActionResult]:
    """Write down a dispatch. Where this fails before the `yield`, nothing is sent."""
    about = {
        "event": event.id,
        "run": event.run,
        "job": event.job_name,
        "rule": event.name,
        "plugin": event.plugin,
        "state": event.state,
        "action": type(action).__name__,
        "dry_run": dry_run,
    }
    _append("begun", about)
    try:
        result = yield
    except BaseException as error:
        _append("vetoed" if isinstance(error, Veto) else "failed", about, str(error))
        raise
    _append("done", about, result.detail)
    return result


def _append(what: str, about: dict[str, Any], detail: str | None = None) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    record = {"time": now, "host": socket.gethostname(), "what": what, **about, "detail": detail}
    line = (json.dumps(record, allow_nan=False) + "\n").encode()
    path = os.environ.get("ACME_AUDIT_LOG", DEFAULT)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    try:
        # One write for each line: those of several processes do not mix.
        if os.write(file, line) != len(line):
            raise OSError(f"{path}: the line was cut short")
        os.fsync(file)
    finally:
        os.close(file)
