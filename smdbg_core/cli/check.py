"""`smdbg check`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from smdbg_core.report.console import plain
from smdbg_core.rule import ALL_FRAMEWORKS
from smdbg_core.sagemaker.check import Check, RuleCheck, check_plan
from smdbg_core.sagemaker.jobs import load_plan

__all__ = ["command"]


@click.command("check")
@click.argument("config", required=False)
@click.option(
    "--framework",
    type=click.Choice(ALL_FRAMEWORKS, case_sensitive=False),
    help="Framework of the training, where the configuration does not say it.",
)
@click.option("--total-steps", type=click.IntRange(min=1), metavar="N", help="How long training is.")
@click.option(
    "--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True
)
def command(config: str | None, framework: str | None, total_steps: int | None, output_format: str) -> int:
    """Say what CONFIG comes to: a configuration file, or a training job's JSON.

    Shows the effective value of each parameter and where it comes from, and whether each rule can ever
    decide with what the job saves. The exit status is 1 if one cannot, or something else is wrong; 2 for a
    mistake that keeps CONFIG from being used.
    """
    plan, job = load_plan(config)
    check = check_plan(plan, job, framework=framework, total_steps=total_steps)
    if output_format == "json":
        click.echo(json.dumps(check.document(), indent=1, ensure_ascii=False))
    else:
        for line in _lines(check):
            click.echo(line)
    for notice in check.notices:
        click.echo(f"warning: {notice}", err=True)
    return 0 if check.good else 1


def _lines(check: Check) -> Iterator[str]:
    for rule in check.rules:
        yield from _rule(rule)
        yield ""
    if check.collections:
        yield "Collections that are saved"
        for name, parameters in check.collections.items():
            text = ", ".join(f"{key}={value}" for key, value in parameters.items())
            yield plain(f"  {name}  {text or 'as the hook has it'}")
        yield ""
    if check.problems:
        yield "Problems"
        yield from (plain(f"  {line}") for line in check.problems)
        yield ""
    bad = sum(bool(rule.problems) or rule.decides == "no" for rule in check.rules)
    yield f"{len(check.rules)} rules, {bad} with problems; {len(check.problems)} other problems."


def _rule(rule: RuleCheck) -> Iterator[str]:
    of = f" ({rule.rule})" if rule.rule != rule.name else ""
    yield plain(f"{rule.name}{of}  {rule.plugin}")
    wide = max((len(value.name) for value in rule.parameters), default=0)
    for value in rule.parameters:
        yield plain(f"  {value.name:<{wide}}  {value.value!r}  [{value.source}]")
    if rule.actions:
        yield plain(f"  actions: {', '.join(rule.actions)}")
    if rule.service_status is not None:
        yield plain(f"  the service said: {rule.service_status}")
    start = f", from step {rule.from_step}" if rule.from_step else ""
    told = {"yes": f"can decide{start}", "no": "CAN NEVER DECIDE", "unknown": "may be able to decide"}
    yield plain(f"  {told[rule.decides]}" + (f": {rule.why}" if rule.why else ""))
    yield from (plain(f"  PROBLEM: {problem}") for problem in rule.problems)
