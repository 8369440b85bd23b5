"""StalledTrainingRule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, NamedTuple

from smdbg_core import Finding, Meta, Reads, RuleRun, StepView, TensorRule


class StalledTrainingRule(TensorRule):
    """Fires when a job has saved nothing for too long.

    Why it matters: a job that hangs costs as much as one that trains.
    What to do: look at the job's log at the last saved step; check data loading and communication.
    """

    group: ClassVar = "universal"
    severity: ClassVar = "critical"

    threshold: Annotated[int, Meta(ge=1, unit="seconds", description="A longer silence fires.")] = 1800
    stop_training_on_fire: Annotated[
        bool, Meta(description="Ask for the job to be stopped; here, configure the action StopTraining.")
    ] = False
    training_job_name_prefix: Annotated[
        str | None, Meta(description="Prefix of the name of the job to stop.")
    ] = None

    def reads(self) -> Reads:
        """That anything was saved, whatever it is."""
        return Reads(everything=True, min_points=2, strings=True)

    def start(self, run: RuleRun) -> None:
        """Nothing was seen yet."""
        self._last: tuple[_Training, float] | None = None
        self._idle_since: float | None = None

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge the time since the step before; the finding is at that step."""
        self._idle_since = None
        now = step.wall_time
        if now is None:
            self.skip(None, "the time of the step cannot be read")
            return
        last, self._last = self._last, (_Training(step.step, step.mode, step.mode_step), now)
        if last is None:
            self.skip(None, "too few saved steps", have=1, need=2)
            return
        subject, before = last
        silence = now - before
        text = f"nothing was saved for {silence:.0f} s > {self.threshold} s after step {subject.step}"
        yield from self.judge(subject, "seconds_without_tensors", silence, ">", self.threshold, message=text)

    def idle(self, clock: float) -> Iterable[Finding]:
        """Judge the silence after the last step, while a job is followed."""
        if self._idle_since is None:
            self._idle_since = clock
        silence = clock - self._idle_since
        if silence <= self.threshold:
            return ()
        self._idle_since = clock
        subject = self._last[0] if self._last else _Training(-1, "GLOBAL", -1)
        text = f"nothing was saved for {silence:.0f} s > {self.threshold} s after step {subject.step}"
        return self.judge(subject, "seconds_without_tensors", silence, ">", self.threshold, message=text)


class _Training(NamedTuple):
    """The training as a whole, at its last saved step."""

    step: int
    mode: str
    mode_step: int
    name: str = "(training)"
    worker: str | None = None
    node: str | None = None
    non_finite: int = 0

    @property
    def location(self) -> dict[str, Any]:
        """The fields of a finding that say where it is."""
        return {"step": self.step, "last_step": self.step, "mode": self.mode, "mode_step": self.mode_step}
