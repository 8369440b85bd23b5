"""Collections that rules want saved, in SageMaker's form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from smdbg_core.discovery.registry import Registry
from smdbg_core.errors import ConfigError, PluginError
from smdbg_core.rule import Collection
from smdbg_core.sagemaker.encoding import encode
from smdbg_core.spelling import nearest

__all__ = ["DEFAULT_COLLECTIONS", "collection_config", "get_collection", "merge", "parameters_of", "write"]

DEFAULT_COLLECTIONS: Final = ("losses", "metrics", "sm_metrics")
"""What hooks save without being told to, as far as the framework has it."""

_SCHEDULE = ("save_interval", "save_steps", "start_step", "end_step")
_KEYS: Final = (
    "include_regex",
    "reductions",
    "save_raw_tensor",
    "save_shape",
    "save_histogram",
    *_SCHEDULE,
    *(f"{mode}.{key}" for mode in ("train", "eval", "predict", "global") for key in _SCHEDULE),
)


def parameters_of(collection: Collection) -> dict[str, str]:
    """A rule's collection as the string parameters of a request."""
    parameters = {"include_regex": collection.include_regex, "save_interval": collection.save_interval}
    given = {key: encode(value) for key, value in parameters.items() if value is not None}
    if collection.save_steps is not None:
        given["save_steps"] = ",".join(map(encode, collection.save_steps))
    return given


def collection_config(collection: Collection) -> dict[str, Any]:
    """A rule's collection as a member of CollectionConfigurations."""
    return {"CollectionName": collection.name, "CollectionParameters": parameters_of(collection)}


def get_collection(collection_name: str) -> dict[str, Any] | None:
    """The collection that the rules want saved under that name.

    Args:
        collection_name: Such as `gradients`.

    Returns:
        A new dict each time. `None` if no rule saves it, or rules save it in different ways.
    """
    registry = Registry.current()
    found: list[dict[str, Any]] = []
    for spec in registry.rules():
        try:
            wanted = registry.load(spec).object.collections_to_save
        except PluginError:
            continue
        found += [collection_config(one) for one in wanted if one.name == collection_name]
    return found[0] if found and all(one == found[0] for one in found) else None


def write(name: str, parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters of a collection as strings; unset ones are left out.

    Raises:
        ConfigError: A key or value that hooks do not understand; all of them.
    """
    problems, written = [], {}
    for key, value in parameters.items():
        if key not in _KEYS:
            problems.append(f"collection {name}: no parameter {key!r}{nearest(key, _KEYS)}")
        elif value is not None:
            items = value if isinstance(value, list | tuple) else [value]
            if any(isinstance(item, str) and "," in item for item in items) and key == "include_regex":
                problems.append(
                    f"collection {name}: include_regex {value!r} has a comma, at which hooks cut it: "
                    "write `.` for it, or several patterns as a list"
                    if isinstance(value, list | tuple)
                    else f"collection {name}: include_regex {value!r} has a comma, at which hooks cut it: "
                    "give several patterns as a list, and write `.` for a comma within one"
                )
            written[key] = ",".join(map(encode, items))
    if problems:
        raise ConfigError("\n".join(problems))
    return written


def merge(
    wanted: Iterable[tuple[str, str, Mapping[str, str]]],
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """One configuration for each collection.

    Args:
        wanted: Who wants it, the collection, its parameters.

    Returns:
        Parameters by collection, in the order of first mention; notices. Where only the save intervals
        differ and one divides the other, the shorter one serves both.

    Raises:
        ConfigError: Two want the same collection saved in ways that exclude each other.
    """
    merged: dict[str, tuple[str, dict[str, str]]] = {}
    notices, problems = [], []
    for owner, name, parameters in wanted:
        if name not in merged or merged[name][1] == parameters:
            merged.setdefault(name, (owner, dict(parameters)))
            continue
        first, known = merged[name]
        interval = _common_interval(known, parameters)
        if interval is None:
            problems.append(
                f"collection {name}: {first} wants {_words(known)}, {owner} wants {_words(parameters)}: "
                "say once what is saved, in the collections of the job"
            )
        else:
            merged[name] = (first, known | {"save_interval": interval})
            notices.append(f"collection {name} is saved every {interval} steps, for {first} and {owner}")
    if problems:
        raise ConfigError("\n".join(problems))
    return {name: parameters for name, (_, parameters) in merged.items()}, notices


def _common_interval(one: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    rests = [{k: v for k, v in each.items() if k != "save_interval"} for each in (one, other)]
    intervals = [each.get("save_interval", "") for each in (one, other)]
    if rests[0] != rests[1] or not all(re.fullmatch("[1-9][0-9]*", text) for text in intervals):
        return None
    shorter, longer = sorted(map(int, intervals))
    return str(shorter) if longer % shorter == 0 else None


def _words(parameters: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in parameters.items()) or "the hook's defaults"
