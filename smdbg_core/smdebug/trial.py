"""A trial, as rules written for smdebug ask it: up to the step that is judged, never beyond."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, KeysView
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

from numpy.typing import NDArray

from smdbg_core.runs.trial import Collection, Trial
from smdbg_core.smdebug.collection import CustomCollection
from smdbg_core.smdebug.exceptions import (
    NoMoreData,
    SMDebugTypeError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
)
from smdbg_core.smdebug.modes import ModeKeys, StepState, mode_keys, our_mode
from smdbg_core.smdebug.tensor import CustomTensor

__all__ = ["CustomTrial", "no_refresh", "refresh"]


class CustomTrial:
    """The saved tensors of one training.

    Args:
        trial: The opened trial.
        horizon: The last global step that can be seen; by default all can.
        name: Name of the trial; by default the last part of the path.

    Attributes:
        name: The last part of the path.
        path: Where the trial lies.
        last_tensor: Name of the tensor that was asked for last.
    """

    def __init__(self, trial: Trial, horizon: int | None = None, name: str | None = None) -> None:
        self.name = name or PurePosixPath(trial.uri).name
        self.path = trial.uri
        self.range_steps: tuple[int | None, int | None] | None = None
        self.dynamic_refresh = False
        self.logger = logging.getLogger("smdebug")
        self.last_tensor: str | None = None
        self._trial = trial
        self._horizon = horizon
        self._passed = 0
        self._names: dict[ModeKeys, set[str]] = {mode: set() for mode in ModeKeys}
        self._modes: dict[int, tuple[ModeKeys, int]] = {}
        self._collections = {name: CustomCollection.of(one) for name, one in trial.collections.items()}
        if horizon is None:
            self._pass_to(max(trial.steps(), default=-1))

    def __repr__(self) -> str:
        return f"<Trial {self.path}: steps {self.steps()}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CustomTrial) and (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    @property
    def num_workers(self) -> int:
        """How many workers write."""
        return self._trial.num_workers

    @property
    def worker_set(self) -> set[str]:
        """Names of the workers."""
        return set(self._trial.workers)

    @property
    def loaded_all_steps(self) -> bool:
        """Whether the training has ended and its last step is in sight."""
        steps = self._trial.steps()
        return self._trial.ended and (not steps or self._sees(steps[-1]))

    @property
    def last_complete_step(self) -> int:
        """The last step in sight, -1 if there is none."""
        return max(self.steps(), default=-1)

    @property
    def _global_to_mode(self) -> dict[int, tuple[ModeKeys, int]]:
        return self._modes

    @property
    def _mode_to_global(self) -> dict[ModeKeys, dict[int, int]]:
        found: dict[ModeKeys, dict[int, int]] = {}
        for step, (mode, mode_step) in self._global_to_mode.items():
            found.setdefault(mode, {})[mode_step] = step
        return found

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[Any] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Names of tensors, sorted."""
        if regex is not None and collection is not None:
            raise SMDebugValueError("give a regex or a collection, not both")
        if collection is not None and not isinstance(collection, str | Collection):
            raise SMDebugTypeError(f"a collection or its name, not {type(collection).__name__}")
        if step is not None:
            self.require(step, mode)
        names = self._trial.tensor_names(step=step, mode=our_mode(mode))
        if step is None and self._horizon is not None:
            names = [name for name in names if name in self._names[_mode(mode)]]
        if regex is not None:
            patterns = [re.compile(pattern) for pattern in _flat(regex)]
            names = [name for name in names if any(pattern.search(name) for pattern in patterns)]
        if collection is not None:
            if isinstance(collection, str):
                if collection not in self._collections:
                    self.logger.info("no collection %s", collection)
                    return []
                collection = self._collections[collection]
            names = [name for name in names if collection.matches(name)]
        return names

    def tensor(self, tname: str) -> CustomTensor:
        """The tensor of that name."""
        if not self.has_tensor(tname):
            raise TensorUnavailable(tname)
        return CustomTensor(self, self._trial.tensor(tname))

    def has_tensor(self, tname: str) -> bool:
        """Whether there is a tensor of that name."""
        return tname in self._names[ModeKeys.GLOBAL]

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Saved steps, up to now."""
        return [step for step in self._trial.steps(our_mode(mode)) if self.reaches(step, mode)]

    def modes(self) -> KeysView[ModeKeys]:
        """Modes of the steps up to now, without GLOBAL."""
        seen = {mode: None for step in self.steps() if (mode := self.mode(step)) is not None}
        return {mode: None for mode in seen if mode is not ModeKeys.GLOBAL}.keys()

    def mode(self, global_step: int) -> ModeKeys | None:
        """Mode of a global step."""
        mode = self._trial.mode(global_step) if self._sees(global_step) else None
        return None if mode is None else mode_keys(mode)

    def mode_step(self, global_step: int) -> int | None:
        """Mode step of a global step."""
        return self._trial.mode_step(global_step) if self._sees(global_step) else None

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys | None, int | None]:
        """Both."""
        return self.mode(global_step), self.mode_step(global_step)

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Global step of a mode step; for GLOBAL the same."""
        if our_mode(mode) is None:
            return mode_step
        step = self._trial.global_step(our_mode(mode), mode_step)
        return step if step is not None and self._sees(step) else None

    def collections(self) -> dict[str, CustomCollection]:
        """Collections by name."""
        return dict(self._collections)

    def collection(self, coll_name: str) -> CustomCollection:
        """The collection of that name; an unknown one is made, without tensors."""
        return self._collections.setdefault(coll_name, CustomCollection(coll_name))

    def workers(self) -> list[str]:
        """Names of the workers, sorted."""
        return list(self._trial.workers)

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        """Whether a step is there, was skipped, or lies ahead."""
        if self._trial.global_step(our_mode(mode), step) is not None and self.reaches(step, mode):
            return StepState.AVAILABLE
        passed = self.loaded_all_steps or step < max(self.steps(mode), default=-1)
        return StepState.UNAVAILABLE if passed else StepState.NOT_YET_AVAILABLE

    def wait_for_steps(self, required_steps: Iterable[int], mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        """Complain about steps that are not there. Nothing is waited for: the engine does that."""
        for step in required_steps:
            state = self.has_passed_step(step, mode)
            last = max(self.steps(mode), default=-1)
            if state is StepState.UNAVAILABLE and step > last:
                raise NoMoreData(step, mode, last)
            if state is not StepState.AVAILABLE:
                self.require(step, mode)

    def inputs(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[NDArray[Any]]:
        """Values of the collection `inputs`."""
        return self._values(self.tensor_names(collection="inputs"), step, mode)

    def labels(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[NDArray[Any]]:
        """Values of tensors whose names begin with `labels`."""
        return self._values(self.tensor_names(regex="^labels"), step, mode)

    def predictions(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[NDArray[Any]]:
        """Values of tensors whose names begin with `predictions`."""
        return self._values(self.tensor_names(regex="^predictions"), step, mode)

    def refresh_data(self) -> None:
        """Nothing to do: the engine reads what is new."""

    def maybe_refresh(self, name: str | None = None) -> None:
        """Nothing to do."""

    def reaches(self, step: int, mode: ModeKeys) -> bool:
        """Whether a saved step of a mode is not beyond the one that is judged."""
        at = step if our_mode(mode) is None else self._trial.global_step(our_mode(mode), step)
        return at is not None and self._sees(at)

    def require(self, step: int, mode: ModeKeys) -> None:
        """Raise what smdebug raises for a step that is not there."""
        state = self.has_passed_step(step, mode)
        if state is StepState.UNAVAILABLE:
            raise StepUnavailable(step, mode)
        if state is StepState.NOT_YET_AVAILABLE:
            raise StepNotYetAvailable(step, mode)

    def move_on(self, step: int) -> None:
        """Let everything up to a global step be seen."""
        self._horizon = step
        self.last_tensor = None
        self._pass_to(step)

    def looked_at(self, name: str) -> None:
        """Remember which tensor was asked for last."""
        self.last_tensor = name

    def _pass_to(self, step: int) -> None:
        """Take note of the names and modes of all steps up to this one."""
        steps = self._trial.steps()
        while self._passed < len(steps) and steps[self._passed] <= step:
            at = steps[self._passed]
            for file in self._trial.files(at):
                for mode in (ModeKeys.GLOBAL, mode_keys(file.mode)):
                    self._names[mode].update(file.layout.names)
                self._modes.setdefault(at, (mode_keys(file.mode), file.mode_step))
            self._passed += 1

    def _sees(self, step: int) -> bool:
        return self._horizon is None or step <= self._horizon

    def _values(self, names: Iterable[str], step: int, mode: ModeKeys) -> list[NDArray[Any]]:
        ordered = sorted(names, key=lambda name: (int("".join(re.findall(r"\d+$", name)) or 0), name))
        return [self.tensor(name).value(step, mode) for name in ordered]


def _mode(mode: ModeKeys | str) -> ModeKeys:
    return mode if isinstance(mode, ModeKeys) else ModeKeys[str(mode).upper()]


def _flat(patterns: str | Iterable[Any]) -> Iterator[str]:
    if isinstance(patterns, str):
        yield patterns
        return
    for one in patterns:
        yield from _flat(one)


@contextmanager
def no_refresh(trials: Any) -> Iterator[Any]:
    """Data does not change while a rule looks at it; kept for those who write it."""
    yield trials


refresh = no_refresh
"""The same: a rule sees what there is up to its step."""
