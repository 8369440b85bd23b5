"""Scan windows: what a profiler rule sees, one stretch of time after the other."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdbg_core.runs.profiler.events import Args, Events
from smdbg_core.runs.profiler.samples import Samples, SeriesKey

__all__ = ["TICK", "Place", "ScanWindow", "Series", "Snapshots", "Step"]

TICK: Final = 20_000
"""Microseconds within which samples of one node belong to one tick."""

INTERVALS: Final = (100_000, 200_000, 500_000, 1_000_000, 5_000_000, 60_000_000)
"""Sampling intervals that the profiler offers, in microseconds."""

_COMPARE: Final[Mapping[str, Callable[[Any, float], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_STEP = re.compile(r"Step:ModeKeys\.(\w+)")


class Place(NamedTuple):
    """What a point is about, when it is no single series: a node, a worker, the whole job."""

    name: str
    node: str | None
    worker: str | None
    location: dict[str, Any]

    @property
    def non_finite(self) -> int:
        """Samples that are no finite numbers never reach a window."""
        return 0


class Series(NamedTuple):
    """The samples of one measure of one device within a window, in order of time."""

    key: SeriesKey
    times: NDArray[np.int64]
    """Microseconds since the epoch; read-only."""

    values: NDArray[np.float64]
    """One for each time; read-only."""

    location: dict[str, Any]

    @property
    def name(self) -> str:
        """Device and dimension, as findings name it: `gpu0 GPUUtilization`."""
        return " ".join(part for part in (self.key.device, self.key.dimension) if part)

    @property
    def node(self) -> str:
        """The machine."""
        return self.key.node

    @property
    def device(self) -> str:
        """`cpu0`, `gpu1`, ...; empty for what stands for all devices of a node."""
        return self.key.device

    @property
    def worker(self) -> None:
        """Series belong to nodes."""
        return None

    @property
    def non_finite(self) -> int:
        """Samples that are no finite numbers never reach a window."""
        return 0


class Step(NamedTuple):
    """One training step, as the framework's hook timed it."""

    worker: str
    node: str
    mode: str
    """`TRAIN`, `EVAL`, `PREDICT` or `GLOBAL`."""

    number: int | None
    """Step within the mode, where it was recorded."""

    start: int
    end: int

    @property
    def phase(self) -> str:
        """Name of the event."""
        return f"Step:ModeKeys.{self.mode}"

    @property
    def seconds(self) -> float:
        """Duration."""
        return (self.end - self.start) / 1e6


class Snapshots(NamedTuple):
    """The ticks of one node: samples of several series that were taken together.

    A sample more than 20 ms (or a quarter of the sampling interval, if that is less) after the first
    sample of a tick begins the next one.
    """

    node: str
    times: NDArray[np.int64]
    """First sample of each tick, microseconds since the epoch."""

    rows: NDArray[np.int64]
    """Number of the tick of each sample."""

    codes: NDArray[np.int32]
    values: NDArray[np.float64]
    keys: Sequence[SeriesKey]

    def devices_where(self, measure: str, comparison: str, limit: float) -> NDArray[np.int64]:
        """How many devices of each tick have a value of `measure` for which the comparison holds."""
        of_measure = np.array([key.is_any_of((measure,)) for key in self.keys], np.bool_)
        holds = of_measure[self.codes] & _COMPARE[comparison](self.values, limit)
        return np.bincount(self.rows[holds], minlength=len(self.times)).astype(np.int64)


