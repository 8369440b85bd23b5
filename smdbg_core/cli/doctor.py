"""`smdbg doctor`."""

from __future__ import annotations

import click
import msgspec

from smdbg_core.cli.main import FAILURE
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import load_config
from smdbg_core.engine.doctor import Check, examine

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
        click.echo(f"\n{len(diagnosis.judged)} of {rules} rules can judge this.")
    return 0 if diagnosis.judged else FAILURE


def _print(check: Check, wide: int) -> None:
    click.echo(f"{check.status}  {check.subject:<{wide}}  {check.message}")
    if check.fix is not None:
        click.echo(f"{'':<{wide + 8}}fix: {check.fix}")
