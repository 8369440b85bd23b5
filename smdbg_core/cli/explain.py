"""`smdbg explain`."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from smdbg_core.action import Action
from smdbg_core.cli.table import text_width
from smdbg_core.discovery.loader import Loaded
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.config import load_config
from smdbg_core.parameters import Parameter
from smdbg_core.rule import Rule

__all__ = ["command"]


@click.command("explain")
@click.argument("name")
@click.option("--config", metavar="FILE", help="Configuration file.")
def command(name: str, config: str | None) -> int:
    """Say what rule or action NAME does, what it needs, and every parameter of it."""
    registry = Registry(load_config(config).policy)
    loaded = registry.resolve(name, ("rule", "profiler rule", "action"))
    for line in _lines(loaded):
        click.echo(line)
    return 0


def _lines(loaded: Loaded) -> Iterator[str]:
    target = loaded.object
    yield f"{loaded.spec.name}  ({loaded.spec.kind}, {loaded.spec.identity})"
    yield ""
    if issubclass(target, Rule):
        said = target.documentation()
        yield from _paragraph(said.summary)
        for label, text in (("Why it matters", said.matters), ("What to do", said.remedy)):
            if text:
                yield from _paragraph(f"{label}: {text}")
        yield from _paragraph(
            f"For: {', '.join(target.frameworks)}. Severity: {target.severity}. Group: {target.group}."
        )
        saved = ", ".join(_collection(one) for one in target.collections_to_save)
        yield from _paragraph(
            f"A training job must save: {saved}." if saved else "It asks for no collection to be saved."
        )
    else:
        yield from _docstring(target)
    for group in target.requires:
        yield from _paragraph(f"It needs {' or '.join(group)}.")
    yield ""
    yield "Parameters:"
    for parameter in target.__parameters__.values():
        yield from _parameter(parameter)
    if issubclass(target, Action) and target.policy is not None:
        yield ""
        yield "The least that AWS must allow (put your account's number, and narrow the resources at will):"
        yield from json.dumps(target.policy, indent=2).splitlines()


def _docstring(target: type) -> Iterator[str]:
    """The docstring, wrapped paragraph by paragraph; what is indented in it is left as it is."""
    for number, part in enumerate(inspect.cleandoc(target.__doc__ or "").split("\n\n")):
        if number:
            yield ""
        yield from part.splitlines() if part.startswith(" ") else _paragraph(" ".join(part.split()))


def _collection(collection: Any) -> str:
    details = []
    if collection.include_regex:
        details.append(f"names matching {collection.include_regex}")
    if collection.save_interval:
        details.append(f"every {collection.save_interval} steps")
    if collection.save_steps:
        details.append(f"at steps {', '.join(map(str, collection.save_steps))}")
    return f"collection {collection.name}" + (f" ({', '.join(details)})" if details else "")


def _parameter(parameter: Parameter) -> Iterator[str]:
    meta = parameter.meta
    default = "required" if parameter.required else f"default {_value(parameter.default)}"
    unit = f" {meta.unit}" if meta.unit else ""
    yield f"  {parameter.name}  ({default}{unit})"
    notes = [meta.description, f"Takes {parameter.expected}."]
    if meta.aliases:
        notes.append(f"Also spelt {', '.join(meta.aliases)}.")
    if meta.also:
        notes.append(f"The default also matches the names of other frameworks: {', '.join(meta.also)}")
    if meta.local:
        notes.append("Not known to SageMaker; it stays out of requests.")
    yield from _paragraph(" ".join(filter(None, notes)), "      ")


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _paragraph(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        text_width(),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
