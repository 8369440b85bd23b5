"""Tensors of a trial: their values, reductions and shapes over the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smdbg_core.errors import ConfigError, MissingDataError
from smdbg_core.runs.trial.index import Entry, Span, StepFile
from smdbg_core.runs.trial.payload import Payload, locate

if TYPE_CHECKING:
    from smdbg_core.runs.trial.trial import Trial

__all__ = ["REDUCTIONS", "Tensor", "reduce"]

REDUCTIONS = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2")
"""Names of reductions; each exists of the values and, with `abs=True`, of their magnitudes."""


class Tensor:
    """One tensor over all steps.

    Steps are global ones, or mode steps where a mode is given. Without a worker, the first one by name
    that has the tensor at the step is taken.
    """

    def __init__(self, trial: Trial, name: str) -> None:
        self.name = name
        self._trial = trial

    def __repr__(self) -> str:
        return f"<Tensor {self.name}>"

    @property
    def original_name(self) -> str:
        """The framework's own name, where it was saved; else the name."""
        for step in self._trial.steps():
            for file in self._trial.files(step):
                entry = file.layout.entries.get(self.name)
                if entry is not None and entry.original_name:
                    return entry.original_name
        return self.name

    def steps(self, mode: str | None = None, worker: str | None = None) -> list[int]:
        """Steps at which a value, a reduction or a shape of this tensor was saved, sorted."""
        trial = self._trial
        found = []
        for step in trial.steps(mode):
            at = trial.global_step(mode, step)
            files = () if at is None else trial.files(at)
            if any(self.name in file.layout.entries and worker in (None, file.worker) for file in files):
                found.append(step)
        return found

    def prev_steps(self, step: int, n: int | None = None, mode: str | None = None) -> list[int]:
        """The last `n` steps of this tensor up to and including `step`; all of them without `n`."""
        earlier = [saved for saved in self.steps(mode) if saved <= step]
        return earlier[-n:] if n else earlier

    def workers(self, step: int, mode: str | None = None) -> list[str]:
        """Workers that saved this tensor at a step, sorted.

        Raises:
            MissingDataError: The step was not saved, or this tensor was not saved there.
        """
        return [file.worker for file, _ in self._at(step, mode)]

    def value(self, step: int, mode: str | None = None, worker: str | None = None) -> NDArray[Any]:
        """The raw value: a fresh, writable array of the saved type and shape; bfloat16 as float32.

        Raises:
            MissingDataError: No such step or worker, or the raw value was not saved.
            CorruptDataError: The record is damaged.
        """
        file, entry = self._one(step, mode, worker)
        if entry.span is None:
            saved = f"; saved reductions: {', '.join(sorted(entry.reductions))}" if entry.reductions else ""
            raise MissingDataError(self._trial.uri, f"{self.name}: no raw value at step {step}{saved}")
        return self._read(file, self.name, entry.span)

    def values(self, mode: str | None = None, worker: str | None = None) -> dict[int, NDArray[Any]]:
        """Raw values by step."""
        return {step: self.value(step, mode, worker) for step in self.steps(mode, worker)}

    def shape(self, step: int, mode: str | None = None, worker: str | None = None) -> tuple[int, ...]:
        """The shape, as it was saved on its own or with the value.

        Raises:
            MissingDataError: Only reductions were saved.
        """
        file, entry = self._one(step, mode, worker)
        if entry.shape is not None:
            return entry.shape
        return self._payload(file, entry, step).shape

    def dtype(self, step: int, mode: str | None = None, worker: str | None = None) -> np.dtype[Any]:
        """The type of the raw value, as `value` returns it.

        Raises:
            MissingDataError: The raw value was not saved.
        """
        file, entry = self._one(step, mode, worker)
        return np.dtype(self._payload(file, entry, step).dtype_name)

    def reduction_values(
        self, step: int, mode: str | None = None, worker: str | None = None
    ) -> dict[tuple[str, bool], float]:
        """Saved reductions by `(name, of magnitudes)`; nothing is computed."""
        file, entry = self._one(step, mode, worker)
        found = {}
        for reduction, span in sorted(entry.reductions.items()):
            name = reduction.removeprefix("abs_")
            value = self._read(file, f"smdebug/reductions/{reduction}/{self.name}", span)
            found[name, name != reduction] = float(value.reshape(-1)[0])
        return found

    def reduction_value(
        self,
        step: int,
        reduction_name: str,
        mode: str | None = None,
        worker: str | None = None,
        abs: bool = False,  # noqa: A002 - the name that users of smdebug know
    ) -> float:
        """A reduction: the saved one, else computed from the raw value.

        Computed norms are those of the flattened tensor; `std` and `variance` of the population. What the
        PyTorch hook saves of the two is the sample's.

        Raises:
            ConfigError: No such reduction.
            MissingDataError: Neither the reduction nor the raw value was saved.
        """
        if reduction_name not in REDUCTIONS:
            message = f"no reduction {reduction_name!r}; there are {', '.join(REDUCTIONS)}"
            raise ConfigError(message)
        file, entry = self._one(step, mode, worker)
        key = ("abs_" if abs else "") + reduction_name
        span = entry.reductions.get(key)
        if span is not None:
            return float(self._read(file, f"smdebug/reductions/{key}/{self.name}", span).reshape(-1)[0])
        values = self.value(step, mode, worker)
        return reduce(np.abs(values) if abs else values, reduction_name)

    def _at(self, step: int, mode: str | None) -> list[tuple[StepFile, Entry]]:
        trial = self._trial
        at = trial.global_step(mode, step)
        files = () if at is None else trial.files(at)
        if not files:
            unit = "step" if mode is None else f"{mode} step"
            near = sorted(self.steps(mode), key=lambda saved: abs(saved - step))[:3]
            raise MissingDataError(trial.uri, f"{unit} {step} was not saved; {self.name} has {_listed(near)}")
        found = [(file, file.layout.entries[self.name]) for file in files if self.name in file.layout.entries]
        if not found:
            near = sorted(self.steps(mode), key=lambda saved: abs(saved - step))[:3]
            raise MissingDataError(
                trial.uri, f"{self.name} was not saved at step {step}; it has {_listed(near)}"
            )
        return found

    def _one(self, step: int, mode: str | None, worker: str | None) -> tuple[StepFile, Entry]:
        found = self._at(step, mode)
        if worker is None:
            return found[0]
        for file, entry in found:
            if file.worker == worker:
                return file, entry
        workers = ", ".join(file.worker for file, _ in found)
        raise MissingDataError(
            self._trial.uri, f"{self.name} at step {step}: not from {worker!r}; from {workers}"
        )

    def _payload(self, file: StepFile, entry: Entry, step: int) -> Payload:
        if entry.span is None or file.event_file is None:
            raise MissingDataError(self._trial.uri, f"{self.name}: no raw value at step {step}")
        with self._trial.storage.open(file.event_file) as opened:
            opened.expect([entry.span])
            return locate(opened, self.name, entry.span)

    def _read(self, file: StepFile, name: str, span: Span) -> NDArray[Any]:
        if file.event_file is None:
            raise MissingDataError(self._trial.uri, f"{name}: the index names no event file")
        with self._trial.storage.open(file.event_file) as opened:
            opened.expect([span])
            payload = locate(opened, name, span)
            content = bytearray(payload.nbytes)
            opened.read_into(payload.offset, memoryview(content))
        return payload.array(content)


def _listed(steps: list[int]) -> str:
    return f"steps near it: {', '.join(map(str, sorted(steps)))}" if steps else "none in this mode"


def reduce(values: NDArray[Any], name: str) -> float:
    """A reduction in float64; std and variance are the population's, norms those of the flattened array."""
    if values.dtype.kind not in "biufc":
        message = f"strings have no {name}"
        raise ConfigError(message)
    flat = values.reshape(-1).astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    if not flat.size and name in ("min", "max", "mean", "std", "variance"):
        return float("nan")
    computed: dict[str, Callable[[NDArray[Any]], Any]] = {
        "min": np.min,
        "max": np.max,
        "mean": np.mean,
        "std": np.std,
        "variance": np.var,
        "sum": np.sum,
        "prod": np.prod,
        "l1": lambda x: np.abs(x).sum(),
        "l2": lambda x: np.sqrt((np.abs(x) ** 2).sum()),
    }
    with np.errstate(all="ignore"):
        return float(computed[name](flat))
