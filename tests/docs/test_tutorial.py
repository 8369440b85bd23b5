"""The tutorial, followed word by word in a fresh environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.wheels import Environment

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(
    r"(?:<!-- (?P<what>file|insert): (?P<where>[^>]*) -->\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL
)


class Block(NamedTuple):
    """A block of code, and what is to be done with it."""

    kind: str
    text: str
    what: str | None
    where: str | None


def blocks() -> Iterator[Block]:
    for found in BLOCK.finditer(TUTORIAL.read_text()):
        yield Block(found["kind"], found["text"], found["what"], found["where"])


class Reader:
    """Somebody who types what the tutorial says."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        self.folder = folder
        bin_folder = environment.python.parent
        script = bin_folder / "smdbg"
        script.write_text(f"#!{environment.python}\nfrom smdbg_core.cli.main import main\nmain()\n")
        script.chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "100",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
        }

    def type(self, command: str) -> str:
        """What the command prints."""
        if command.startswith("cd "):
            self.folder = self.folder / command.removeprefix("cd ")
            return ""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self._environment, capture_output=True, text=True
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + "\n".join(
            line for line in done.stderr.splitlines(keepends=True) if "WARNING" not in line
        )

    def write(self, block: Block) -> None:
        """Write a file, or insert lines into one."""
        assert block.where is not None
        if block.what == "file":
            (self.folder / block.where).write_text(block.text)
            return
        name, _, mark = block.where.partition(" after ")
        text = (self.folder / name).read_text()
        assert text.count(mark) == 1
        (self.folder / name).write_text(text.replace(mark, f"{mark}\n{block.text.rstrip()}"))


def session(text: str) -> Iterator[tuple[str, str]]:
    """Commands and the output that the page shows below each."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def matches(shown: str, printed: str) -> bool:
    """Whether what is printed is what is shown; `…` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


@pytest.mark.skipif(sys.platform == "win32", reason="typed into a shell of POSIX")
def test_word_by_word(tmp_path: Path) -> None:
    reader = Reader(Environment(tmp_path / "env"), tmp_path)
    probe = reader.type("python -m pip download --quiet --no-deps --dest probe hatchling && ls probe")
    if "hatchling" not in probe:
        pytest.skip("no package index: pip needs hatchling to build the wheel")
    transcript = []
    for block in blocks():
        if block.what is not None:
            reader.write(block)
        elif block.kind == "console":
            lines = []
            for command, shown in session(block.text):
                printed = reader.type(command)
                lines.append(f"$ {command}\n{printed if not matches(shown, printed) else shown}")
            transcript.append((block.text, "".join(lines)))
    if os.environ.get("SMDBG_UPDATE_TUTORIAL"):
        text = TUTORIAL.read_text()
        for old, new in transcript:
            text = text.replace(f"```console\n{old}```", f"```console\n{new}```")
        TUTORIAL.write_text(text)
    for shown, printed in transcript:
        assert printed == shown
