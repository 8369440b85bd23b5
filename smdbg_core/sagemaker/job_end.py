"""Whether a training job is over, as SageMaker knows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smdbg_core.errors import SmdbgError
from smdbg_core.sagemaker.describe import describe_job

__all__ = ["JobEnd"]

_OVER = {"Completed": "", "Failed": "failed", "Stopped": "was stopped"}


class JobEnd:
    """Asks for the status of a job once in a while.

    Args:
        name: Name of the training job.
        clock: Seconds on a clock that is never set back.
        on_problem: Told once why the status cannot be asked for; nothing is asked any more then.
        interval: Seconds between two questions.
        describe: Asks SageMaker.
    """

    def __init__(
        self,
        name: str,
        clock: Callable[[], float],
        on_problem: Callable[[str], None],
        *,
        interval: float = 30.0,
        describe: Callable[[str], dict[str, Any]] = describe_job,
    ) -> None:
        self._name = name
        self._clock = clock
        self._on_problem = on_problem
        self._interval = interval
        self._describe = describe
        self._next: float | None = clock()
        self._answer: str | None = None

    def __call__(self) -> str | None:
        """What became of the job, empty if it completed; `None` while it is not over, or nobody knows."""
        if self._next is None or self._answer is not None or self._clock() < self._next:
            return self._answer
        self._next = self._clock() + self._interval
        try:
            status = self._describe(self._name).get("TrainingJobStatus")
        except SmdbgError as error:
            self._next = None
            self._on_problem(f"the status of the job cannot be asked for: {error}")
            return None
        if status in _OVER:
            said = _OVER[status]
            self._answer = f"the training job {self._name} {said}" if said else ""
        return self._answer
