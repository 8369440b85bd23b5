"""The command `smdbg`.

Each subcommand is a file of its own, imported when it runs: `smdbg --help` imports Click and nothing else.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Final

import click

from smdbg_core.errors import ConfigError, ParameterError, SmdbgError
from smdbg_core.version import __version__

__all__ = ["main"]

_COMMANDS: Final = {
    "capture": "Run a command and write the machine's system metrics meanwhile.",
    "check": "Say what a configuration or job comes to, and what it can never decide.",
    "demo": "Train a healthy and a sick network, record both, and judge them.",
    "doctor": "Say what of some data can be judged, what cannot, and what would help.",
    "explain": "Say what a rule or action does, and every parameter of it.",
    "journal": "List, explain and retry what actions were dispatched.",
    "new": "Write a bundle of rules and actions, with its tests.",
    "plugins": "List all plugins, and what became of each.",
    "report": "Judge a run with every rule, and write a page that works offline.",
    "rules": "List the rules that are installed.",
    "run": "Judge a run with rules.",
    "sagemaker": "Write SageMaker's request JSON; judge a job by its name.",
    "schema": "Print the JSON Schema of a rule's parameters, or of the report.",
}

USAGE_ERROR: Final = 2
FAILURE: Final = 3


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"smdbg_core.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = str(args[0])
        if name not in _COMMANDS and not name.startswith("-"):
            from smdbg_core.spelling import nearest

            ctx.fail(f"no command {name!r}{nearest(name, _COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="smdbg")
def cli() -> None:
    """Judge recorded machine-learning training with rules.

    `smdbg run PATH` reads the tensors that a training job saved and says what is wrong, where, and what to
    do. `smdbg demo` shows it on two small networks.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit.

    `capture` exits as its command did. Else the exit status is 2 for a mistake of usage or configuration, 3
    where something failed, 1 where a rule fired, else 0.
    """
    _never_fail_to_print()
    try:
        status: Any = cli.main(args=arguments, prog_name="smdbg", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("smdbg: interrupted", err=True)
        status = 130
    except click.ClickException as error:
        error.show()
        status = USAGE_ERROR
    except SmdbgError as error:
        status = _complain(error)
    except BrokenPipeError:
        # The reader of the output has seen enough; Python would complain again while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except OSError as error:
        # The disk behind the output is full, or its device gone: what was not written cannot be told there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"smdbg: the output cannot be written: {error.strerror or error}", err=True)
        status = FAILURE
    sys.exit(status if isinstance(status, int) else 0)


def _complain(error: SmdbgError) -> int:
    """One clear line for each problem, and the exit status."""
    texts = [problem.message for problem in error.problems] if isinstance(error, ParameterError) else []
    owner = f"{error.owner}: " if isinstance(error, ParameterError) else ""
    for line in texts or str(error).splitlines():
        click.echo(f"smdbg: {owner}{line}", err=True)
    return USAGE_ERROR if isinstance(error, ConfigError) else FAILURE


def _never_fail_to_print() -> None:
    """Names in data may hold what the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
