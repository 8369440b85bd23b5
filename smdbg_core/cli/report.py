"""`smdbg report`."""

from __future__ import annotations

from pathlib import Path

import click

from smdbg_core.cli.options import parse_period
from smdbg_core.cli.run import exit_status, progress
from smdbg_core.cli.table import render_table
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import load_config
from smdbg_core.engine.evaluate import evaluate
from smdbg_core.engine.measurement_cache import cache_folder
from smdbg_core.errors import ConfigError, MissingDataError, SmdbgError
from smdbg_core.report.html.extra import missing_extra
from smdbg_core.report.output import write_report
from smdbg_core.report.service import read_service_reports

__all__ = ["command"]


@click.command("report")
@click.argument("path")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    required=True,
    help="Folder for report.html, report.json, report.xml and the files of rules.",
)
@click.option("--config", metavar="FILE", help="Configuration file; smdbg.toml by default, if it is there.")
@click.option("--from", "begin", metavar="T", help="Judge profiler output from this time on, UTC.")
@click.option("--to", "end", metavar="T", help="Judge profiler output up to, not including, this time.")
@click.option("--no-cache", is_flag=True, help="Measure everything anew; keep no measurements for next time.")
@click.option("-q", "--quiet", is_flag=True, help="No summary, no progress.")
def command(
    path: str,
    output: Path,
    config: str | None,
    begin: str | None,
    end: str | None,
    no_cache: bool,
    quiet: bool,
) -> int:
    """Judge the run at PATH with every rule, and write a page that works offline.

    PATH may also be a folder with the files `profiler-reports/*.json` or `xgboost-reports/*.json` that
    the service wrote: these are shown without raw data. The exit status is that of `smdbg run`.
    """
    missing = missing_extra()
    if missing is not None:
        raise ConfigError(missing)
    settings = load_config(config)
    registry = Registry(settings.policy)
    try:
        with progress(quiet) as on_step:
            report = evaluate(
                path,
                settings.rule_configs() or None,
                registry=registry,
                period=parse_period(begin, end),
                output=output,
                on_step=on_step,
                cache=None if no_cache else cache_folder(),
                evidence=True,
            )
    except MissingDataError:
        found = read_service_reports(path, lambda rule: _documented(registry, rule))
        if found is None:
            raise
        report = found
    write_report(output, report)
    if not quiet:
        click.echo(render_table(report, registry), nl=False)
        click.echo(f"\n{output / 'report.html'}")
    return exit_status(report, named=False)


def _documented(registry: Registry, rule: str) -> tuple[str, str, str] | None:
    try:
        text: tuple[str, str, str] = registry.resolve(rule).object.documentation()
    except SmdbgError:
        return None
    return text
