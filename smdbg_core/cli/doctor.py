"""`smdbg doctor`."""

from __future__ import annotations

import shutil
import textwrap

import click
import msgspec

from smdbg_core.cli.main import FAILURE
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import load_config
from smdbg_core.engine.doctor import Check, examine
from smdbg_core.report.console import plain

__all__ = ["command"]


@click.command("doctor")
@click.argument("path")
@click.option(
    "--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True
)
@click.option("--config", metavar="FILE", help="Configuration file.")
def command(path: str, output_format: str, config: str | None) -> int:
    """Say what of the data at PATH can be judged, what cannot, and what would help.

    The exit status is 0 if any rule can judge the data, else 3.
    """
    diagnosis = examine(path, Registry(load_config(config).policy))
    if output_format == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(diagnosis), indent=1))
    else:
        wide = max(len(check.subject) for check in diagnosis.checks)
        for check in diagnosis.checks:
            _print(check, wide)
        rules = len(diagnosis.judged) + len(diagnosis.unjudged)
        if rules:
            click.echo(f"\n{len(diagnosis.judged)} of {rules} rules can judge this.")
    return 0 if diagnosis.judged else FAILURE


def _print(check: Check, wide: int) -> None:
    indent = " " * (wide + 8)
    width = max(60, shutil.get_terminal_size((110, 24)).columns)
    head = f"{check.status}  {check.subject:<{wide}}  "
    lines = textwrap.wrap(
        plain(head + check.message),
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if check.fix is not None:
        lines += textwrap.wrap(
            plain(f"fix: {check.fix}"),
            width,
            initial_indent=indent,
            subsequent_indent=indent + "     ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    click.echo("\n".join(lines))
