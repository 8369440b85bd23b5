"""The scan: every file once, in the order of steps, measured ahead of the judging by an executor."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from typing import NamedTuple

from smdbg_core.engine.measure import Measured, measure
from smdbg_core.engine.plan import FilePlan, FileTask, Plan
from smdbg_core.runs.trial import Damage, StepFile, Trial
from smdbg_core.runs.views import Measurement

__all__ = ["Scan", "ScannedFile"]

_BATCH_BYTES = 4 * 2**20
_BATCH_FILES = 64


class ScannedFile(NamedTuple):
    """A file with what was measured in it."""

    file: StepFile
    plan: FilePlan
    measurements: list[Measurement | None]
    """One for each measured item of the plan; `None` where the data is damaged."""


class _Batch:
    """Consecutive steps that are measured in one task."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, list[tuple[StepFile, FilePlan]]]] = []
        self.tasks: list[FileTask] = []
        self.nbytes = 0

    @property
    def full(self) -> bool:
        return self.nbytes >= _BATCH_BYTES or len(self.tasks) >= _BATCH_FILES


class Scan:
    """All steps of a trial with their measurements, sorted by step, then worker.

    A bounded number of batches is under way, so that memory does not grow with the length of a run.

    Args:
        trial: What is read.
        plan: What is measured.
        executor: Where it is measured; `None` measures in the judging thread.
        ahead: How many batches may be under way.
        steps: Global steps to judge, `begin <= step < end`; earlier ones are still looked back to.
        mode: Mode of the steps to judge; all by default.

    Attributes:
        damage: Records that could not be measured, in the order of steps.
    """

    def __init__(
        self,
        trial: Trial,
        plan: Plan,
        executor: Executor | None = None,
        *,
        ahead: int = 3,
        steps: tuple[int | None, int | None] = (None, None),
        mode: str | None = None,
    ) -> None:
        self.damage: list[Damage] = []
        self._trial = trial
        self._plan = plan
        self._executor = executor
        self._ahead = ahead
        self._begin, self._end = steps
        self._mode = mode

    def __iter__(self) -> Iterator[tuple[int, list[ScannedFile]]]:
        waiting: deque[tuple[_Batch, Future[Measured]]] = deque()
        for batch in self._batches():
            if self._executor is None:
                yield from self._merged(batch, measure(batch.tasks))
                continue
            waiting.append((batch, self._executor.submit(measure, batch.tasks)))
            if len(waiting) >= self._ahead:
                done, future = waiting.popleft()
                yield from self._merged(done, future.result())
        while waiting:
            done, future = waiting.popleft()
            yield from self._merged(done, future.result())

    def _batches(self) -> Iterator[_Batch]:
        batch = _Batch()
        for step in self._trial.steps():
            files = self._trial.files(step)
            if self._wants(step, files[0].mode):
                planned = [(file, self._plan.file(file)) for file in files]
                batch.steps.append((step, planned))
                for file, plan in planned:
                    if plan.measured:
                        batch.tasks.append(self._plan.task(file, plan))
                        batch.nbytes += plan.nbytes
                if batch.full:
                    yield batch
                    batch = _Batch()
            for file in files:
                self._plan.passed(file)
        if batch.steps:
            yield batch

    def _wants(self, step: int, mode: str) -> bool:
        after = self._begin is None or step >= self._begin
        before = self._end is None or step < self._end
        return after and before and (self._mode is None or mode == self._mode)

    def _merged(self, batch: _Batch, measured: Measured) -> Iterator[tuple[int, list[ScannedFile]]]:
        results = iter(measured)
        for step, planned in batch.steps:
            scanned = []
            for file, plan in planned:
                measurements: list[Measurement | None] = []
                if plan.measured:
                    measurements, damage, start = next(results)
                    self.damage += damage
                    self._trial.note_start(file, start)
                scanned.append(ScannedFile(file, plan, measurements))
            yield step, scanned
