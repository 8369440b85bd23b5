"""A tensor, as rules written for smdebug ask it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smdbg_core.errors import ConfigError, MissingDataError
from smdbg_core.runs.trial import REDUCTIONS, Tensor
from smdbg_core.smdebug.exceptions import (
    InvalidWorker,
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from smdbg_core.smdebug.modes import ModeKeys, our_mode

if TYPE_CHECKING:
    from smdbg_core.smdebug.trial import CustomTrial

__all__ = ["CustomTensor"]


class CustomTensor:
    """One tensor over the steps up to the one that is judged.

    Attributes:
        name: Name of the tensor.
        trial: The trial that it belongs to.
        cache: For rules that set it; nothing depends on it.
    """

    def __init__(self, trial: CustomTrial, tensor: Tensor) -> None:
        self.name = tensor.name
        self.trial = trial
        self.cache = False
        self._tensor = tensor

    def __repr__(self) -> str:
        return f"<Tensor {self.name}>"

    @property
    def original_name(self) -> str:
        """The framework's own name."""
        return self._tensor.original_name

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Steps at which it was saved, up to now."""
        return [step for step in self._tensor.steps(our_mode(mode)) if self.trial.reaches(step, mode)]

    def prev_steps(self, step: int, n: int | None = None, mode: ModeKeys = ModeKeys.GLOBAL) -> list[int]:
        """The last `n` steps up to and including `step`; all of them without `n`."""
        earlier = [saved for saved in self.steps(mode) if saved <= step]
        return earlier[-n:] if n else earlier

    def workers(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """Workers that saved it at a step."""
        self._require(step_num, mode, None)
        return self._tensor.workers(step_num, our_mode(mode))

    def value(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> NDArray[Any]:
        """The raw value, a fresh array."""
        self._require(step_num, mode, worker)
        try:
            return self._tensor.value(step_num, our_mode(mode), worker)
        except MissingDataError:
            saved = bool(self._tensor.reduction_values(step_num, our_mode(mode), worker))
            raise TensorUnavailableForStep(self.name, step_num, mode, saved) from None

    def values(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, NDArray[Any]]:
        """Raw values by step."""
        return {step: self.value(step, mode, worker) for step in self.steps(mode)}

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,  # noqa: A002 - smdebug's name
    ) -> np.float64:
        """A reduction, saved or computed; norms are those of the flattened tensor."""
        self._require(step_num, mode, worker)
        if reduction_name not in REDUCTIONS:
            message = f"no reduction {reduction_name!r}; there are {', '.join(REDUCTIONS)}"
            raise SMDebugValueError(message)
        try:
            found = self._tensor.reduction_value(step_num, reduction_name, our_mode(mode), worker, abs)
        except MissingDataError:
            raise TensorUnavailableForStep(self.name, step_num, mode) from None
        except ConfigError as error:
            raise SMDebugValueError(str(error)) from None
        return np.float64(found)

    def reduction_values(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], float]:
        """Saved reductions by `(name, of magnitudes)`."""
        self._require(step_num, mode, worker)
        return self._tensor.reduction_values(step_num, our_mode(mode), worker)

    def shape(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> tuple[int, ...]:
        """The shape, as it was saved on its own or with the value."""
        self._require(step_num, mode, worker)
        try:
            return self._tensor.shape(step_num, our_mode(mode), worker)
        except MissingDataError:
            raise ShapeUnavailableForStep(self.name, step_num, mode) from None

    def step(self, *_: Any, **__: Any) -> None:
        """Removed from smdebug too."""
        raise SMDebugNotImplementedError("Tensor.step was removed; use value, reduction_value or shape")

    def _require(self, step: int, mode: ModeKeys, worker: str | None) -> None:
        """Raise what smdebug raises where the tensor cannot be had."""
        self.trial.require(step, mode)
        self.trial.looked_at(self.name)
        try:
            workers = self._tensor.workers(step, our_mode(mode))
        except MissingDataError:
            raise TensorUnavailableForStep(self.name, step, mode) from None
        if worker is not None and worker not in workers:
            raise InvalidWorker(worker)
