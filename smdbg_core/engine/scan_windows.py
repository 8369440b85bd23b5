"""Cutting profiler output into scan windows, whatever order it comes in.

Windows are derived from the data, never from the wall clock: a run that is followed and the same run
judged later have the same windows. A window in which nothing happened is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from smdbg_core.runs.profiler import Batch, Events, Profiler, Samples, ScanWindow, SeriesKey
from smdbg_core.runs.profiler.windows import TICK

__all__ = ["Demand", "ScanWindows"]

_NOTHING = Samples(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.float64))


class Demand(NamedTuple):
    """What the rules of one clock read."""

    interval: int
    """Length of a window in microseconds."""

    measures: frozenset[str]
    phases: tuple[str, ...]
    """Patterns; an event is read when one matches its phase anywhere."""


class ScanWindows:
    """The windows of all clocks, each as soon as its data is complete.

    Args:
        profiler: What is read, once for all clocks.
        demands: One for each clock.
        period: Only windows that begin at or after the first and before the second of these times,
            seconds since the epoch.
        on_data: Told all data as it is read, with the series by number.

    Attributes:
        late: Samples and events that came after the end of their window; they count in a later one.
        measures: Dimensions (or names) of the series that were met.
        phases: Phases that were met, read or not.
        reader: Reads the data that the windows are cut from.
    """

    def __init__(
        self,
        profiler: Profiler,
        demands: Sequence[Demand],
        period: tuple[float | None, float | None] = (None, None),
        on_data: Callable[[Sequence[SeriesKey], Samples | Events], None] | None = None,
    ) -> None:
        self._on_data = on_data
        self.measures: set[str] = set()
        self.phases: set[str] = set()
        begin, end = period
        self._begin = -math.inf if begin is None else begin * 1e6
        self._end = math.inf if end is None else end * 1e6
        self._keys: list[SeriesKey] = []
        self.reader = profiler.reader(
            frozenset().union(*(demand.measures for demand in demands)),
            events=any(demand.phases for demand in demands),
        )
        self._clocks = [_Clock(profiler.start, demand) for demand in demands]

    @property
    def late(self) -> int:
        """Samples and events that came after the end of their window."""
        return max((clock.late for clock in self._clocks), default=0)

    @property
    def unpaired(self) -> int:
        """Ends of events that had no beginning, or came before it."""
        return self.reader.unpaired

    @property
    def dropped(self) -> int:
        """Samples left out because their value or time was no finite number."""
        return self.reader.dropped

    def __iter__(self) -> Iterator[tuple[int, ScanWindow]]:
        """All windows: number of the clock, and the window."""
        return self.over(self.reader)

    def over(self, batches: Iterable[Batch]) -> Iterator[tuple[int, ScanWindow]]:
        """The windows that these batches complete; called again, it goes on with later ones."""
        known = len(self._keys)
        keys = self._keys
        for complete, data in batches:
            for number, clock in enumerate(self._clocks):
                # What was delivered before this batch completes windows that end before its time.
                for window in clock.due(complete, keys):
                    if self._begin <= window.start < self._end:
                        yield number, window
            if isinstance(data, Samples):
                if len(self.reader.keys) > known:
                    keys = self._keys = self.reader.keys
                    self.measures |= {key.dimension or key.device for key in keys[known:]}
                    known = len(keys)
                for clock in self._clocks:
                    clock.add_samples(data)
            elif isinstance(data, Events):
                self.phases |= set(data.phases.tolist())
                for clock in self._clocks:
                    clock.add_events(data)
            if data is not None and self._on_data is not None:
                self._on_data(keys, data)


class _Clock:
    """The windows of one length."""

    def __init__(self, start: int, demand: Demand) -> None:
        self.late = 0
        self._demand = demand
        self._start = start
        self._samples = _NOTHING
        self._new: list[Samples] = []
        self._events: list[Events] = []
        self._anchors: dict[tuple[tuple[str, ...], str], int] = {}
        self._wanted: dict[str, bool] = {}
        self._begun = False

    def add_samples(self, samples: Samples) -> None:
        if self._demand.measures:
            self._new.append(samples)

    def add_events(self, events: Events) -> None:
        if not self._demand.phases:
            return
        phases = events.phases.tolist()
        for phase in set(phases) - self._wanted.keys():
            self._wanted[phase] = any(re.search(pattern, phase) for pattern in self._demand.phases)
        wanted = [self._wanted[phase] for phase in phases]
        if all(wanted):
            self._events.append(events)
        elif any(wanted):
            self._events.append(events.take(np.array(wanted, np.bool_)))

    def due(self, complete: int, keys: Sequence[SeriesKey]) -> Iterator[ScanWindow]:
        """Windows that nothing can be added to any more: all data before `complete` is here."""
        interval = self._demand.interval
        if self._start + interval + TICK > complete:
            return
        self._sort()
        while (first := self._first()) is not None:
            ahead = max(0, (first - self._start) // interval)
            start = self._start + ahead * interval
            if start + interval + TICK > complete:
                return
            self._start = start
            window = self._cut(keys)
            self._start = start + interval
            self._begun = True
            yield window
        # Nothing is left: the next window is the one that the next datum falls into.

    def _sort(self) -> None:
        if not self._new:
            return
        samples = Samples.join([self._samples, *self._new])
        self._new = []
        if self._begun:
            self.late += int(np.count_nonzero(samples.times < self._start))
        if np.any(samples.times[1:] < samples.times[:-1]):
            samples = samples.take(np.argsort(samples.times, kind="stable"))
        self._samples = samples

    def _first(self) -> int | None:
        """Time of the earliest datum that is not in a window yet."""
        times = [int(self._samples.times[0])] if len(self._samples.times) else []
        times += [int(events.ends.min()) for events in self._events]
        return min(times, default=None)

    def _cut(self, keys: Sequence[SeriesKey]) -> ScanWindow:
        end = self._start + self._demand.interval
        times = self._samples.times
        stop, ahead = np.searchsorted(times, [end, end + TICK]).tolist()
        inside = self._samples.take(slice(stop))
        beyond = self._samples.take(slice(stop, ahead))
        self._samples = self._samples.take(slice(stop, None))
        events, later = [], []
        for batch in self._events:
            now = batch.ends < end
            if now.all():
                events.append(batch)
            elif now.any():
                events.append(batch.take(now))
                later.append(batch.take(~now))
            else:
                later.append(batch)
        self._events = later
        if self._begun:
            self.late += sum(int(np.count_nonzero(batch.ends < self._start)) for batch in events)
        return ScanWindow(self._start, end, keys, inside, beyond, _by_writer(events), self._anchors)


def _by_writer(events: Iterable[Events]) -> list[Events]:
    """One entry for each writer, in order of time."""
    by_writer: dict[tuple[str, str], list[Events]] = {}
    for batch in events:
        by_writer.setdefault((batch.worker, batch.source), []).append(batch)
    return [Events.join(parts) for _, parts in sorted(by_writer.items())]
