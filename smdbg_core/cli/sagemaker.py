"""`smdbg sagemaker`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import load_config
from smdbg_core.errors import ConfigError
from smdbg_core.sagemaker.jobs import load_job
from smdbg_core.sagemaker.requests import write_request
from smdbg_core.sagemaker.settings import Settings

__all__ = ["command"]


@click.group("sagemaker")
def command() -> None:
    """Write SageMaker's request JSON."""


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
