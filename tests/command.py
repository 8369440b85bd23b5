"""Running `smdbg` within the process of a test."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from smdbg_core.cli.main import main

__all__ = ["Command", "Done"]


class Done(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


class Command:
    """Runs the command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Done:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Done(int(caught.value.code or 0), captured.out, captured.err)
