"""Findings: what a rule saw that should not be, first at one point, then as an episode."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Artifact", "Finding"]


class Finding(Struct, frozen=True, kw_only=True):
    """One violation at one point; in a report, an episode of them on one subject.

    Rules make points, through `Rule.judge` or `Rule.finding`: there, `last_step` is `step`, `count`
    is 1 and `worst` is `value`. The engine joins the points of one subject, worker, mode and
    statistic that no clean point separates.
    """

    subject: str
    """Tensor, series or feature that the finding is about."""

    worker: str | None = None
    node: str | None = None
    step: int | None = None
    """Global step of the first point."""

    last_step: int | None = None
    """Global step of the last point."""

    mode: str | None = None
    mode_step: int | None = None
    window_start_us: int | None = None
    """Start of the first scan window, microseconds since the epoch."""

    window_end_us: int | None = None
    count: int = 1
    """How many points the episode has."""

    statistic: str | None = None
    value: float | None = None
    """The statistic at the first point."""

    worst: float | None = None
    """The value farthest beyond the limit."""

    comparison: str | None = None
    """`<`, `<=`, `>`, `>=` or `==`: the statistic compared so with the limit is the violation."""

    limit: float | None = None
    message: str

    @property
    def key(self) -> tuple[str | None, ...]:
        """Points with one key belong to one episode while nothing clean comes between."""
        return self.subject, self.worker, self.node, self.mode, self.statistic, self.comparison


class Artifact(Struct, frozen=True, kw_only=True):
    """A file that a rule wants written below the output folder."""

    path: str
    """Relative path with forward slashes."""

    content: bytes
    media_type: str = "application/octet-stream"
