"""`smdbg sagemaker`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from smdbg_core.cli.run import exit_status
from smdbg_core.cli.table import render_table
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import load_config
from smdbg_core.errors import ConfigError
from smdbg_core.report.console import plain
from smdbg_core.report.document import report_document
from smdbg_core.sagemaker.jobs import load_job, read_job
from smdbg_core.sagemaker.requests import write_request
from smdbg_core.sagemaker.settings import Settings

if TYPE_CHECKING:
    from smdbg_core.sagemaker.comparison import Comparison

__all__ = ["command"]


@click.group("sagemaker")
def command() -> None:
    """Write SageMaker's request JSON; judge a job by its name."""


@command.command("job")
@click.argument("name")
@click.option("--path", metavar="PATH", help="Where its data is, instead of where the job says.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Of what is printed.",
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="DIR", help="Write report and files there."
)
def job(name: str, path: str | None, output_format: str, output: Path | None) -> int:
    """Judge the training job NAME with the rules that it was configured with.

    The job is described by SageMaker, its data read from S3. What the service made of each rule stands
    beside what is found here. No action is carried out. The exit status is that of `smdbg run`.
    """
    from smdbg_core.engine.evaluate import evaluate
    from smdbg_core.report.output import write_report
    from smdbg_core.sagemaker.comparison import compare
    from smdbg_core.sagemaker.describe import describe_job

    registry = Registry()
    described = read_job(describe_job(name), registry)
    where = path or described.path
    if where is None:
        message = f"{name}: it has no DebugHookConfig or ProfilerConfig with S3OutputPath; give --path"
        raise ConfigError(message)
    if not described.rules:
        message = f"{name}: it was configured with no rule that is installed here; see `smdbg run {where}`"
        raise ConfigError(message)
    for notice in described.notices:
        click.echo(f"warning: {notice}", err=True)
    rules = [rule._replace(actions=()) for rule in described.rules]
    report = evaluate(where, rules, registry=registry, job_name=name, output=output)
    compared = compare(described, report)
    if output is not None:
        write_report(output, report)
    if output_format == "json":
        document = {
            "job": name,
            "status": described.statuses,
            "comparison": [one._asdict() for one in compared],
            "report": report_document(report),
        }
        click.echo(json.dumps(document, indent=1, allow_nan=False))
    else:
        click.echo(render_table(report, registry), nl=False)
        click.echo("\n".join(["", *_comparison(compared)]))
    return exit_status(report, named=True)


def _comparison(compared: Sequence[Comparison]) -> Iterator[str]:
    """The service's statuses beside what was found here."""
    wide = max((len(plain(one.name)) for one in compared), default=0)
    yield "Beside what the service reported:"
    for one in compared:
        said = plain(one.service or "nothing")
        mark = {True: "same", False: "DIFFERS", None: "not comparable"}[one.agrees]
        why = f" ({plain(one.reason)})" if one.reason and not one.agrees else ""
        yield f"  {plain(one.name):<{wide}}  {said:<14}  here: {one.here.replace('_', ' ')}; {mark}{why}"


@command.command("export")
@click.argument("config")
@click.option("--job-name", metavar="NAME", help="Name of the training job.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Write there.")
def export(config: str, job_name: str | None, output: Path | None) -> int:
    """Write the rules of CONFIG as members of a CreateTrainingJob request.

    What SageMaker does not have stays out, and is said on the standard error.
    """
    if config.lower().endswith(".json"):
        job = load_job(config)
        name, rules, settings, notices = job.name, list(job.rules), job.settings, job.notices
        registry = Registry()
    else:
        plan = load_config(config)
        name, rules, notices = plan.job_name, plan.rule_configs(), []
        settings, registry = Settings.read(plan.sagemaker, plan.source), Registry(plan.policy)
    if not rules and not settings.collections:
        message = f"{config}: no rules and no collections to write"
        raise ConfigError(message)
    request = write_request(rules, settings, registry=registry, job_name=job_name or name)
    for notice in (*notices, *request.notices):
        click.echo(f"warning: {notice}", err=True)
    text = json.dumps(request.members, indent=1, ensure_ascii=False) + "\n"
    if output is None:
        click.echo(text, nl=False)
        return 0
    try:
        output.write_text(text)
    except OSError as error:
        message = f"{output}: cannot be written: {error.strerror or error}"
        raise ConfigError(message) from None
    return 0
