"""Limits of the service, checked before anything is sent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from smdbg_core.errors import ConfigError

__all__ = ["LONGEST_VALUE", "check_limits", "require_job_name", "require_length"]

LONGEST_VALUE: Final = 256
"""Characters of a parameter's key or value."""

_MOST_RULES = 20
_MOST_ENTRIES = 20
_MOST_PARAMETERS = 100
_LONGEST_URI = 1024
_LONGEST_PATH = 4096
_LONGEST_IMAGE = 255
_JOB_NAME = re.compile(r"[A-Za-z0-9](-*[A-Za-z0-9]){0,62}")

_ACTION_REMEDY = "use shorter or fewer addresses, or give the actions to different rules"


def require_length(text: str, what: str, remedy: str = _ACTION_REMEDY) -> str:
    """The text, if a parameter can hold it.

    Raises:
        ConfigError: It is too long.
    """
    if len(text) > LONGEST_VALUE:
        raise ConfigError(f"{what} has {len(text)} characters; SageMaker takes {LONGEST_VALUE}: {remedy}")
    return text


def require_job_name(name: str) -> str:
    """The name, if a training job can have it.

    Raises:
        ConfigError: It cannot.
    """
    if len(name) > 63 or not _JOB_NAME.fullmatch(name):
        message = f"{name!r} is no name of a training job: 1 to 63 ASCII letters, digits and inner hyphens"
        suggested = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:63].strip("-")
        if suggested:
            message += f", such as {suggested!r}"
        raise ConfigError(message)
    return name


def check_limits(request: Mapping[str, Any]) -> list[str]:
    """What the service would refuse about the members of a CreateTrainingJob request, a line each."""
    return list(_check(request))


def _check(request: Mapping[str, Any]) -> Iterator[str]:
    names: Counter[str] = Counter()
    for member in ("DebugRuleConfigurations", "ProfilerRuleConfigurations"):
        rules = request.get(member) or ()
        yield from _at_most(
            len(rules), _MOST_RULES, member, "rules", "leave some out, or run the others in a second job"
        )
        for rule in rules:
            name = str(rule.get("RuleConfigurationName", ""))
            names[name] += 1
            yield from _longer(name, LONGEST_VALUE, f"the rule name {name[:40]!r}")
            yield from _longer(rule.get("RuleEvaluatorImage"), _LONGEST_IMAGE, f"{name}: the image")
            yield from _places(rule, name)
            yield from _entries(rule.get("RuleParameters"), name, _MOST_PARAMETERS)
    for name, count in names.items():
        if count > 1:
            yield f"{count} rules are named {name!r}: give each instance a `name` of its own"
    hook = request.get("DebugHookConfig") or {}
    yield from _places(hook, "DebugHookConfig")
    yield from _entries(hook.get("HookParameters"), "hook parameters", _MOST_ENTRIES)
    collections = hook.get("CollectionConfigurations") or ()
    remedy = "one collection with an include_regex for several layers saves room"
    yield from _at_most(len(collections), _MOST_ENTRIES, "DebugHookConfig", "collections", remedy)
    for collection in collections:
        name = str(collection.get("CollectionName", ""))
        yield from _longer(name, LONGEST_VALUE, f"the collection name {name[:40]!r}")
        yield from _entries(collection.get("CollectionParameters"), f"collection {name}", _MOST_ENTRIES)
    profiler = request.get("ProfilerConfig") or {}
    yield from _places(profiler, "ProfilerConfig")
    yield from _entries(profiler.get("ProfilingParameters"), "profiling parameters", _MOST_ENTRIES)


def _at_most(count: int, limit: int, where: str, noun: str, remedy: str) -> Iterator[str]:
    if count > limit:
        yield f"{where}: {count} {noun}; SageMaker takes {limit}: {remedy}"


def _longer(text: str | None, limit: int, what: str) -> Iterator[str]:
    if text is not None and len(text) > limit:
        yield f"{what} has {len(text)} characters; SageMaker takes {limit}: shorten it"


def _places(member: Mapping[str, Any], where: str) -> Iterator[str]:
    yield from _longer(member.get("S3OutputPath"), _LONGEST_URI, f"{where}: S3OutputPath")
    yield from _longer(member.get("LocalPath"), _LONGEST_PATH, f"{where}: LocalPath")


def _entries(entries: Mapping[str, str] | None, where: str, most: int) -> Iterator[str]:
    entries = entries or {}
    yield from _at_most(len(entries), most, where, "entries", "leave out those that have their default")
    for key, value in entries.items():
        if not 1 <= len(key) <= LONGEST_VALUE:
            yield f"{where}: the key {key[:40]!r} has {len(key)} characters; SageMaker takes 1 to 256"
        if len(value) > LONGEST_VALUE:
            remedy = _ACTION_REMEDY if key == "action_json" else "shorten it"
            yield f"{where}: {key} has {len(value)} characters; SageMaker takes {LONGEST_VALUE}: {remedy}"
