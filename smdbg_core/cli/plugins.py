"""`smdbg plugins`."""

from __future__ import annotations

import json

import click

from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import load_config

__all__ = ["command"]


@click.command("plugins")
@click.option("--load", is_flag=True, help="Import every plugin, to see whether it works.")
@click.option(
    "--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True
)
@click.option("--config", metavar="FILE", help="Configuration file.")
def command(load: bool, output_format: str, config: str | None) -> int:
    """List all plugins: where each comes from, what became of it, and the key that disables it."""
    registry = Registry(load_config(config).policy)
    rows = [
        {
            "distribution": state.spec.distribution,
            "version": state.spec.version,
            "name": state.spec.name,
            "kind": state.spec.kind,
            "state": state.state,
            "cause": state.cause,
            "load_seconds": None
            if state.seconds is None or output_format == "table"
            else round(state.seconds, 4),
            "disable": state.spec.qualified,
        }
        for state in registry.states(load_all=load)
    ]
    if output_format == "json":
        if not load:
            for row in rows:
                del row["load_seconds"]
        click.echo(json.dumps(rows, indent=1))
        return 0
    wide = {
        key: max((len(str(row[key])) for row in rows), default=0) for key in ("kind", "disable", "version")
    }
    for row in rows:
        cells = [f"{row[key]!s:<{wide[key]}}" for key in ("kind", "disable", "version")]
        click.echo("  ".join([*cells, str(row["state"])]) + (f": {row['cause']}" if row["cause"] else ""))
    hooks = [
        str(row["disable"]) for row in rows if row["kind"] == "hooks" and row["state"] in ("found", "loaded")
    ]
    if hooks:
        click.echo(f"\nHook plugins, in the order in which they are registered: {', '.join(hooks)}")
    if rows:
        click.echo(
            f"\nSMDBG_DISABLE={rows[0]['disable']} disables the first; so does `disable` in smdbg.toml."
        )
    else:
        click.echo('No plugins are installed; pip install "smdbg-core[all]" installs the rules and actions.')
    for problem in registry.problems():
        click.echo(f"warning: {problem}", err=True)
    return 0
