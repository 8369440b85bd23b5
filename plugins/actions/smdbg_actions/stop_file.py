"""The action StopFile."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Annotated

from smdbg_core import Action, ActionError, ActionResult, Event, Meta

__all__ = ["StopFile"]


class StopFile(Action):
    """Creates a file that the training loop polls, so that it can end by itself.

    The file appears whole or not at all, and says as JSON why it is there. In the training loop:

        from smdbg_actions import stop_requested

        for step in range(1000):
            if stop_requested("runs/mine/STOP"):
                break

    Remove the file before training begins again.
    """

    path: Annotated[str, Meta(description="The file; its folder is made if it is not there.", local=True)]

    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        """Create the file; one that is there is left alone."""
        path = Path(self.path)
        if dry_run:
            return ActionResult(
                detail=f"would create {path}", requests=[{"path": str(path), "content": event.document()}]
            )
        try:
            if path.exists():
                return ActionResult(detail=f"{path} is there already")
            path.parent.mkdir(parents=True, exist_ok=True)
            self._create(path, json.dumps(event.document(), indent=1, allow_nan=False) + "\n")
        except OSError as error:
            message = f"{path}: the file cannot be created: {error.strerror or error}; try another `path`"
            raise ActionError(message) from error
        return ActionResult(detail=f"created {path}")

    def _create(self, path: Path, content: str) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
            os.chmod(temporary, 0o644)  # the training loop may be somebody else's
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
