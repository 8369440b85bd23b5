"""Profiler output that is followed: up to which time everything is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from smdbg_core.engine.clock import Clock
from smdbg_core.runs.profiler import FOLDERS, Batch, Profiler, ProfilerFile, ProfilerReader, find_profiler
from smdbg_core.runs.profiler.files import END_MARKER, MICROSECONDS, in_order

__all__ = ["FollowedProfiler"]

_Writer: TypeAlias = tuple[str, ...]

_METRICS_REACH: Final = 55 * MICROSECONDS
"""A file of metrics is a minute long; the next one may begin five seconds before its name says."""

_USUAL_GAP: Final = 60 * MICROSECONDS
_LONGEST_PATIENCE: Final = 600.0


class _Reach(NamedTuple):
    """How far one writer has come."""

    time: int
    """Microseconds since the epoch, before which it has written everything."""

    gap: int
    """What it last brought, in microseconds."""

    since: float
    """When it came, by the clock."""


class FollowedProfiler:
    """Hands out files of growing profiler output, and says which scan windows they complete.

    A window is complete when every node, and every writer of events, has written beyond its end. One that
    has fallen silent is not waited for; what it brings afterwards makes `changed` true.

    Args:
        profiler: What was there when it was opened.
        clock: Measures how long a writer is silent.
        grace: Seconds for which a silent writer is waited for at least.

    Attributes:
        profiler: What was there at the last look.
        changed: Whether what was handed out is no longer what there is.
    """

    def __init__(self, profiler: Profiler, clock: Clock, grace: float) -> None:
        self.profiler = profiler
        self.changed = False
        self._clock = clock
        self._grace = grace
        self._known: dict[str, str] = {}
        self._latest: dict[str, list[str]] = {folder: [] for folder in FOLDERS}
        self._ended: set[str] = set()
        self._handed_out: set[str] = set()
        self._kinds = _kinds(profiler)
        self._reach: dict[_Writer, _Reach] = {}
        self._complete = 0
        self._remember(everything=True)

    @property
    def ended(self) -> bool:
        """Whether each folder that has files has its end marker."""
        with_files = {file.name.partition("/")[0] for file in self.profiler.files} & set(FOLDERS)
        return bool(self._ended) and self._ended >= with_files

    waits_for: None = None
    """Nobody in particular: any file may be the last one."""

    def look(self, *, everything: bool = False) -> bool:
        """Look for new files; whether there are any.

        Args:
            everything: Look at all of them rather than at those of the last hours.
        """
        fresh = self._remember(everything=everything)
        if not fresh:
            return False
        found = find_profiler(self.profiler.storage)
        if found is None:
            return False
        self.profiler = found
        self.changed = self.changed or bool(fresh & self._handed_out) or _kinds(found) != self._kinds
        return True

    def begin_again(self) -> None:
        """Hand out all files once more."""
        self._handed_out.clear()
        self._kinds = _kinds(self.profiler)
        self._complete = 0
        self.changed = False

    def batches(self, reader: ProfilerReader) -> Iterator[Batch]:
        """Data of the files that were not handed out yet, and up to where it is complete now."""
        if self.changed:
            return
        new = [one for one in in_order(self.profiler.files) if one[1].name not in self._handed_out]
        self._handed_out |= {file.name for _, file in new}
        now = self._clock.monotonic()
        for _, file in new:
            if reader.wants(file):
                self._advance(file, now)
        complete = self._complete = max(self._complete, self._watermark(now))
        # Windows are judged while files are read, however many there are: memory stays bounded.
        yield from reader.read((min(bound, complete), file) for bound, file in new)
        yield Batch(complete, None)

    def _remember(self, *, everything: bool) -> set[str]:
        """Names of the files that are new, or took the place of others."""
        fresh = set()
        for top, latest in self._latest.items():
            # Folders are named by the hour; a file of the one before the last may come late.
            after = "" if everything or not latest else f"{latest[0]}/"
            for name, token in self.profiler.storage.entries(top, after):
                if self._known.get(name) != token:
                    self._known[name] = token
                    fresh.add(name)
                    if name.endswith(f"/{END_MARKER}"):
                        self._ended.add(top)
            folders = {name.rpartition("/")[0] for name in fresh if name.startswith(f"{top}/")}
            latest[:] = sorted({*latest, *folders})[-2:]
        return fresh

    def _advance(self, file: ProfilerFile, now: float) -> None:
        if file.kind == "metrics":
            writer: _Writer = ("metrics", file.node)
            time = file.time + _METRICS_REACH
        elif file.kind == "trace":
            writer, time = ("trace", file.worker, file.source or ""), file.time
        else:
            return  # one file, written when profiling ends
        before = self._reach.get(writer)
        if before is None or time > before.time:
            self._reach[writer] = _Reach(time, time - before.time if before else _USUAL_GAP, now)

    def _watermark(self, now: float) -> int:
        """The time before which everything is there, as far as writers are not silent."""
        times = [
            reach.time
            for reach in self._reach.values()
            if now - reach.since <= max(self._grace, min(3 * reach.gap / MICROSECONDS, _LONGEST_PATIENCE))
        ]
        return min(times, default=0)


def _kinds(profiler: Profiler) -> tuple[frozenset[str], tuple[str, ...], int]:
    """What rules may look at when they start."""
    return frozenset(file.kind for file in profiler.files), profiler.nodes, profiler.start
