"""Statistics from saved reductions, where the raw value was not saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from smdbg_core.reads import StatisticRef

__all__ = ["derivable", "derive"]

_Values = Mapping[str, float]

_SOURCES: Final[dict[str, tuple[tuple[tuple[str, ...], Callable[..., float]], ...]]] = {
    "mean": ((("mean",), lambda mean: mean),),
    "sum": ((("sum",), lambda total: total),),
    "min": ((("min",), lambda low: low),),
    "max": ((("max",), lambda high: high),),
    "max_abs": ((("abs_max",), lambda high: high), (("min", "max"), lambda low, high: max(-low, high))),
    "mean_abs": ((("abs_mean",), lambda mean: mean),),
    "variance": ((("variance",), lambda var: var), (("std",), lambda std: std * std)),
    "std": ((("std",), lambda std: std), (("variance",), math.sqrt)),
    "l1": ((("l1",), lambda norm: norm), (("abs_l1",), lambda norm: norm), (("abs_sum",), lambda norm: norm)),
    "l2": ((("l2",), lambda norm: norm), (("abs_l2",), lambda norm: norm)),
}
"""For each statistic, the reductions that give it and how, the most direct first."""


def derivable(statistics: Iterable[StatisticRef], saved: Iterable[str]) -> bool:
    """Whether saved reductions give every one of the statistics."""
    available = set(saved)
    return all(
        statistic == "size"
        or (
            isinstance(statistic, str)
            and any(available.issuperset(needs) for needs, _ in _SOURCES.get(statistic, ()))
        )
        for statistic in statistics
    )


def derive(names: Iterable[str], saved: _Values, shape: tuple[int, ...] | None) -> tuple[float, ...]:
    """The statistics from saved reductions; NaN for one that they do not give.

    Saved variances and standard deviations are taken as they are: the PyTorch hook saves the sample
    value (divisor n-1), NumPy-based writers the population value. `size` is that of a shape saved on its
    own. `non_finite` is 1 when any saved reduction is not finite, which is all that they tell.
    """
    finite = all(math.isfinite(value) for value in saved.values())
    known = {
        "non_finite": float(not finite),
        "size": math.nan if shape is None else float(math.prod(shape)),
    }
    return tuple(known[name] if name in known else _one(name, saved) for name in names)


def _one(name: str, saved: _Values) -> float:
    for needs, compute in _SOURCES.get(name, ()):
        if all(need in saved for need in needs):
            return compute(*(saved[need] for need in needs))
    return math.nan
