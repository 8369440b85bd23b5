"""The scan: files in the order of steps, measured ahead of the judging by an executor, or remembered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import NamedTuple

from smdbg_core.engine.measure import Measured, measure
from smdbg_core.engine.measurement_cache import MeasurementCache, Remembered
from smdbg_core.engine.plan import FilePlan, FileTask, Plan
from smdbg_core.runs.trial import Damage, StepFile, Trial
from smdbg_core.runs.views import Measurement

__all__ = ["Scan", "ScannedFile"]

_BATCH_BYTES = 4 * 2**20
_BATCH_FILES = 64

_PAYS = 4096
"""Bytes of a local tensor below which measuring it costs no more than remembering."""


class ScannedFile(NamedTuple):
    """A file with what was measured in it."""

    file: StepFile
    plan: FilePlan
    measurements: list[Measurement | None]
    """One for each measured item of the plan; `None` where the data is damaged."""


class _Planned(NamedTuple):
    """A file that is about to be judged."""

    file: StepFile
    plan: FilePlan
    task: FileTask | None
    """What has to be measured of it."""

    known: Remembered | None
    """What is remembered instead."""


class _Batch:
    """Consecutive steps that are measured in one task."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, list[_Planned]]] = []
        self.tasks: list[FileTask] = []
        self.files = 0
        self.nbytes = 0

    @property
    def full(self) -> bool:
        return self.nbytes >= _BATCH_BYTES or self.files >= _BATCH_FILES

    def add(self, step: int, files: list[_Planned]) -> None:
        self.steps.append((step, files))
        for planned in files:
            self.files += bool(planned.plan.measured)
            if planned.task is not None:
                self.tasks.append(planned.task)
                self.nbytes += planned.plan.nbytes


class Scan:
    """Steps of a trial with their measurements, sorted by step, then worker.

    A bounded number of batches is under way, so that memory does not grow with the length of a run.

    Args:
        trial: What is read.
        plan: What is measured.
        executor: Where it is measured; `None` measures in the judging thread.
        ahead: How many batches may be under way.
        steps: Global steps to judge, `begin <= step < end`; earlier ones are still looked back to.
        mode: Mode of the steps to judge; all by default.
        cache: Remembers what was measured in an earlier scan of the same files.

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
        cache: MeasurementCache | None = None,
    ) -> None:
        self.damage: list[Damage] = []
        self._trial = trial
        self._plan = plan
        self._executor = executor
        self._ahead = ahead
        self._begin, self._end = steps
        self._mode = mode
        self._cache = cache

    def over(self, steps: Iterable[int]) -> Iterator[tuple[int, list[ScannedFile]]]:
        """Measure steps, in their order; called again, it goes on with later ones."""
        waiting: deque[tuple[_Batch, Future[Measured]]] = deque()
        for batch in self._batches(steps):
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
        if self._cache is not None:
            self._cache.flush()

    def _batches(self, steps: Iterable[int]) -> Iterator[_Batch]:
        batch = _Batch()
        for step in steps:
            files = self._trial.files(step)
            if self._wants(step, files[0].mode):
                batch.add(step, [self._planned(file) for file in files])
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

    def _planned(self, file: StepFile) -> _Planned:
        plan = self._plan.file(file)
        if not plan.measured:
            return _Planned(file, plan, None, None)
        task = self._plan.task(file, plan)
        known = self._cache.find(task) if self._cache is not None and self._pays(plan) else None
        return _Planned(file, plan, task if known is None else None, known)

    def _pays(self, plan: FilePlan) -> bool:
        """Whether remembering costs less than measuring again."""
        return self._trial.storage.parallel > 1 or plan.nbytes >= _PAYS * len(plan.measured)

    def _merged(self, batch: _Batch, measured: Measured) -> Iterator[tuple[int, list[ScannedFile]]]:
        results = iter(measured)
        for step, files in batch.steps:
            scanned = []
            for file, plan, task, known in files:
                measurements: list[Measurement | None] = []
                if task is not None:
                    measurements, damage, start = next(results)
                    self.damage += damage
                    self._trial.note_start(file, start)
                    if self._cache is not None and not damage and self._pays(plan):
                        self._cache.store(task, measurements, start)
                elif known is not None:
                    measurements = known.measurements
                    self._trial.note_start(file, known.start)
                scanned.append(ScannedFile(file, plan, measurements))
            yield step, scanned
