"""The table that commands print on a terminal."""

from __future__ import annotations

import os
import shutil
import sys

import click

from smdbg_core.discovery.registry import Registry
from smdbg_core.errors import SmdbgError
from smdbg_core.outcomes import Report
from smdbg_core.report.console import render_console
from smdbg_core.rule import Documentation

__all__ = ["render_table", "text_width"]

_WIDTH = 100
_WIDEST = 120


def render_table(report: Report, registry: Registry) -> str:
    """The report for people: as wide as the terminal, in colour only there, with what rules advise."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return render_console(
        report,
        _documentation(report, registry),
        width=text_width(),
        style=(lambda text, fg: click.style(text, fg=fg, bold=True)) if colour else None,
    )


def text_width() -> int:
    """Columns for text: those of the terminal, within reason."""
    return min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else _WIDTH


def _documentation(report: Report, registry: Registry) -> dict[str, Documentation]:
    found = {}
    for outcome in report.fired:
        try:
            found[outcome.rule] = registry.resolve(outcome.plugin).object.documentation()
        except SmdbgError:
            continue  # a rule from a file has no entry point
    return found
