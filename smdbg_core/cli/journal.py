"""`smdbg journal`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from smdbg_core.cli.main import FAILURE
from smdbg_core.cli.options import parse_parameters
from smdbg_core.cli.table import text_width
from smdbg_core.discovery.hooks import Hooks
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.action_roster import ActionConfig, ActionEntry, ActionRoster
from smdbg_core.engine.config import Config, load_config
from smdbg_core.engine.dispatch import Dispatcher
from smdbg_core.engine.journal import Journal, JournalRow, state_folder
from smdbg_core.errors import ConfigError
from smdbg_core.report.console import plain

__all__ = ["command"]

_STATUSES = ("in_flight", "sent", "failed", "vetoed", "unknown", "suppressed")
_UNFINISHED = ("in_flight", "failed", "unknown")
_SHORT = 12
_NEXT = {
    "in_flight": "It is being dispatched, or the process died meanwhile; the next evaluation of this run "
    "settles it, and so does `smdbg journal retry`.",
    "sent": "It is done; it is not sent again.",
    "failed": "The next evaluation of this run tries again, and so does `smdbg journal retry`.",
    "vetoed": "A plugin forbade it; the next evaluation of this run asks again.",
    "unknown": "Nothing tells whether it took effect. It is not repeated by itself unless the action has "
    "retry_unknown; `smdbg journal retry` repeats it.",
    "suppressed": "A rate limit held it back; only `smdbg journal retry` sends it.",
}

_state = click.option(
    "--state", type=click.Path(path_type=Path), metavar="DIR", help="Folder of the journal."
)
_format = click.option(
    "--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True
)
_action = click.option("--action", "action", metavar="NAME", help="Only this action.")


@click.group("journal", invoke_without_command=True)
@_state
@click.option("--status", "statuses", type=click.Choice(_STATUSES), multiple=True, help="Only these.")
@_format
@click.pass_context
def command(context: click.Context, state: Path | None, statuses: tuple[str, ...], output_format: str) -> int:
    """List what actions were dispatched, and what became of it; explain it, or try again.

    The state folder is the one that `smdbg run` had: `smdbg` below the XDG state folder, or --state.
    """
    context.obj = state
    if context.invoked_subcommand is not None:
        return 0
    rows = [row for row in _rows(state) if not statuses or row.status in statuses]
    if output_format == "json":
        click.echo(json.dumps([_document(row) for row in rows], indent=1))
        return 0
    for row in rows:
        findings = "" if row.findings == 1 else f" ({row.findings} findings)"
        said = (
            f"{_when(row.begun)}  {row.event[:_SHORT]}  {row.status:<10}  {_what(row)}{findings} on {row.run}"
        )
        click.echo(plain(said))
        if row.status in _UNFINISHED and row.detail:
            _echo(row.detail, "    ")
    if not rows:
        click.echo("Nothing is recorded.")
    return 0


@command.command("explain")
@click.argument("event")
@_state
@_format
@_action
@click.pass_context
def explain(
    context: click.Context, event: str, state: Path | None, output_format: str, action: str | None
) -> int:
    """Say everything about the event whose id begins with EVENT, and what happens to it next."""
    rows = _chosen(state or context.obj, (event,), action)
    if output_format == "json":
        click.echo(json.dumps([_document(row) for row in rows], indent=1))
        return 0
    for number, row in enumerate(rows):
        if number:
            click.echo()
        lines = [
            f"event {row.event}",
            f"{row.action} ({row.plugin})",
            f"{row.status}, {_count(row.attempts, 'attempt')}, the last at {_when(row.begun)}",
            row.detail,
            *row.recorded_event.text.splitlines(),
            f"stands for {_count(row.findings, 'finding')}",
            _NEXT[row.status],
        ]
        for line in filter(None, lines):
            _echo(line)
    return 0


@command.command("retry")
@click.argument("events", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that failed or whose outcome is unknown.")
@_state
@_action
@click.option("--config", metavar="FILE", help="Configuration file with the actions.")
@click.option(
    "--param", "parameters", multiple=True, metavar="ACTION.PARAM=VALUE", help="Set a parameter; repeatable."
)
@click.option("--dry-run", is_flag=True, help="Show what would be sent; send nothing.")
@click.pass_context
def retry(
    context: click.Context,
    events: tuple[str, ...],
    everything: bool,
    state: Path | None,
    action: str | None,
    config: str | None,
    parameters: tuple[str, ...],
    dry_run: bool,
) -> int:
    """Dispatch again the events whose ids begin with EVENTS; the id stays, so receivers can tell.

    Actions are made anew from the configuration and --param: the journal holds no addresses and no secrets
    to make them of. The exit status is 3 if any fails again.
    """
    state = state or context.obj
    if bool(events) == everything:
        raise click.UsageError("give the EVENTS to retry, or --all")
    if everything:
        named = [row for row in _rows(state) if action is None or row.action.casefold() == action.casefold()]
        rows = [row for row in named if row.status in _UNFINISHED]
    else:
        rows = _chosen(state, events, action)
    settings = load_config(config)
    registry = Registry(settings.policy)
    entries = _actions(rows, settings, registry, parse_parameters(parameters))
    dispatcher = Dispatcher(Hooks(registry.load_hooks()), "", state=state or state_folder(), dry_run=dry_run)
    failed = False
    for row in rows:
        delivery = dispatcher.deliver(entries[row.action], row.recorded_event, again=True)
        _echo(f"{row.event[:_SHORT]}  {delivery.status}  {_what(row)}: {delivery.detail}")
        for request in delivery.requests:
            _echo(json.dumps(request, ensure_ascii=False), "    ")
        failed |= delivery.status in ("failed", "unknown")
    dispatcher.close()
    for warning in dispatcher.warnings:
        click.echo(f"warning: {warning}", err=True)
    if not rows:
        click.echo("Nothing is to be retried.")
    return FAILURE if failed else 0


def _actions(
    rows: Sequence[JournalRow], settings: Config, registry: Registry, parameters: dict[str, dict[str, Any]]
) -> dict[str, ActionEntry]:
    """The actions of the rows, made anew."""
    configured = {name.casefold() for name in settings.actions}
    names = list(dict.fromkeys(row.action for row in rows))
    for row in rows:
        if row.action != row.type and row.action.casefold() not in configured:
            message = f"the action {row.action!r}, a {row.type}, is not configured: give --config"
            raise ConfigError(message)
    plugins = {row.action: row.plugin for row in rows}
    configs = {
        name: settings.action(name) if name.casefold() in configured else ActionConfig(plugins[name])
        for name in names
    }
    roster = ActionRoster(registry, configs.values(), parameters=parameters)
    problems = roster.problems + [f"no action {name!r} is to be retried" for name in roster.other_parameters]
    if problems:
        raise ConfigError("\n".join(problems))
    return {name: roster.of([config])[0] for name, config in configs.items()}


def _rows(state: Path | None, event: str = "") -> list[JournalRow]:
    with Journal(state or state_folder(), copy=True) as journal:
        return journal.rows(event)


def _chosen(state: Path | None, events: Sequence[str], action: str | None) -> list[JournalRow]:
    """The rows of events by the beginnings of their ids.

    Raises:
        ConfigError: There is none, or a beginning is that of several events.
    """
    chosen = []
    for event in events:
        rows = _rows(state, event)
        ids = {row.event for row in rows}
        if len(ids) > 1:
            message = f"several events begin with {event!r}: give more of the id"
            raise ConfigError(message)
        rows = [row for row in rows if action is None or row.action.casefold() == action.casefold()]
        if not rows:
            of = f" of the action {action!r}" if action else ""
            message = f"no event {event!r}{of} in {state or state_folder()}; `smdbg journal` lists them"
            raise ConfigError(message)
        chosen += rows
    return list(dict.fromkeys(chosen))


def _document(row: JournalRow) -> dict[str, Any]:
    document = {name: getattr(row, name) for name in row._fields if name != "content"}
    return document | {"content": row.recorded_event.document()}


def _what(row: JournalRow) -> str:
    return f"{row.action} for {row.rule} {row.state}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _echo(text: str, indent: str = "") -> None:
    click.echo(
        textwrap.fill(
            plain(text),
            text_width(),
            initial_indent=indent,
            subsequent_indent=indent + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
