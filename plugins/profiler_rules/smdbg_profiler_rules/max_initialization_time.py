"""MaxInitializationTime: the first step takes too long to appear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from smdbg_core import Finding, Measurements, Meta, Place, ProfilerRule, RuleRun, ScanReads, ScanWindow

__all__ = ["MaxInitializationTime"]

_MINUTE = 60_000_000
_INITIALIZATION = "Initialization"


class MaxInitializationTime(ProfilerRule):
    """Fires when training takes too long to reach its first step.

    Why it matters: the machines are paid for while data is downloaded or a set-up hangs.
    What to do: stream the input instead of downloading it, shorten the set-up, build caches beforehand.
    """

    threshold: Annotated[
        float, Meta(gt=0, unit="minutes", description="Time to the first step above which it fires.")
    ] = 20
    framework_profiling: Annotated[
        Literal["auto", "true", "false"],
        Meta(
            local=True,
            description="Whether steps are recorded at all; auto: if there is any file of framework events.",
        ),
    ] = "auto"

    def reads(self) -> tuple[ScanReads, ...]:
        """Times of samples, initialisation as a timeline has it, and steps."""
        series = ("CPUUtilization", "GPUUtilization", "MemoryUsedPercent")
        phases = ("^Step:ModeKeys", f"^{_INITIALIZATION}$")
        return ScanReads(series=series, optional=True), ScanReads(phases=phases, optional=True)

    def start(self, run: RuleRun) -> None:
        """Times of the job and of its steps."""
        recorded = any(run.profiler.count(kind) for kind in ("trace", "tensorflow", "pytorch"))
        # A schedule may let the profiler begin long after training did.
        self._from_traces = bool(run.profiler.count("pytorch")) and not run.profiler.count("trace")
        self._expected = (
            recorded if self.framework_profiling == "auto" else self.framework_profiling == "true"
        )
        self._job = (2**62, 0)
        self._first: int | None = None
        self._first_number: int | None = None
        self._last = self._last_end = 0
        self._steps = self._fired = 0
        self._settled = False
        self._place: Place | None = None
        self._idle_since: float | None = None

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Judge how long the first step has been waited for."""
        self._idle_since = None
        for series in window.series("CPUUtilization", "GPUUtilization", "MemoryUsedPercent"):
            self._job = min(self._job[0], int(series.times[0])), max(self._job[1], int(series.times[-1]))
        for events in window.events(lambda phase: phase == _INITIALIZATION):
            start, end = int(events.starts.min()), int(events.ends.max())
            self._job = min(self._job[0], start), max(self._job[1], end)
        for step in window.steps():
            self._steps += 1
            if self._first is None or step.start < self._first:
                self._first, self._first_number = step.start, step.number
            self._last = max(self._last, step.start)
            self._last_end = max(self._last_end, step.end)
        place = self._place = window.place("first step")
        if not self._expected:
            self.skip(place, "not applicable: no framework events are recorded, so no step can appear")
            return
        if not self._job[1]:
            self.skip(
                place, "not measured: nothing tells when the job began; capture system metrics beside it"
            )
            return
        if self._settled:
            return
        # A step may precede the first sample by up to one sampling interval.
        start = min(self._job[0], self._first if self._first is not None else self._job[0], window.end)
        waited = (min(self._first or window.end, window.end) - start) / _MINUTE
        seen = self._first is not None
        self._settled = seen
        if seen and self._fired:
            self.observe(place)
            return
        if self._from_traces and (not seen or (self._first_number and waited > self.threshold)):
            first = f"step {self._first_number} is the first" if seen else "no step is"
            self.skip(place, f"not recorded: {first} in the trace")
            return
        what = "came after" if seen else "has not come after"
        message = f"the first step {what} {waited:.4g} minutes"
        found = self.judge(place, "minutes", waited, ">", self.threshold, message=message)
        self._fired += len(found)
        yield from found

    def idle(self, clock: float) -> Iterable[Finding]:
        """Judge the silence of a followed job that has not come to its first step."""
        if self._idle_since is None:
            self._idle_since = clock
        started = self._expected and not self._from_traces and bool(self._job[1])
        if self._place is None or self._settled or not started:
            return ()
        waited = (self._job[1] - self._job[0]) / _MINUTE + (clock - self._idle_since) / 60
        if waited <= self.threshold:
            return ()
        self._settled = True
        self._fired += 1
        message = f"the first step has not come after {waited:.4g} minutes"
        return self.judge(self._place, "minutes", waited, ">", self.threshold, message=message)

    def measurements(self) -> Measurements:
        """Beginning and end of the job and of its steps."""
        steps: dict[str, Any] = {}
        if self._first is not None:
            steps = {"first": self._first, "last": self._last}
        details: dict[str, Any] = {"step_num": steps}
        if self._job[1]:
            details |= {"job_start": self._job[0] / 1e6, "job_end": self._job[1] / 1e6}
        return Measurements(
            triggered=self._fired,
            violations=self._fired,
            datapoints=self._steps,
            details=details,
        )
