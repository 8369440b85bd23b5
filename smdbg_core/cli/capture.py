"""`smdbg capture`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from smdbg_core.capture import Capture, Command

__all__ = ["command"]


@click.command("capture", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("profiler-output"),
    show_default=True,
    metavar="DIR",
    help="Root of the profiler output; the command finds it in SMDBG_PROFILER_OUTPUT.",
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 60),
    default=0.5,
    show_default=True,
    metavar="S",
    help="Seconds between ticks.",
)
@click.option(
    "--node", default="algo-1", show_default=True, metavar="NAME", help="Name of this machine, algo-<number>."
)
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND...")
def command(output: Path, interval: float, node: str, arguments: tuple[str, ...]) -> int:
    """Run a command and write this machine's system metrics meanwhile.

    The exit status is the command's; signals are passed on to it. `smdbg run DIR` judges what was written.
    """
    capture = Capture(
        output, interval, node=node, on_problem=lambda text: click.echo(f"smdbg: {text}", err=True)
    )
    environment = {**os.environ, "SMDBG_PROFILER_OUTPUT": os.path.abspath(output)}
    # Signals are the command's until the end marker is written.
    with Command(arguments, environment) as running, capture:
        status, problem = running.run()
    if problem is not None:
        click.echo(f"smdbg: {problem}", err=True)
    return status
