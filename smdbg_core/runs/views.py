"""Views: what a rule sees of one step of a trial, and of one tensor in it.

Everything that a rule declared in `reads` has been measured by the time it sees a view. What it did
not declare is read or measured when asked for: right, but not shared with other rules.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from smdbg_core.errors import ConfigError, MissingDataError
from smdbg_core.spelling import nearest
from smdbg_core.stats import FUSED, fused, lookup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from smdbg_core.runs.trial import Trial

__all__ = [
    "AcrossWorkers",
    "Comparison",
    "Failed",
    "Measurement",
    "Point",
    "StepView",
    "TensorView",
    "Wanted",
]


class Point(NamedTuple):
    """A place in the training: a global step, and its step within its mode."""

    step: int
    mode: str
    mode_step: int


class Wanted(NamedTuple):
    """What is measured of a tensor for all rules together."""

    fused: tuple[str, ...] = ()
    """Statistics of the fused pass; never empty where values are numbers."""

    extras: tuple[tuple[Hashable, ...], ...] = ()
    """Other statistics with their arguments: `("quantiles", 0.05, 0.95)`."""

    compares: tuple[tuple[Any, ...], ...] = ()
    """Keys of the declared comparisons."""


class Comparison(NamedTuple):
    """A pairwise statistic against one other value of the same tensor."""

    mode_step: int
    """Where the other value is from."""

    run: str | None
    """URI of the other run; `None` for this one."""

    value: Any


class Failed(NamedTuple):
    """Stands for the value of a statistic that raised."""

    kind: str
    """Name of the exception's class."""

    message: str


class Measurement(NamedTuple):
    """What was measured of one tensor at one step."""

    shape: tuple[int, ...]
    dtype: str
    non_finite: int
    row: tuple[float, ...] | None
    """Values of `Wanted.fused`; `None` for tensors that are not numbers."""

    extras: tuple[Any, ...] = ()
    compares: tuple[tuple[Comparison, ...], ...] = ()
    from_reductions: bool = False


@cache
def _statistics_type(names: tuple[str, ...]) -> Any:
    """A named tuple of the fused statistics `names`, with a helpful complaint for others."""

    def missing(self: object, name: str) -> float:
        message = f"statistic {name!r} is not in `reads().statistics`{nearest(name, names)}"
        raise AttributeError(message)

    return type("Statistics", (namedtuple("Statistics", names),), {"__slots__": (), "__getattr__": missing})


class _AtPoint:
    """What lies at one point of the training."""

    __slots__ = ("point",)

    point: Point

    @property
    def step(self) -> int:
        """Global step."""
        return self.point.step

    @property
    def mode(self) -> str:
        """`TRAIN`, `EVAL`, `PREDICT` or `GLOBAL`."""
        return self.point.mode

    @property
    def mode_step(self) -> int:
        """Step within the mode."""
        return self.point.mode_step


