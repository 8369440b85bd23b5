"""Scope: what is judged of a run."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Scope"]


class Scope(NamedTuple):
    """The part of a run that rules judge."""

    steps: tuple[int | None, int | None] = (None, None)
    """Global steps `begin <= step < end`."""

    mode: str | None = None
    """Mode of the steps; all by default."""

    period: tuple[float | None, float | None] = (None, None)
    """Scan windows that begin in `begin <= time < end`, seconds since the epoch."""

    stop_on_first: bool = False
    """Whether judging ends as soon as anything fires."""
