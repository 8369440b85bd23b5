"""`smdbg plugins`."""

from __future__ import annotations

import json
import shlex
from typing import Any

import click

from smdbg_core.discovery.registry import PluginState, Registry
from smdbg_core.engine.config import load_config

__all__ = ["command"]


@click.command("plugins")
@click.option("--load", is_flag=True, help="Import every plugin, to see whether it works.")
@click.option(
    "--timings", is_flag=True, help="Import every plugin, and say how long it took; differs from run to run."
)
@click.option(
    "--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True
)
@click.option("--config", metavar="FILE", help="Configuration file.")
def command(load: bool, timings: bool, output_format: str, config: str | None) -> int:
    """List all plugins: where each comes from, what became of it, and the key that disables it."""
    registry = Registry(load_config(config).policy)
    rows = [_row(state, timings) for state in registry.states(load_all=load or timings)]
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1))
    else:
        _print(rows)
    for problem in registry.problems():
        click.echo(f"warning: {problem}", err=True)
    return 0


def _row(state: PluginState, timings: bool) -> dict[str, Any]:
    spec = state.spec
    row: dict[str, Any] = {
        "distribution": spec.distribution,
        "version": spec.version,
        "name": spec.name,
        "entry_point": spec.value,
        "kind": spec.kind,
        "state": state.state,
        "cause": state.cause,
        "disable": spec.qualified,
    }
    if timings:
        row["load_seconds"] = None if state.seconds is None else round(state.seconds, 4)
    return row


def _print(rows: list[dict[str, Any]]) -> None:
    if not rows:
        click.echo('No plugins are installed; pip install "smdbg-core[all]" installs the rules and actions.')
        return
    headings = {"kind": "kind", "disable": "plugin", "version": "version", "entry_point": "entry point"}
    wide = {key: max(len(title), *(len(row[key]) for row in rows)) for key, title in headings.items()}
    timed = "load_seconds" in rows[0]
    for row in ({**headings, "state": "state", "cause": None, "load_seconds": "load time"}, *rows):
        cells = [f"{row[key]:<{wide[key]}}" for key in headings]
        cells += [f"{_milliseconds(row['load_seconds']):>9}"] if timed else []
        click.echo("  ".join([*cells, row["state"]]) + (f": {row['cause']}" if row["cause"] else ""))
    hooks = [row["disable"] for row in rows if row["kind"] == "hooks" and row["state"] in ("found", "loaded")]
    if hooks:
        click.echo(f"\nHook plugins, in the order in which they are registered: {', '.join(hooks)}")
    click.echo(
        f"\nSMDBG_DISABLE={shlex.quote(rows[0]['disable'])} disables the first; "
        "so does `disable` in smdbg.toml."
    )


def _milliseconds(seconds: float | str | None) -> str:
    if isinstance(seconds, float):
        return f"{seconds * 1000:.0f} ms"
    return seconds or "-"