class TensorView(_AtPoint):
    """One tensor of one worker at one step."""

    __slots__ = ("_measurement", "_trial", "_wanted", "name", "non_finite", "worker")

    node = None

    def __init__(
        self,
        trial: Trial,
        point: Point,
        name: str,
        worker: str,
        measurement: Measurement | None = None,
        wanted: Wanted = Wanted(),  # noqa: B008 - immutable
    ) -> None:
        self.name = name
        self.worker = worker
        self.point = point
        self._trial = trial
        self._measurement = measurement
        self._wanted = wanted
        self.non_finite = measurement.non_finite if measurement else 0

    def __repr__(self) -> str:
        return f"<TensorView {self.name} {self.worker} step {self.point.step} ({self.mode} {self.mode_step})>"

    @property
    def location(self) -> dict[str, Any]:
        """The fields of a finding that say where it is."""
        step, mode, mode_step = self.point
        return {"step": step, "last_step": step, "mode": mode, "mode_step": mode_step}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the saved value, or as it was saved without one."""
        if self._measurement:
            return self._measurement.shape
        return self._trial.tensor(self.name).shape(self.step, worker=self.worker)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the saved value."""
        if self._measurement:
            return np.dtype(self._measurement.dtype)
        return self._trial.tensor(self.name).dtype(self.step, worker=self.worker)

    @property
    def from_reductions(self) -> bool:
        """Whether the raw value was not saved and the statistics come from saved reductions."""
        return self._measurement is not None and self._measurement.from_reductions

    @property
    def values(self) -> NDArray[Any]:
        """The saved value, read-only.

        Raises:
            MissingDataError: The raw value was not saved.
        """
        values = self._trial.tensor(self.name).value(self.step, worker=self.worker)
        values.flags.writeable = False
        return values

    @property
    def reductions(self) -> dict[str, float]:
        """Saved reductions by name: `mean`, `abs_mean`, `l2`, ..."""
        saved = self._trial.tensor(self.name).reduction_values(self.step, worker=self.worker)
        return {("abs_" if absolute else "") + name: float(v) for (name, absolute), v in saved.items()}

    @property
    def statistics(self) -> Any:
        """Statistics of the fused pass, over finite elements: `tensor.statistics.mean_abs`."""
        if self._measurement is None:
            return _statistics_type(FUSED)._make(fused(self.values, FUSED))
        if self._measurement.row is None:
            message = f"{self.name} has no numeric statistics: its type is {self._measurement.dtype}"
            raise MissingDataError(self._trial.uri, message)
        return _statistics_type(self._wanted.fused)._make(self._measurement.row)

    def measure(self, statistic: str, *args: Hashable) -> Any:
        """The value of a registered statistic that takes arguments: `measure("quantiles", 0.05, 0.95)`."""
        key = (statistic, *args)
        if self._measurement and key in self._wanted.extras:
            value = self._measurement.extras[self._wanted.extras.index(key)]
            if isinstance(value, Failed):
                raise _failure(self, statistic, value)
            return value
        return lookup(statistic).function(self.values, *args)

    def compare(self, key: tuple[Any, ...]) -> tuple[Comparison, ...]:
        """The results of a `Compare` of `reads`, oldest first; empty if nothing can be compared."""
        if self._measurement and key in self._wanted.compares:
            compared = self._measurement.compares[self._wanted.compares.index(key)]
            for one in compared:
                if isinstance(one.value, Failed):
                    raise _failure(self, str(key[0]), one.value)
            return compared
        message = f"{key!r} is not in `reads().compare`"
        raise KeyError(message)

    def steps(self) -> list[int]:
        """Mode steps at which this tensor was saved by this worker in this mode, up to now."""
        tensor = self._trial.tensor(self.name)
        return [s for s in tensor.steps(mode=self.mode, worker=self.worker) if s <= self.mode_step]

    def at(self, mode_step: int) -> TensorView:
        """The same tensor at an earlier mode step.

        Raises:
            MissingDataError: It was not saved there, or that lies ahead.
        """
        step = self._trial.global_step(self.mode, mode_step)
        if step is None or step > self.step:
            message = (
                f"{self.name}: {self.mode} step {mode_step} is not saved, or later than {self.mode_step}"
            )
            raise MissingDataError(self._trial.uri, message)
        return TensorView(self._trial, Point(step, self.mode, mode_step), self.name, self.worker)

    def previous(self) -> TensorView | None:
        """The same tensor at the saved step before this one, or `None`."""
        earlier = [s for s in self.steps() if s < self.mode_step]
        return self.at(earlier[-1]) if earlier else None


def _failure(tensor: TensorView, statistic: str, failed: Failed) -> ConfigError:
    message = f"{statistic} of {tensor.name}, shape {tensor.shape}: {failed.kind}: {failed.message}"
    return ConfigError(message)


class StepView(_AtPoint):
    """One step, as one rule sees it: only the tensors that the rule reads."""

    __slots__ = ("_groups", "_trial")

    def __init__(self, trial: Trial, point: Point, groups: Mapping[str, Sequence[TensorView]]) -> None:
        self.point = point
        self._trial = trial
        self._groups = groups

    def __repr__(self) -> str:
        return f"<StepView {self.step} ({self.mode} {self.mode_step})>"

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups of `reads` that are read in this run, in declared order."""
        return tuple(self._groups)

    @property
    def wall_time(self) -> float | None:
        """When the step was written, seconds since the epoch: the latest over all workers."""
        return self._trial.wall_time(self.step)

    def tensors(self, group: str | None = None) -> Sequence[TensorView]:
        """The tensors of a group of `reads`, sorted by name, then worker; without a group, all."""
        if group is not None:
            return self._groups[group]
        if len(self._groups) == 1:
            return next(iter(self._groups.values()))
        together = {(v.name, v.worker): v for views in self._groups.values() for v in views}
        return [together[key] for key in sorted(together)]

    def by_tensor(self, group: str | None = None) -> Iterator[tuple[str, list[TensorView]]]:
        """Each tensor with the views of all its workers."""
        for name, views in groupby(self.tensors(group), key=attrgetter("name")):
            yield name, list(views)


class AcrossWorkers:
    """One tensor at one step over all its workers, for rules that average them.

    Args:
        views: The tensor's views, one for each worker; at least one.
    """

    __slots__ = ("views",)

    node = None

    def __init__(self, views: Sequence[TensorView]) -> None:
        self.views = views

    @property
    def name(self) -> str:
        """Name of the tensor."""
        return self.views[0].name

    @property
    def worker(self) -> str | None:
        """The worker, if there is only one."""
        return self.views[0].worker if len(self.views) == 1 else None

    @property
    def non_finite(self) -> int:
        """Non-finite elements over all workers."""
        return sum(view.non_finite for view in self.views)

    @property
    def location(self) -> dict[str, Any]:
        """The fields of a finding that say where it is."""
        return self.views[0].location

    @property
    def mean(self) -> float:
        """Mean over the workers of the mean over finite elements; needs the statistic `mean`."""
        return float(sum(view.statistics.mean for view in self.views) / len(self.views))
