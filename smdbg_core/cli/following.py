"""What people see while a job is followed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import click

from smdbg_core.findings import Finding
from smdbg_core.report.console import finding_line
from smdbg_core.report.json import render_finding_line

__all__ = ["interruptible", "teller", "waiter"]

_WORTH_SAYING = 5.0
"""Seconds of waiting that people are told of."""


def teller(output_format: str) -> Callable[[str, Finding], None]:
    """Prints findings as they are made.

    JSON lines have all of them. For people it is the first one on each subject, on the standard output
    with the table, else on the standard error, because the standard output is one document then.
    """
    seen: set[int] = set()

    def tell(name: str, finding: Finding) -> None:
        if output_format == "jsonl":
            click.echo(render_finding_line(name, finding), nl=False)
            return
        subject = hash((name, finding.key))
        if subject not in seen:
            seen.add(subject)
            click.echo(finding_line(name, finding), err=output_format != "table")

    return tell


def waiter(quiet: bool) -> Callable[[str], None]:
    """Says what is waited for, once for each thing, when the wait has lasted."""
    waited, since, told = "", 0.0, True

    def wait(what: str) -> None:
        nonlocal waited, since, told
        now = time.monotonic()
        if what != waited:
            waited, since, told = what, now, False
        if not told and now - since >= _WORTH_SAYING:
            told = True
            click.echo(f"smdbg: waiting for {what}", err=True)

    return (lambda _: None) if quiet else wait


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a polite request to end (SIGTERM) do what Ctrl-C does: end with a report."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
