"""Waiting for data: the share of its time that a training loop spends on getting the next batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdbg_core import ScanWindow

__all__ = ["DataWaiting", "Share"]

_LOADING = "DataLoaderIter"
_TRACES = "pytorch"
"""Of these sources a loading event is the training loop's own wait, part of the step."""

Intervals = NDArray[np.int64]


class Share(NamedTuple):
    """How one worker spent its time."""

    worker: str
    node: str
    steps: int
    percent: float
    """Waiting for data, of the time from the first step (or loading) to the last."""


class DataWaiting:
    """Adds up how long each worker's training loop waited for data.

    In traces of PyTorch's profiler the wait is an event within the step. Elsewhere loading may go on
    in a thread beside the steps: only loading while no step of the worker runs is waiting.
    """

    def __init__(self) -> None:
        self._waited: dict[tuple[str, str], int] = {}
        self._steps: dict[tuple[str, str], int] = {}
        self._spans: dict[tuple[str, str], tuple[int, int]] = {}

    def add(self, window: ScanWindow) -> None:
        """Take in the steps and the loading of a window."""
        steps: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for step in window.steps():
            steps.setdefault((step.worker, step.node), []).append((step.start, step.end))
        for of_writer in window.events(lambda phase: phase == _LOADING):
            place = of_writer.worker, of_writer.node
            loading = _union(np.stack([of_writer.starts, of_writer.ends], axis=1))
            self._extend(place, loading)
            waited = _length(loading)
            if of_writer.source != _TRACES and place in steps:
                waited -= _overlap(loading, _union(np.array(steps[place], np.int64)))
            self._waited[place] = self._waited.get(place, 0) + waited
        for place, intervals in steps.items():
            self._steps[place] = self._steps.get(place, 0) + len(intervals)
            self._extend(place, np.array(intervals, np.int64))

    def _extend(self, place: tuple[str, str], intervals: Intervals) -> None:
        first, last = int(intervals[:, 0].min()), int(intervals[:, 1].max())
        known = self._spans.get(place, (first, last))
        self._spans[place] = min(first, known[0]), max(last, known[1])

    def shares(self, least: int) -> Iterator[Share]:
        """The share of each worker that has at least so many steps and loads data."""
        for place, waited in self._waited.items():
            first, last = self._spans[place]
            steps = self._steps.get(place, 0)
            if steps >= least and last > first:
                yield Share(*place, steps, 100 * waited / (last - first))


def _union(intervals: Intervals) -> Intervals:
    """The same time as intervals that do not overlap, in order."""
    intervals = intervals[np.argsort(intervals[:, 0], kind="stable")]
    ends = np.maximum.accumulate(intervals[:, 1])
    firsts = np.flatnonzero(np.concatenate(([True], intervals[1:, 0] > ends[:-1])))
    lasts = np.concatenate((firsts[1:] - 1, [len(ends) - 1]))
    return np.stack([intervals[firsts, 0], ends[lasts]], axis=1)


def _length(intervals: Intervals) -> int:
    return int((intervals[:, 1] - intervals[:, 0]).sum())


def _overlap(some: Intervals, others: Intervals) -> int:
    """Time that both unions cover."""
    return _length(some) + _length(others) - _length(_union(np.concatenate([some, others])))
