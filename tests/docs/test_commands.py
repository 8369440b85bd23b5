"""Commands in the documentation can be typed, and the README shows what they print."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from smdbg_core import Registry
from smdbg_core.cli.main import cli
from tests.command import Command

ROOT = Path(__file__).resolve().parents[2]
# The commands of the tutorial are executed by its own test; the pages of rules are made of the prose.
PAGES = sorted(
    path
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("**/*.md"))
    if path.stem != "tutorial" and path.parent.name != "prose"
)
BLOCK = re.compile(r"```(?:console|sh|)\n(.*?)```", re.DOTALL)
# Figures that depend on the arithmetic of the machine.
TINY = re.compile(r"\d\.\d+e-\d+")


def typed(page: Path) -> Iterator[str]:
    """Commands in blocks of code, to be typed as they stand."""
    for block in BLOCK.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            command = line.removeprefix("$ ")
            if command.startswith("smdbg ") and "[" not in command and not command.split()[1].isupper():
                yield re.sub(r"\s{2,}\S.*", "", command)


def mentioned(page: Path) -> Iterator[str]:
    """Commands within sentences, and the usage of commands: parts may be left out, or names stand for something."""
    text = page.read_text()
    yield from (" ".join(one.split()) for one in re.findall(r"(?<!`)`(smdbg\s[^`]+)`", text))
    yield from (block for block in BLOCK.findall(text) if block.startswith("smdbg ") and "[" in block)


def named(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that is meant, and what follows its name."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and re.fullmatch("[a-z][a-z-]*", words[0]):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, f"no command {words[0]}"
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_can_be_typed(page: Path) -> None:
    for line in typed(page):
        command, words = named(shlex.split(line, comments=True)[1:])
        context = command.make_context(line, words)
        for name, _, value in (text.partition("=") for text in context.params.get("parameters", ())):
            owner, _, parameter = name.rpartition(".")
            if f":{owner}" not in line:
                assert parameter in registered(owner).__parameters__, f"{line}: {value}"
        for name in (*context.params.get("rules", ()), *context.params.get("actions", ())):
            assert ".py:" in name or registered(name)
    for line in mentioned(page):
        command, _ = named(line.split()[1:])
        known = {spelling for one in command.params for spelling in (*one.opts, *one.secondary_opts)}
        ours = line.partition(" -- ")[0]
        options = {*re.findall(r"(?<![\w-])--?[a-z][a-z-]*", ours)}
        assert options <= {*known, "--help", "--version"}, line


def registered(name: str) -> type:
    """The rule or action of that name."""
    found: type = Registry().resolve(name, ("rule", "profiler rule", "action")).object
    return found


def test_there_are_commands_to_check() -> None:
    assert len([line for page in PAGES for line in typed(page)]) > 15
    assert len([line for page in PAGES for line in mentioned(page)]) > 60


def test_the_usage_of_run_names_every_option() -> None:
    usage = (ROOT / "docs/configuration.md").read_text().partition("```\n")[2].partition("```")[0]
    command, _ = named(["run"])
    for one in command.params:
        assert not isinstance(one, click.Option) or {*one.opts} & {*re.findall(r"--?[a-z][a-z-]*", usage)}


def test_the_readme_shows_what_is_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smdbg = Command(capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    smdbg("demo", "--output", "runs")
    for block in BLOCK.findall((ROOT / "README.md").read_text()):
        for part in re.split(r"^(?:\$ )?(?=smdbg )", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            if "<" in command or not command.startswith("smdbg run runs/"):
                continue
            done = smdbg(*shlex.split(command, comments=True)[1:])
            assert done.status == 1, done.err
            rest = iter([TINY.sub("e", line) for line in done.out.splitlines()])
            for line in shown.splitlines():
                assert not line or line.strip() == "..." or TINY.sub("e", line) in rest, line
    assert os.listdir("runs/sick").count("STOP") == 1
