"""Recording evidence while a run is judged: what rules compared, losses, system metrics, steps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdbg_core.engine.evidence_grid import Grid
from smdbg_core.evidence import Evidence, JudgedPoints, Limit, StepTimes, Subject, Tracks
from smdbg_core.findings import Artifact
from smdbg_core.runs.damage import Damage
from smdbg_core.runs.profiler import Events, Samples, SeriesKey
from smdbg_core.runs.trial import Trial
from smdbg_core.runs.views import TensorView
from smdbg_core.stats import EmpiricalDistribution

__all__ = ["EvidenceRecorder", "PointRecorder"]

_BUCKETS = 256
_SUBJECTS = 256
_STATISTICS = 32
_TIME_BUCKETS = 720
_SERIES = 512
_LIMITS = 4
_LARGEST_DOCUMENT = 2**20
_BINS = 60
_STEP = re.compile(r"Step:ModeKeys\.(\w+)")


class PointRecorder:
    """The points that one rule judges."""

    def __init__(self) -> None:
        self._grids: dict[str, Grid] = {}
        self._limits: dict[str, dict[Limit, None]] = {}
        self._varies: set[str] = set()

    def __call__(
        self, subject: Any, statistic: str, value: float, comparison: str, limit: float, violates: bool
    ) -> None:
        """Take in one point; the engine's tally calls this for every one."""
        location = subject.location
        position = location.get("step")
        timed = position is None
        if timed:
            position = location.get("window_start_us")
            if position is None:
                return
        grid = self._grids.get(statistic)
        if grid is None:
            # A rule may name a statistic for each pair of classes; what violates is kept longer.
            if len(self._grids) >= (2 * _STATISTICS if violates else _STATISTICS):
                return
            grid = self._grids[statistic] = Grid("time" if timed else "step", _BUCKETS, _SUBJECTS)
            self._limits[statistic] = {}
        limits = self._limits[statistic]
        met = Limit(comparison, float(limit))
        if met not in limits:
            if len(limits) < _LIMITS:
                limits[met] = None
            else:
                self._varies.add(statistic)
        row = grid.row(Subject(subject.name, subject.worker, subject.node, location.get("mode")), violates)
        if row is not None:
            grid.add(row, position, value)

    def judged(self) -> list[JudgedPoints]:
        """What was taken in, by statistic."""
        return [
            JudgedPoints(name, list(self._limits[name]), name in self._varies, grid.tracks())
            for name, grid in self._grids.items()
        ]


