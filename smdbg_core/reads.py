"""What a rule reads: declared from its parameters before any data is opened.

Planning, the selection of bytes and the sharing of measurements all rest on these declarations.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple, TypeAlias

__all__ = ["Compare", "Reads", "ScanReads", "StatisticRef"]

StatisticRef: TypeAlias = str | tuple[Hashable, ...]
"""A statistic's name, or a tuple of its name and arguments: `("quantiles", 0.05, 0.95)`."""


class Compare(NamedTuple):
    """A pairwise statistic between a tensor and other values of the same tensor.

    Without `within` and `runs`, the others are its `last` saved steps before this one, in the same
    mode and from the same worker, oldest first.
    """

    statistic: str
    args: tuple[Hashable, ...] = ()
    last: int = 1
    within: int | None = None
    """Instead: the earliest saved step at most so many mode steps back."""

    runs: tuple[str, ...] = ()
    """Instead: the same mode and mode step in these runs, the values of `RunURI` parameters."""


class Reads(NamedTuple):
    """One group of tensors and what must be known of each.

    A tensor belongs to the group when a collection has it, or a pattern matches its name anywhere,
    or `everything` is true. A rule with one group can leave the group's name out everywhere.
    """

    group: str = "tensors"
    collections: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    everything: bool = False
    statistics: tuple[StatisticRef, ...] = ()
    compare: tuple[Compare, ...] = ()
    values: bool = False
    """Whether the rule looks at raw values itself; prefer statistics, which rules share."""

    source: Literal["any", "raw", "reductions"] = "any"
    """`any`: raw values, else saved reductions where they give every declared statistic.
    `reductions`: only tensors whose raw value was not saved, for verdicts that need less."""

    modes: tuple[str, ...] | None = None
    """Modes in order of preference: the first one seen so far with a matching tensor counts."""

    first: int | None = None
    """Read only the first so many saved steps of each mode."""

    strings: bool = False
    """Whether tensors of strings make sense; otherwise they are skipped."""

    min_points: int = 1
    """Saved steps that a tensor needs before the rule can say anything about it."""

    optional: bool = False
    """Whether the rule can be judged when nothing matches this group."""

    fallback: bool = False
    """Whether the group is read only in runs where no group before it selects anything."""


class ScanReads(NamedTuple):
    """What a profiler rule must be given of each scan window."""

    series: tuple[str, ...] = ()
    """Dimensions such as `GPUUtilization`, or names of what has no dimension, such as
    `MemoryUsedPercent`. The rule needs each of them."""

    phases: tuple[str, ...] = ()
    """Patterns: framework events are read when one matches their phase anywhere. The rule needs an
    event of any of them."""

    optional: bool = False
    """Whether the rule can be judged without these."""
