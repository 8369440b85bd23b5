"""Values of statistics as a cache keeps them: plain MessagePack, nothing that would be executed."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args, get_type_hints

import numpy as np

from smdbg_core.errors import ConfigError
from smdbg_core.runs.views import Failed
from smdbg_core.stats import lookup

__all__ = ["UnstorableError", "decoded", "encoded", "plain_number", "statistic_key"]


class UnstorableError(Exception):
    """Not a value that can be kept."""


@lru_cache(maxsize=4096)
def statistic_key(name: Hashable, *args: Hashable) -> str:
    """A statistic with its version and arguments.

    Raises:
        UnstorableError: There is no such statistic, or nothing tells arguments of this kind apart.
    """
    try:
        statistic = lookup(str(name))
    except ConfigError:
        raise UnstorableError from None
    if not all(map(_plain, args)):
        raise UnstorableError
    module = statistic.function.__module__
    code: tuple[Any, ...] = (module, statistic.version)
    if not module.startswith("smdbg_core."):
        # People who write a rule in a file change it without thinking of versions.
        file = getattr(sys.modules.get(module), "__file__", None)
        try:
            status = os.stat(file or "")
        except OSError:
            raise UnstorableError from None
        code += (file, status.st_size, status.st_mtime_ns)
    return repr((name, code, args))


def _plain(value: Hashable) -> bool:
    if isinstance(value, tuple):
        return all(map(_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def plain_number(value: Any) -> int | float:
    """A number of Python's own, whole where it was."""
    return int(value) if isinstance(value, int | np.integer) else float(value)


def encoded(value: Any, statistic: Hashable) -> Any:
    """A value in what MessagePack knows; all that is not plain is a list that begins with its kind."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Failed):
        return ["failed", *value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return ["array", value.dtype.str, value.shape, value.tobytes()]
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return ["scalar", value.dtype.str, (), value.tobytes()]
    if type(value) in (tuple, list):
        return [type(value).__name__, *(encoded(one, statistic) for one in value)]
    if isinstance(value, tuple) and type(value) in _results(str(statistic)):
        return ["result", *(encoded(one, statistic) for one in value)]
    raise UnstorableError


def decoded(value: Any, statistic: Hashable) -> Any:
    """The value again; a named tuple is the one that the statistic says it returns."""
    if not isinstance(value, list):
        return value
    kind, *parts = value
    if kind == "failed":
        return Failed(*parts)
    if kind in ("array", "scalar"):
        array = np.frombuffer(parts[2], np.dtype(parts[0])).reshape(parts[1])
        return array if kind == "array" else array[()]
    inner = [decoded(one, statistic) for one in parts]
    if kind == "result":
        return _results(str(statistic))[0]._make(inner)
    return tuple(inner) if kind == "tuple" else inner


@lru_cache(maxsize=256)
def _results(statistic: str) -> Sequence[Any]:
    """The named tuple that a statistic says it returns, in a list of its own; often there is none."""
    try:
        hints: Mapping[str, Any] = get_type_hints(lookup(statistic).function)
    except Exception:  # noqa: BLE001 - annotations are a plugin's code
        return ()
    returned = hints.get("return")
    kinds = get_args(returned) or (returned,)
    return [kind for kind in kinds if isinstance(kind, type) and hasattr(kind, "_make")][:1]
