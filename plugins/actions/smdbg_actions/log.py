"""The action Log."""

from __future__ import annotations

import json
import logging
import os
from typing import Annotated, Literal

from smdbg_core import Action, ActionError, ActionResult, Event, Meta

__all__ = ["Log"]


class Log(Action):
    """Writes a line about the event: to a file as JSON, or through Python's logging.

    Without a path the line goes to the logger `smdbg.actions`, which prints warnings to standard error
    where nobody configured it otherwise.
    """

    path: Annotated[str | None, Meta(description="File to which a line of JSON is appended.", local=True)] = (
        None
    )
    level: Annotated[
        Literal["info", "warning", "error"], Meta(description="Level of the logged line.", local=True)
    ] = "warning"

    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        """Write the line."""
        where = f"{self.path}" if self.path else "the logger smdbg.actions"
        document = event.document()
        line = json.dumps(document, allow_nan=False) if self.path else f"{event.headline}: {_one_line(event)}"
        if dry_run:
            content = document if self.path else line
            return ActionResult(detail=f"would write a line to {where}", requests=[{"line": content}])
        if self.path:
            self._append(self.path, line)
        else:
            logger = logging.getLogger("smdbg.actions")
            logger.log(logging.getLevelNamesMapping()[self.level.upper()], "%s", line)
        return ActionResult(detail=f"wrote a line to {where}")

    def _append(self, path: str, line: str) -> None:
        try:
            # One write to a file that is open for appending: lines of several processes do not mix.
            opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(opened, line.encode() + b"\n")
            finally:
                os.close(opened)
        except OSError as error:
            message = f"{path}: the line cannot be written: {error.strerror or error}; try another `path`"
            raise ActionError(message) from error


def _one_line(event: Event) -> str:
    return "; ".join(event.text.splitlines())
