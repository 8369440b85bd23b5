"""Writes `docs/public-surface.txt`: everything that the stability policy promises, a line each.

python docs/public_surface.py          write the listing
python docs/public_surface.py --check  exit with 1 if it is out of date
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from smdbg_core import Registry, hookspecs
from smdbg_core.cli.main import _COMMANDS
from smdbg_core.engine.config import Config
from smdbg_core.parameters import Parameterized
from smdbg_core.report.document import report_schema

LISTING = Path(__file__).parent / "public-surface.txt"
MODULES = (
    "smdbg_actions",
    "smdbg_core",
    "smdbg_core.sagemaker.rule_configs",
    "smdbg_core.stats",
    "smdbg_core.storage",
    "smdbg_core.testing",
)
OWNERS = ("smdbg-builtin-rules", "smdbg-profiler-rules", "smdbg-actions")


def lines() -> Iterator[str]:
    """The listing."""
    for name in MODULES:
        module = importlib.import_module(name)
        for public in sorted(module.__all__):
            yield from _python(f"{name}.{public}", getattr(module, public))
    for name in sorted(vars(hookspecs)):
        if name.startswith("smdbg_"):
            spec = getattr(hookspecs, name)
            results = "first result" if spec.smdbg_spec["firstresult"] else "all results"
            yield f"hook {name}({', '.join(inspect.signature(spec).parameters)}), {results}"
    for name in sorted(_COMMANDS):
        yield from _command(f"smdbg {name}", importlib.import_module(f"smdbg_core.cli.{name}").command)
    schema = report_schema()
    for name, part in sorted({"Report": schema, **schema["$defs"]}.items()):
        for key in sorted(part.get("properties", ())):
            yield f"report {name}.{key}"
    for key in Config.__struct_fields__:
        yield f"config {key}"
    registry = Registry()
    for spec in (*registry.rules(), *registry.profiler_rules(), *registry.actions()):
        if spec.distribution in OWNERS:
            yield from _parameters(spec.name, registry.load(spec).object)


def _python(name: str, thing: Any) -> Iterator[str]:
    if not callable(thing):
        yield f"python {name}"
        return
    parameterized = isinstance(thing, type) and issubclass(thing, Parameterized)
    yield f"python {name}{'' if parameterized else _arguments(thing)}"
    if isinstance(thing, type):
        for attribute, value in sorted(vars(thing).items()):
            if not attribute.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                yield f"python {name}.{attribute}{_arguments(value) if callable(value) else ''}"


def _arguments(thing: Any) -> str:
    """Names of the arguments; those with a default are marked."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    names = [
        marks.get(one.kind, "") + one.name + ("=" if one.default is not inspect.Parameter.empty else "")
        for one in parameters
    ]
    # What Python gives to classes without a constructor differs between its versions.
    return "" if names == ["*args", "**kwargs"] else f"({', '.join(names)})"


def _command(name: str, command: click.Command) -> Iterator[str]:
    yield f"command {name}"
    context = click.Context(command)
    for one in command.params:
        for spelling in one.opts if isinstance(one, click.Option) else one.get_usage_pieces(context):
            yield f"command {name} {spelling}"
    if isinstance(command, click.Group):
        for child, found in sorted(command.commands.items()):
            yield from _command(f"{name} {child}", found)


def _parameters(name: str, owner: type[Parameterized]) -> Iterator[str]:
    for parameter in owner.__parameters__.values():
        default = "required" if parameter.required else repr(parameter.default)
        yield f"parameter {name}.{parameter.name} = {default}"


def main(check: bool) -> int:
    """Write the listing, or compare it."""
    now = [f"{line}\n" for line in lines()]
    if not check:
        LISTING.write_text("".join(now), encoding="utf-8")
        return 0
    known = LISTING.read_text(encoding="utf-8").splitlines(keepends=True) if LISTING.exists() else []
    changes = list(difflib.unified_diff(known, now, "as listed", "as it is", n=0))
    sys.stdout.writelines(changes)
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
