"""A builder of small trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from smdbg_core.runs.trial import TrialWriter

__all__ = ["TrialBuilder"]


class TrialBuilder:
    """Steps with tensors, written as the hooks write them.

        TrialBuilder().step(0, {"gradient/a": [1e-9]}).step(1, {"gradient/a": [1e-9]}).write(tmp_path)

    Args:
        mode: Mode of the steps that name none.
        workers: Every worker writes the same.
    """

    def __init__(self, *, mode: str = "TRAIN", workers: Sequence[str] = ("worker_0",)) -> None:
        self._mode = mode
        self._workers = tuple(workers)
        self._steps: list[tuple[int, str, Mapping[str, Any]]] = []

    def step(self, number: int, tensors: Mapping[str, Any], *, mode: str | None = None) -> Self:
        """One saved step.

        Args:
            number: The global step.
            tensors: Values by name; anything that NumPy makes an array of.
            mode: Mode of the step.
        """
        self._steps.append((number, mode or self._mode, tensors))
        return self

    def steps(self, numbers: Sequence[int] | range, tensors: Mapping[str, Any], **options: Any) -> Self:
        """The same tensors at several steps."""
        for number in numbers:
            self.step(number, tensors, **options)
        return self

    @property
    def names(self) -> list[str]:
        """Names of all tensors."""
        return sorted({name for _, _, tensors in self._steps for name in tensors})

    @property
    def numbers(self) -> list[tuple[int, str]]:
        """Steps and their modes."""
        return [(number, mode) for number, mode, _ in self._steps]

    def write(self, folder: Path, *, workers: Sequence[str] | None = None) -> str:
        """Write the trial and return its path.

        Args:
            folder: Where; it may be there, but must hold no trial.
            workers: Instead of those of the builder; they write in this order.
        """
        chosen = tuple(workers or self._workers)
        for worker in chosen:
            last = worker == chosen[-1]
            with TrialWriter(folder, worker=worker, num_workers=len(chosen), end=last) as writer:
                for number, mode, tensors in self._steps:
                    with writer.step(number, mode=mode) as step:
                        for name, value in tensors.items():
                            step.add(name, value)
        return str(folder)