class EvidenceRecorder:
    """What a report shows beside the verdicts of one evaluation."""

    def __init__(self, trial: Trial | None) -> None:
        self._points: dict[str, PointRecorder] = {}
        self._documents: dict[str, dict[str, Any]] = {}
        self._losses = Grid("step", 1000, 100)
        names = () if trial is None else ("losses", "metrics")
        self._loss_names = {name for one in names for name in trial.tensor_names(collection=one)}  # type: ignore[union-attr]
        self._series: dict[str, Grid] = {}
        self._places: dict[str, NDArray[np.int64]] = {}
        self._known = 0
        self._steps: dict[tuple[str, str, str], tuple[Grid, EmpiricalDistribution]] = {}
        self._damage: dict[str, str] = {}
        self._begin, self._end = -(2**62), 2**62

    def points_of(self, name: str) -> PointRecorder:
        """Where the points of a rule instance go."""
        return self._points.setdefault(name, PointRecorder())

    def restrict(self, begin: float | None, end: float | None) -> None:
        """Take in only profiler data from `begin` up to, not including, `end`: seconds since the epoch."""
        self._begin = -(2**62) if begin is None else int(begin * 1e6)
        self._end = 2**62 if end is None else int(end * 1e6)

    def tensors(self, views: Iterable[TensorView]) -> None:
        """Take in the losses among the tensors of a step."""
        if not self._loss_names:
            return
        for view in views:
            if view.name in self._loss_names:
                statistics = view.statistics
                mean = getattr(statistics, "mean", None)
                row = self._losses.row(Subject(view.name, view.worker, None, view.mode))
                if mean is not None and row is not None:
                    self._losses.add(row, view.step, float("nan") if view.non_finite else float(mean))

    def data(self, keys: Sequence[SeriesKey], data: Samples | Events) -> None:
        """Take in profiler data as it is read."""
        if isinstance(data, Events):
            self._add_steps(data)
            return
        if len(keys) > self._known:
            self._place(keys)
        for measure, grid in self._series.items():
            rows = self._places[measure][data.codes]
            mine = (rows >= 0) & (data.times >= self._begin) & (data.times < self._end)
            grid.add_all(rows[mine], data.times[mine], data.values[mine])

    def _place(self, keys: Sequence[SeriesKey]) -> None:
        """Give new series their rows; in the grids of other measures theirs is -1."""
        for code, key in enumerate(keys[self._known :], start=self._known):
            measure = key.dimension or key.device
            grid = self._series.setdefault(measure, Grid("time", _TIME_BUCKETS, _SERIES))
            row = grid.row(Subject(key.device or measure, None, key.node))
            places = self._places.setdefault(measure, np.empty(0, np.int64))
            more = np.full(code + 1 - len(places), -1, np.int64)
            more[-1] = -1 if row is None else row
            self._places[measure] = np.concatenate([places, more])
        self._known = len(keys)
        for measure, places in self._places.items():
            self._places[measure] = np.concatenate([places, np.full(len(keys) - len(places), -1, np.int64)])

    def _add_steps(self, events: Events) -> None:
        phases = events.phases.tolist()
        for phase in set(phases):
            matched = _STEP.search(phase)
            if matched is None:
                continue
            mine = np.fromiter((one == phase for one in phases), np.bool_, len(phases))
            mine &= (events.ends >= self._begin) & (events.ends < self._end)
            key = events.worker, events.node, matched[1]
            if key not in self._steps:
                self._steps[key] = Grid("time", _TIME_BUCKETS, 1), EmpiricalDistribution()
                self._steps[key][0].row(Subject(events.worker, events.worker, events.node, matched[1]))
            grid, durations = self._steps[key]
            seconds = (events.ends[mine] - events.starts[mine]) / 1e6
            grid.add_all(np.zeros(len(seconds), np.int64), events.ends[mine], seconds)
            durations.add(seconds)

    def artifacts(self, name: str, artifacts: Iterable[Artifact]) -> None:
        """Keep the small JSON files among what a rule wants written."""
        for artifact in artifacts:
            if artifact.media_type == "application/json" and len(artifact.content) <= _LARGEST_DOCUMENT:
                with suppress(ValueError):
                    self._documents.setdefault(name, {})[artifact.path] = json.loads(artifact.content)

    def damage(self, damage: Iterable[Damage]) -> None:
        """Keep what is wrong with damaged files, one entry for each."""
        for one in damage:
            where = "" if one.offset is None else f"at byte {one.offset}: "
            self._damage.setdefault(one.file, f"{where}{one.kind}: {one.detail}")

    def evidence(self) -> Evidence:
        """What was recorded."""
        judged = {name: recorder.judged() for name, recorder in self._points.items()}
        losses = self._losses.tracks()
        return Evidence(
            judged={name: points for name, points in judged.items() if points},
            documents=self._documents,
            losses=losses if losses.tracks else None,
            series=[
                (name, tracks) for name, grid in self._series.items() if (tracks := grid.tracks()).tracks
            ],
            steps=[_step_times(*key, *found) for key, found in sorted(self._steps.items())],
            damage=list(self._damage.items()),
        )


def _step_times(worker: str, node: str, mode: str, grid: Grid, durations: EmpiricalDistribution) -> StepTimes:
    counts, edges = durations.histogram(_BINS)
    names = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    quantiles = dict(zip(names, map(float, durations.quantiles(*names.values())), strict=True))
    quantiles = {"min": float(durations.min), **quantiles, "max": float(durations.max)}
    tracks: Tracks = grid.tracks()
    return StepTimes(
        worker,
        node,
        mode,
        tracks,
        durations.size,
        [int(n) for n in counts],
        [float(e) for e in edges],
        quantiles,
    )
