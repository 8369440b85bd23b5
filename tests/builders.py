"""Builders of small trials for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smdbg_core import TrialWriter

__all__ = ["Step", "write_trial"]

Step = tuple[str, Mapping[str, Any]]
"""Mode and tensors of a step."""


def write_trial(
    folder: Path,
    steps: Mapping[int, Mapping[str, Any] | Step],
    *,
    mode: str = "GLOBAL",
    workers: Sequence[str] = ("worker_0",),
    **options: Any,
) -> str:
    """Write a trial and return its path.

    Args:
        folder: Where.
        steps: Tensors by global step, or `(mode, tensors)`.
        mode: Mode of the steps that name none.
        workers: Every worker writes the same.
        **options: For `StepWriter.add`: `raw`, `reductions`, `shape`.
    """
    for worker in workers:
        last = worker == workers[-1]
        with TrialWriter(folder, worker=worker, num_workers=len(workers), end=last) as writer:
            for number, content in steps.items():
                at, tensors = content if isinstance(content, tuple) else (mode, content)
                with writer.step(number, mode=at) as step:
                    for name, value in tensors.items():
                        step.add(name, value, **options)
    return str(folder)
