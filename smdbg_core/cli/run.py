"""`smdbg run`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import click
import msgspec

from smdbg_core.cli.following import interruptible, teller, waiter
from smdbg_core.cli.main import FAILURE
from smdbg_core.cli.options import parse_parameters, parse_period, parse_steps
from smdbg_core.cli.table import render_table
from smdbg_core.discovery.hooks import Hooks
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import Config
from smdbg_core.engine.evaluate import evaluate
from smdbg_core.engine.follow import follow as follow_run
from smdbg_core.engine.measurement_cache import cache_folder
from smdbg_core.engine.roster import RuleConfig
from smdbg_core.errors import ConfigError
from smdbg_core.outcomes import Report
from smdbg_core.report.html.extra import missing_extra
from smdbg_core.report.json import render_json, render_lines
from smdbg_core.report.junit import render_junit
from smdbg_core.report.output import write_report
from smdbg_core.sagemaker.job_end import JobEnd
from smdbg_core.sagemaker.jobs import load_plan

__all__ = ["command", "exit_status", "progress"]

_FORMATS = ("table", "json", "jsonl", "junit")


@click.command("run")
@click.argument("path", required=False)
@click.option("--rule", "rules", multiple=True, metavar="NAME", help="Judge only with this rule; repeatable.")
@click.option(
    "--param",
    "parameters",
    multiple=True,
    metavar="RULE.PARAM=VALUE",
    help="Set a parameter of a rule or action; repeatable.",
)
@click.option(
    "--preset", metavar="NAME", help="Use the values that rules bring under that name: recommended."
)
@click.option(
    "--action", "actions", multiple=True, metavar="NAME", help="Do this when a rule fires; repeatable."
)
@click.option("--dry-run", is_flag=True, help="Show what actions would send; send nothing.")
@click.option(
    "--state", type=click.Path(path_type=Path), metavar="DIR", help="Keep the journal of actions there."
)
@click.option("--job-name", metavar="NAME", help="SageMaker's name of the training job, for actions.")
@click.option(
    "--config",
    metavar="FILE",
    help="Configuration file, or a training job's JSON; smdbg.toml by default, if it is there.",
)
@click.option("--steps", metavar="A:B", help="Judge global steps from A up to, not including, B.")
@click.option(
    "--mode",
    type=click.Choice(["TRAIN", "EVAL", "PREDICT", "GLOBAL"], case_sensitive=False),
    help="Judge only steps of this mode.",
)
@click.option("--from", "begin", metavar="T", help="Judge profiler output from this time on, UTC.")
@click.option("--to", "end", metavar="T", help="Judge profiler output up to, not including, this time.")
@click.option("--stop-on-first", is_flag=True, help="End as soon as anything fires.")
@click.option(
    "--follow",
    is_flag=True,
    help="Judge the run while it is written, until it ends; PATH may not be there yet.",
)
@click.option(
    "--poll",
    type=click.FloatRange(0.01),
    metavar="SECONDS",
    help="With --follow: time between two looks.  [default: 0.5; 10 on S3]",
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="With --follow: how long a late worker is waited for.",
)
@click.option(
    "--idle-timeout",
    type=click.FloatRange(0),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="With --follow: end when nothing came for so long.",
)
@click.option("--no-cache", is_flag=True, help="Measure everything anew; keep no measurements for next time.")
@click.option("--jobs", type=click.IntRange(1, 256), metavar="N", help="Measure in N processes.")
@click.option(
    "--format",
    "output_format",
    default="table",
    metavar="FORMAT",
    help=f"{', '.join(_FORMATS)}, or what a plugin renders.  [default: table]",
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="DIR", help="Write report and files there."
)
@click.option(
    "--fail-on",
    type=click.Choice(["fired", "error", "never"]),
    default="fired",
    show_default=True,
    help="fired: exit 1 if a rule fired. error: only failures count. never: judged is 0.",
)
@click.option("-v", "--verbose", count=True, help="Log more; twice for everything.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no warnings.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    path: str | None,
    rules: tuple[str, ...],
    parameters: tuple[str, ...],
    preset: str | None,
    actions: tuple[str, ...],
    dry_run: bool,
    state: Path | None,
    job_name: str | None,
    config: str | None,
    steps: str | None,
    mode: str | None,
    begin: str | None,
    end: str | None,
    stop_on_first: bool,
    follow: bool,
    poll: float | None,
    grace: float,
    idle_timeout: float,
    no_cache: bool,
    jobs: int | None,
    output_format: str,
    output: Path | None,
    fail_on: str,
    verbose: int,
    quiet: bool,
    log_format: str,
) -> int:
    """Judge the run at PATH with rules.

    Without --rule, every installed rule that applies to the data judges it. The exit status is 2 for a
    mistake in the command or configuration; 3 if the run cannot be read, a rule or action failed, nothing
    was judged, or a rule named by --rule was not evaluated; 1 if a rule fired; else 0.
    """
    settings, job = load_plan(config)
    path = path or settings.path
    if path is None:
        raise click.UsageError("give the PATH of a run, or `path` in the configuration file")
    for notice in job.notices if job is not None and not quiet else ():
        click.echo(f"warning: {notice}", err=True)
    registry = Registry(settings.policy)
    given = parse_parameters(parameters)
    asked = _asked(settings, rules)
    if output_format not in _FORMATS and not Hooks(registry.load_hooks()).has("smdbg_render_report"):
        raise click.UsageError(f"no format {output_format!r}; there are {', '.join(_FORMATS)}")
    job_name = job_name or settings.job_name
    options: dict[str, Any] = {
        "actions": [settings.action(name) for name in actions],
        "dry_run": dry_run,
        "state": state,
        "job_name": job_name,
        "parameters": given,
        "preset": preset or settings.preset,
        "registry": registry,
        "steps": parse_steps(steps),
        "mode": mode,
        "period": parse_period(begin, end),
        "stop_on_first": stop_on_first,
        "output": output,
        "cache": None if no_cache else cache_folder(),
        "evidence": output is not None and missing_extra() is None,
    }
    if follow:
        options |= {"poll": poll, "grace": grace, "idle_timeout": idle_timeout, "on_wait": waiter(quiet)}
        if job_name is not None:
            options["job_end"] = JobEnd(job_name, time.monotonic, _warn)
        with _executor(jobs) as executor, interruptible(), _one_document(output_format):
            report = follow_run(path, asked, executor=executor, on_finding=teller(output_format), **options)
    else:
        on_finding = teller(output_format) if output_format == "jsonl" else None
        with _executor(jobs) as executor, progress(quiet) as on_step, _one_document(output_format):
            report = evaluate(
                path, asked, executor=executor, on_finding=on_finding, on_step=on_step, **options
            )
    if verbose:
        _log(report, verbose, log_format)
    click.echo(_render(report, output_format, registry, quiet), nl=False)
    if output is not None:
        missing = write_report(output, report)
        if missing is not None and not quiet:
            click.echo(f"smdbg: no report.html: {missing}", err=True)
    return exit_status(report, named=bool(rules), fail_on=fail_on)


def exit_status(report: Report, *, named: bool, fail_on: str = "fired") -> int:
    """The exit status of a judged run.

    Args:
        report: The report.
        named: Whether rules were asked for with `--rule`.
        fail_on: `fired`, `error` or `never`.
    """
    if fail_on == "never":
        return 0
    statuses = [outcome.status for outcome in report.outcomes]
    nothing_judged = not any(status in ("fired", "clean") for status in statuses)
    if (
        report.failed_actions
        or "error" in statuses
        or nothing_judged
        or (named and "not_evaluated" in statuses)
    ):
        return FAILURE
    return 1 if fail_on == "fired" and "fired" in statuses else 0


def _asked(settings: Config, rules: tuple[str, ...]) -> list[RuleConfig] | None:
    """The rules of the configuration, or those of the command line instead."""
    configured = settings.rule_configs()
    if not rules:
        return configured or None
    asked = []
    for name in rules:
        path, _, attribute = name.rpartition(":")
        if path.endswith(".py"):
            asked.append(RuleConfig(attribute, file=name))
            continue
        matching = [one for one in configured if name.casefold() == (one.name or one.rule).casefold()]
        asked += matching or [RuleConfig(name)]
    return asked


@contextmanager
def _one_document(output_format: str) -> Iterator[None]:
    """Send what rules and actions print elsewhere, where the standard output is to be one document."""
    if output_format in ("table", "jsonl"):
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


@contextmanager
def _executor(jobs: int | None) -> Iterator[Executor | None]:
    if jobs is None or jobs == 1:
        yield None
        return
    import multiprocessing

    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A line on the terminal for runs that take longer than a second."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    started = shown = time.monotonic()
    visible = False

    def show(done: int, total: int) -> None:
        nonlocal shown, visible
        now = time.monotonic()
        if now - started > 1 and now - shown > 0.1:
            shown, visible = now, True
            click.echo(f"\rstep {done} of {total}", err=True, nl=False)

    try:
        yield show
    finally:
        if visible:
            click.echo("\r" + " " * 40 + "\r", err=True, nl=False)


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)


def _render(report: Report, output_format: str, registry: Registry, quiet: bool) -> str:
    if output_format == "json":
        return render_json(report)
    if output_format == "jsonl":
        return render_lines(report)
    if output_format == "junit":
        return render_junit(report)
    if output_format != "table":
        text = Hooks(registry.load_hooks()).render_report(report, output_format)
        if text is None:
            raise ConfigError(f"no format {output_format!r}; there are {', '.join(_FORMATS)}")
        return text
    shown = msgspec.structs.replace(report, warnings=[]) if quiet else report
    return render_table(shown, registry)


def _log(report: Report, verbosity: int, log_format: str) -> None:
    from smdbg_core.cli.log import configure

    log: Any = configure(verbosity, log_format).bind(run=report.run.uri)
    for outcome in report.outcomes:
        bound = log.bind(rule=outcome.name, plugin=outcome.plugin)
        bound.info(outcome.status, points=outcome.coverage.points, skipped=outcome.coverage.skipped)
        if outcome.traceback:
            bound.error("rule failed", reason=outcome.reason, traceback=outcome.traceback)
    for record in report.actions:
        bound = log.bind(rule=record.rule, plugin=record.plugin, action=record.name)
        tell = bound.error if record in report.failed_actions else bound.info
        tell(record.status, detail=record.detail, count=record.count)