class ScanWindow:
    """The data whose times (of events: the ends) lie in `[start, end)`.

    Args:
        start: Microseconds since the epoch.
        end: The same.
        keys: Series by number.
        samples: Samples in order of time.
        ahead: Samples of the next 20 ms, in which a tick of this window may go on.
        events: Events, one entry for each writer.
        anchors: Last tick by measures and node, kept over all windows of one clock.
    """

    def __init__(
        self,
        start: int,
        end: int,
        keys: Sequence[SeriesKey],
        samples: Samples,
        ahead: Samples,
        events: Sequence[Events],
        anchors: dict[tuple[tuple[str, ...], str], int],
    ) -> None:
        self.start = start
        self.end = end
        self.location: dict[str, Any] = {"window_start_us": start, "window_end_us": end}
        self._keys = keys
        self._samples = samples
        self._ahead = ahead
        self._events = events
        self._anchors = anchors
        self._snapshots: dict[tuple[str, ...], list[Snapshots]] = {}
        self._by_measures: dict[tuple[str, ...], list[Series]] = {}
        self._averages: dict[tuple[str, bool], list[Series]] = {}

    def __repr__(self) -> str:
        return f"<ScanWindow {self.start}..{self.end}>"

    def place(self, name: str, *, node: str | None = None, worker: str | None = None) -> Place:
        """Something in this window to judge that is no single series."""
        return Place(name, node, worker, self.location)

    @cached_property
    def nodes(self) -> list[str]:
        """Nodes with samples in this window."""
        return list(dict.fromkeys(series.node for series in self._all))

    def series(self, *measures: str, node: str | None = None) -> list[Series]:
        """Series by node, then device.

        Args:
            measures: Dimensions such as `GPUUtilization`, or names of what has no dimension, such as
                `MemoryUsedPercent`; none means all.
            node: Only of this node.
        """
        if measures not in self._by_measures:
            self._by_measures[measures] = [
                series for series in self._all if not measures or series.key.is_any_of(measures)
            ]
        found = self._by_measures[measures]
        return [series for series in found if node in (None, series.node)]

    def averages(self, measure: str, *, total: bool = False) -> list[Series]:
        """For each node, the mean (or sum) over its devices at each time; the device is empty."""
        if (measure, total) not in self._averages:
            by_node: dict[str, list[Series]] = {}
            for series in self.series(measure):
                by_node.setdefault(series.node, []).append(series)
            self._averages[measure, total] = [
                self._average(node, measure, group, total) for node, group in by_node.items()
            ]
        return self._averages[measure, total]

    def _average(self, node: str, measure: str, group: Sequence[Series], total: bool) -> Series:
        times, rows = np.unique(np.concatenate([one.times for one in group]), return_inverse=True)
        sums = np.bincount(rows, weights=np.concatenate([one.values for one in group]))
        values = np.asarray(sums if total else sums / np.bincount(rows), np.float64)
        key = group[0].key
        dimension = measure if key.dimension else ""
        of_node = SeriesKey(node, "" if dimension else measure, dimension, key.type)
        return Series(of_node, times, values, self.location)

    def snapshots(self, *measures: str) -> list[Snapshots]:
        """Ticks of each node, over the series of these measures only.

        A tick belongs to the window in which it begins.
        """
        if measures not in self._snapshots:
            self._snapshots[measures] = list(self._ticks(measures))
        return self._snapshots[measures]

    def events(self, phase: Callable[[str], object] | None = None) -> list[Events]:
        """Events that end in this window, for each writer, in order of time.

        Args:
            phase: Tells by its truth whether events of a phase are wanted.
        """
        if phase is None:
            return list(self._events)
        kept = []
        for events in self._events:
            known = {name: bool(phase(name)) for name in set(events.phases.tolist())}
            rows = np.fromiter(map(known.__getitem__, events.phases.tolist()), np.bool_, len(events.phases))
            if rows.any():
                kept.append(events.take(rows))
        return kept

    def steps(self, mode: str | None = None) -> list[Step]:
        """Training steps that end in this window, by worker, then time."""
        return [step for step in self._steps if mode in (None, step.mode)]

    @cached_property
    def _steps(self) -> list[Step]:
        found = []
        for events in self.events(_mode_of):
            columns = zip(
                events.phases.tolist(),
                events.starts.tolist(),
                events.ends.tolist(),
                events.args.tolist(),
                strict=True,
            )
            for phase, start, end, args in columns:
                number = _number(args)
                found.append(Step(events.worker, events.node, _mode_of(phase) or "", number, start, end))
        return sorted(found, key=lambda step: (_natural(step.worker), step.end, step.start))

    @cached_property
    def _all(self) -> list[Series]:
        codes, times, values = self._samples
        order = np.argsort(codes, kind="stable")
        codes, times, values = codes[order], times[order], values[order]
        kept = np.ones(len(codes), np.bool_)
        kept[1:] = (codes[1:] != codes[:-1]) | (times[1:] != times[:-1])
        if not kept.all():
            codes, times, values = codes[kept], times[kept], values[kept]
        times.flags.writeable = values.flags.writeable = False
        borders = np.flatnonzero(np.diff(codes)) + 1
        bounds = [0, *borders.tolist(), len(codes)] if len(codes) else []
        found = [
            Series(self._keys[codes[first]], times[first:last], values[first:last], self.location)
            for first, last in pairwise(bounds)
        ]
        return sorted(found, key=lambda one: (_natural(one.node), _natural(one.device), one.key))

    def _ticks(self, measures: tuple[str, ...]) -> Iterator[Snapshots]:
        by_node: dict[str, list[int]] = {}
        for code, key in enumerate(self._keys):
            if key.is_any_of(measures):
                by_node.setdefault(key.node, []).append(code)
        codes, times, values = Samples.join([self._samples, self._ahead])
        for node in sorted(by_node, key=_natural):
            of_node = np.isin(codes, by_node[node])
            at = times[of_node]
            tolerance = _tolerance(at)
            last = self._anchors.get((measures, node))
            # What is left of a tick that began in the window before is passed over.
            begin = 0 if last is None else int(np.searchsorted(at, last + tolerance, side="right"))
            at = at[begin:]
            anchors = _anchors(at, tolerance)
            anchors = anchors[at[anchors] < self.end]
            if not len(anchors):
                continue
            rows = np.searchsorted(anchors, np.arange(len(at)), side="right") - 1
            # The last tick ends with its tolerance; what follows lies in the next window.
            stop = int(np.searchsorted(at, at[anchors[-1]] + tolerance, side="right"))
            self._anchors[measures, node] = int(at[anchors[-1]])
            yield Snapshots(
                node,
                at[anchors],
                rows[:stop],
                codes[of_node][begin : begin + stop],
                values[of_node][begin : begin + stop],
                self._keys,
            )


