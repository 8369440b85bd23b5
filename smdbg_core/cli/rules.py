"""`smdbg rules`."""

from __future__ import annotations

import json
import textwrap
from itertools import groupby

import click

from smdbg_core.cli.table import text_width
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import load_config
from smdbg_core.errors import PluginError
from smdbg_core.rule import ALL_FRAMEWORKS

__all__ = ["command"]


@click.command("rules")
@click.option(
    "--framework",
    type=click.Choice(ALL_FRAMEWORKS, case_sensitive=False),
    help="Only rules for this framework.",
)
@click.option(
    "--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True
)
@click.option("--config", metavar="FILE", help="Configuration file.")
def command(framework: str | None, output_format: str, config: str | None) -> int:
    """List the rules that are installed, by group."""
    registry = Registry(load_config(config).policy)
    rows, broken = [], []
    for spec in (*registry.rules(), *registry.profiler_rules()):
        try:
            rule = registry.load(spec).object
        except PluginError as error:
            broken.append(str(error))
            continue
        if framework is None or framework.lower() in rule.frameworks:
            rows.append(
                {
                    "name": registry.shortest_name(spec),
                    "kind": spec.kind,
                    "group": rule.group,
                    "frameworks": list(rule.frameworks),
                    "severity": rule.severity,
                    "summary": rule.documentation().summary,
                    "plugin": spec.identity,
                }
            )
    rows.sort(key=lambda row: (row["group"], row["name"]))
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1))
    else:
        _print(rows)
    for problem in (*broken, *registry.problems()):
        click.echo(f"warning: {problem}", err=True)
    if not rows and not broken and framework is None:
        click.echo('No rules are installed; pip install "smdbg-core[all]" installs them.', err=True)
    return 0


def _print(rows: list[dict[str, object]]) -> None:
    wide = max((len(str(row["name"])) for row in rows), default=0)
    for group, members in groupby(rows, key=lambda row: row["group"]):
        click.echo(f"{group}:")
        for row in members:
            text = textwrap.wrap(str(row["summary"]), max(30, text_width() - wide - 4))
            click.echo(f"  {row['name']:<{wide}}  {text[0] if text else ''}")
            for line in text[1:]:
                click.echo(f"  {'':<{wide}}  {line}")
        click.echo()
    click.echo("smdbg explain NAME says more about each.")
