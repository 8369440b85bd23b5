"""Evidence: what rules judged, point by point, and what was measured; kept only when a report wants it.

Everything is bounded. Positions (steps, or microseconds) are gathered into buckets of one width; where
there are too many, the width doubles. A bucket keeps the lowest and the highest value, so that no
extreme is lost to it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from numpy import float64, int32, int64
from numpy.typing import NDArray

__all__ = ["Evidence", "JudgedPoints", "Limit", "StepTimes", "Subject", "Track", "Tracks"]

Axis: TypeAlias = Literal["step", "time"]


class Subject(NamedTuple):
    """What a track is about."""

    name: str
    worker: str | None = None
    node: str | None = None
    mode: str | None = None


class Track(NamedTuple):
    """Values of one subject over steps or time, a bucket each; empty buckets are left out."""

    subject: Subject
    positions: NDArray[int64]
    """Where each bucket begins: a global step, or microseconds since the epoch."""

    lowest: NDArray[float64]
    """NaN where all values of a bucket are NaN or infinite."""

    highest: NDArray[float64]
    mean: NDArray[float64]
    non_finite: NDArray[int32]
    """Values in each bucket that are NaN or infinite; they count in nothing else."""

    violated: bool
    """Whether the rule found anything here."""


class Tracks(NamedTuple):
    """Several subjects over one axis."""

    axis: Axis
    width: int
    """Steps, or microseconds, of a bucket; 1 means that nothing was joined."""

    tracks: list[Track]
    omitted: int = 0
    """Subjects beyond the bound, of which nothing is kept."""


class Limit(NamedTuple):
    """What values were compared with; the comparison holding is the violation."""

    comparison: str
    value: float


class JudgedPoints(NamedTuple):
    """All points that one rule judged with one statistic."""

    statistic: str
    limits: list[Limit]
    """The limits that were met, the first few of them."""

    varies: bool
    """Whether there were more limits than are kept."""

    points: Tracks


class StepTimes(NamedTuple):
    """Durations in seconds of the steps of one worker in one mode."""

    worker: str
    node: str
    mode: str
    durations: Tracks
    size: int
    histogram: list[int]
    edges: list[float]
    quantiles: dict[str, float]


class Evidence(NamedTuple):
    """What a report shows beside its verdicts."""

    judged: dict[str, list[JudgedPoints]]
    """By rule instance."""

    documents: dict[str, dict[str, Any]]
    """By rule instance: the JSON files that it yielded as artifacts, by path."""

    losses: Tracks | None
    """Losses and metrics of the trial over steps."""

    series: list[tuple[str, Tracks]]
    """System metrics over time: the measure, and a track for each device of each node."""

    steps: list[StepTimes]
    damage: list[tuple[str, str]]
    """Damaged files, and what is wrong with each."""
