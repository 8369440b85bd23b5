"""The book that is kept while one rule judges one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from smdbg_core.findings import Finding
from smdbg_core.outcomes import Closest, Coverage

__all__ = ["OnPoint", "Tally"]

OnPoint: TypeAlias = Callable[[Any, str, float, str, float, bool], None]
"""Told each point: subject, statistic, value (NaN if indeterminate), comparison, limit, violation."""


class Tally:
    """Counts of what was judged, and the episodes of what was found.

    Args:
        cap: How many episodes are kept; further ones are only counted.

    Attributes:
        on_point: Told every judged point, where evidence is recorded.
    """

    def __init__(self, cap: int = 100) -> None:
        self.cap = cap
        self.on_point: OnPoint | None = None
        self.points = 0
        self.non_finite = 0
        self.skipped: Counter[str] = Counter()
        self.needs: dict[str, tuple[int, int]] = {}
        self.closest: dict[str, Closest] = {}
        self.subjects: set[Hashable] = set()
        self.steps: set[int] = set()
        self.windows: set[int] = set()
        self.fired = 0
        self._open: dict[Hashable, int] = {}
        self._episodes: list[Finding] = []
        self._dropped = 0

    def skip(self, reason: str, have: int | None = None, need: int | None = None) -> None:
        """Count a point that was not judged; remember the best case of `have` against `need`."""
        self.skipped[reason] += 1
        if have is not None and need is not None and have >= self.needs.get(reason, (-1, 0))[0]:
            self.needs[reason] = have, need

    def close(self, key: Hashable) -> None:
        """A clean point: the episode of this key is over."""
        self._open.pop(key, None)

    @property
    def has_open(self) -> bool:
        """Whether any episode can still grow."""
        return bool(self._open)

    def record(self, point: Finding) -> None:
        """Add a finding to the episode that it continues, or begin a new one."""
        self.fired += 1
        index = self._open.get(point.key)
        if index is None:
            if len(self._episodes) >= self.cap:
                self._dropped += 1
                index = -1
            else:
                self._episodes.append(point)
                index = len(self._episodes) - 1
            self._open[point.key] = index
        elif index >= 0:
            self._episodes[index] = _joined(self._episodes[index], point)

    @property
    def episodes(self) -> list[Finding]:
        """Episodes in the order in which they began."""
        return list(self._episodes)

    @property
    def dropped(self) -> int:
        """Episodes beyond the cap."""
        return self._dropped

    def coverage(self) -> Coverage:
        """The counts as a value."""
        subjects = len(self.subjects)
        return Coverage(
            steps=len(self.steps),
            tensors=0 if self.windows else subjects,
            windows=len(self.windows),
            series=subjects if self.windows else 0,
            points=self.points,
            non_finite=self.non_finite,
            skipped=dict(sorted(self.skipped.items())),
        )


def _joined(episode: Finding, point: Finding) -> Finding:
    fields = {name: getattr(episode, name) for name in episode.__struct_fields__}
    fields |= {
        "last_step": point.last_step,
        "window_end_us": point.window_end_us,
        "count": episode.count + point.count,
        "worst": _worse(episode, point),
    }
    return Finding(**fields)


def _worse(episode: Finding, point: Finding) -> float | None:
    if episode.worst is None or point.worst is None:
        return episode.worst if point.worst is None else point.worst
    pick = min if (episode.comparison or ">").startswith("<") else max
    return pick(episode.worst, point.worst)
