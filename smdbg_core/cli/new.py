"""`smdbg new`."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

import click

from smdbg_core.errors import ConfigError
from smdbg_core.version import __version__

__all__ = ["command", "write_bundle"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@click.command("new")
@click.argument("bundle")
@click.option(
    "--directory", type=click.Path(path_type=Path), help="Where to make its folder.  [default: here]"
)
def command(bundle: str, directory: Path | None) -> int:
    """Write a distribution with a tensor rule, a profiler rule, an action, tests, docs and CI.

    BUNDLE is its name on the package index: lower-case words joined by hyphens, such as acme-rules.
    """
    target = (directory or Path()) / bundle
    written = write_bundle(bundle, target)
    click.echo(f"{target}: {len(written)} files.")
    click.echo(f"Next: cd {target} && python -m pip install -e . --group dev && python -m pytest")
    return 0


def write_bundle(bundle: str, target: Path) -> list[Path]:
    """Write a bundle into a folder that is not there yet.

    Returns:
        The files, relative to the folder.

    Raises:
        ConfigError: Another form of name, or the folder is there and holds something.
    """
    if not _NAME.fullmatch(bundle):
        message = f"{bundle!r} is no name for a distribution: write lower-case words joined by hyphens"
        raise ConfigError(message)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        message = f"{target} is there already; give another name or --directory"
        raise ConfigError(message)
    major, minor, *_ = __version__.split(".")
    names = {
        "bundle": bundle,
        "package": bundle.replace("-", "_"),
        "prefix": "".join(word.capitalize() for word in bundle.split("-")),
        "core": f">={major}.{minor},<{major}.{int(minor) + 1}",
    }
    written = []
    for source, relative in _templates(files("smdbg_core.cli").joinpath("bundle"), ""):
        path = Path(Template(relative).substitute(names).removesuffix(".template"))
        text = Template(source.read_text(encoding="utf-8")).substitute(names)
        try:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_text(text, encoding="utf-8")
        except OSError as error:
            message = f"{target / path} cannot be written: {error.strerror or error}"
            raise ConfigError(message) from error
        written.append(path)
    return written


def _templates(folder: Traversable, prefix: str) -> list[tuple[Traversable, str]]:
    """Template files and their paths, in which names are still to be filled in."""
    found = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _templates(entry, f"{path}/")
        elif entry.name.endswith(".template"):
            found.append((entry, path))
    return found
