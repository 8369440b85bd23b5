"""`smdbg schema`."""

from __future__ import annotations

import json

import click

from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import load_config

__all__ = ["command"]


@click.command("schema")
@click.argument("name")
@click.option("--config", metavar="FILE", help="Configuration file.")
def command(name: str, config: str | None) -> int:
    """Print the JSON Schema of the parameters of rule or action NAME, or of the `report`."""
    if name.lower() == "report":
        from smdbg_core.report.document import report_schema

        schema = report_schema()
    else:
        kinds = ("rule", "profiler rule", "action")
        schema = Registry(load_config(config).policy).resolve(name, kinds).object.schema()
    click.echo(json.dumps(schema, indent=1))
    return 0
