"""The registry of statistics: named, versioned, module-level functions over arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from smdbg_core.errors import ConfigError
from smdbg_core.spelling import nearest

__all__ = ["Statistic", "lookup", "statistic"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Statistic(NamedTuple):
    """A registered statistic."""

    name: str
    version: int
    """Changes when the same input gives another value; caches depend on it."""

    function: Callable[..., Any]
    """`f(values, *args)`, or `f(values, other, *args)` for pairwise ones; a pure function."""

    pairwise: bool


_STATISTICS: dict[str, Statistic] = {}


def statistic(name: str, *, version: int = 1, pairwise: bool = False) -> Callable[[_Function], _Function]:
    """Register a module-level function as a statistic.

    The function gets the saved array, possibly read-only, in its own shape and dtype; a pairwise one
    gets another array of the same tensor as well. Further arguments are hashable and say what is
    measured; thresholds belong in rules. The result is picklable, and no view of the array, whose memory
    is used again.

    Raises:
        ValueError: Another function has this name already.
    """

    def register(function: _Function) -> _Function:
        known = _STATISTICS.get(name)
        if known is not None and known.function.__qualname__ != function.__qualname__:
            message = (
                f"statistic {name!r} is taken by {known.function.__module__}.{known.function.__qualname__}"
            )
            raise ValueError(message)
        _STATISTICS[name] = Statistic(name, version, function, pairwise)
        return function

    return register


def lookup(name: str) -> Statistic:
    """The statistic of that name.

    Raises:
        ConfigError: There is none.
    """
    known = _STATISTICS.get(name)
    if known is None:
        message = f"no statistic {name!r}{nearest(name, _STATISTICS)}"
        raise ConfigError(message)
    return known