def _anchors(times: NDArray[np.int64], tolerance: int) -> NDArray[np.int64]:
    """Indexes at which a tick begins: more than `tolerance` after the beginning of the one before."""
    if not len(times):
        return np.empty(0, np.int64)
    apart = np.flatnonzero(np.diff(times) > tolerance) + 1
    firsts = np.concatenate(([0], apart))
    lasts = np.concatenate((apart - 1, [len(times) - 1]))
    found = [firsts]
    for group in np.flatnonzero(times[lasts] - times[firsts] > tolerance):
        # Samples without a pause for longer than a tick: cut wherever the tolerance is used up.
        at = int(firsts[group])
        while True:
            at = int(np.searchsorted(times, times[at] + tolerance, side="right"))
            if at > lasts[group]:
                break
            found.append(np.array([at]))
    return np.sort(np.concatenate(found))


def _tolerance(times: NDArray[np.int64]) -> int:
    interval = sampling_interval(times)
    return TICK if interval is None else min(TICK, interval // 4)


def sampling_interval(times: NDArray[np.int64]) -> int | None:
    """The sampling interval that the profiler offers and that fits best, in microseconds."""
    pauses = np.diff(times)
    pauses = pauses[pauses > TICK]
    if not len(pauses):
        return None
    median = float(np.median(pauses))
    return min(INTERVALS, key=lambda interval: abs(interval - median))


@lru_cache(maxsize=1024)
def _mode_of(phase: str) -> str | None:
    matched = _STEP.search(phase)
    return matched[1] if matched else None


def _number(args: Args | None) -> int | None:
    return None if args is None else whole(args.step_num)


def whole(value: Any) -> int | None:
    """A whole number from what JSON has, as a number or as text; `None` if it is neither."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if abs(number) < 2**53 and number == int(number) else None


@lru_cache(maxsize=4096)
def _natural(text: str) -> tuple[tuple[bool, int, str], ...]:
    """A sort key by which `gpu10` comes after `gpu2`."""
    parts: Iterable[str] = re.findall(r"\d+|\D+", text)
    return tuple((not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts)
