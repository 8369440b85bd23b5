"""Following a job: its run is judged as it is written, and once more as a whole when it has ended.

What is found on the way is told and dispatched at once. The report is that of a fresh evaluation of all
data, which costs little, because what was measured is remembered: so it is the same that a later
evaluation gives. Only what rules found while nothing came is carried over; no later evaluation can see it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from smdbg_core.engine.assignment import Assignment
from smdbg_core.engine.clock import Clock
from smdbg_core.engine.evaluation import Evaluation
from smdbg_core.engine.followed_profiler import FollowedProfiler
from smdbg_core.engine.followed_trial import FollowedTrial
from smdbg_core.engine.scope import Scope
from smdbg_core.errors import DataError, MissingDataError
from smdbg_core.outcomes import Report
from smdbg_core.runs.run import Run

if TYPE_CHECKING:
    from smdbg_core.findings import Finding

__all__ = ["Follower", "Pace"]

_REMOTE_POLL = 10.0
_LOCAL_POLL = 0.5
_SHARE = 10
"""Judging from the start takes at most one part in so many of the time."""


class Pace(NamedTuple):
    """How often and how long a run is looked at; all in seconds."""

    poll: float | None = None
    """Time between two looks; by default half a second, and ten where files are remote."""

    grace: float = 30.0
    """How long a worker's file is waited for once a later step is complete."""

    idle_timeout: float = 3600.0
    """Following ends when nothing came for so long."""


class _Silence(NamedTuple):
    """What a rule found while nothing came."""

    step: int | None
    """The last step that was judged before."""

    name: str
    finding: Finding


class Follower:
    """Follows one run to its end.

    Args:
        assignment: Rules and actions.
        uri: The run; it need not be there yet.
        scope: What is judged of it.
        pace: How often and how long it is looked at.
        clock: What time it goes by.
        executor: Where tensors are measured.
        output: Folder for the files that rules write.
        on_finding: Told each finding once, as soon as it is made.
        on_wait: Told what is waited for, at each look.
        job_end: Tells why the job is over, if it is known to be: the status of a training job.
    """

    def __init__(
        self,
        assignment: Assignment,
        uri: str,
        *,
        scope: Scope,
        pace: Pace,
        clock: Clock,
        executor: Executor | None = None,
        output: Path | None = None,
        on_finding: Callable[[str, Finding], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
        job_end: Callable[[], str | None] | None = None,
    ) -> None:
        self._assignment = assignment
        self._uri = uri
        self._scope = scope
        self._pace = pace
        self._clock = clock
        self._executor = executor
        self._output = output
        self._on_finding = on_finding
        self._on_wait = on_wait or (lambda _: None)
        self._job_end = job_end
        self._told: set[int] = set()
        self._silences: list[_Silence] = []
        self._waiting = False
        self._fired = False
        self._run: Run | None = None
        self._trial: FollowedTrial | None = None
        self._profiler: FollowedProfiler | None = None
        self._evaluation: Evaluation | None = None
        self._names = 0
        self._last_step: int | None = None
        self._last_new = clock.monotonic()
        self._looked_at_all = clock.monotonic()
        self._unseen = False
        self._ended_at: float | None = None
        self._rest_until = clock.monotonic()
        self._absent = ""
        self._trouble = ""

    def follow(self) -> Report:
        """Judge what comes until it ends, then everything.

        Raises:
            DataError: The run cannot be read, or was not there when following ended.
        """
        reason = None
        try:
            while reason is None:
                new = self._look()
                self._judge_new()
                if self._fired and self._scope.stop_on_first and self._run and self._evaluation:
                    return self._early_report(self._run, self._evaluation)
                reason = self._end(new)
                if reason is None:
                    if not new:
                        self._idle()
                    self._on_wait(self._waits_for())
                    self._clock.sleep(self._poll)
        except KeyboardInterrupt:
            reason = "following was interrupted: the report is on what was there by then"
        return self._last_report(reason)

    @property
    def _poll(self) -> float:
        if self._pace.poll is not None:
            return self._pace.poll
        parts = [one for one in (self._run.trial, self._run.profiler) if one] if self._run is not None else []
        remote = any(part.storage.parallel > 1 for part in parts) if parts else "://" in self._uri
        return _REMOTE_POLL if remote else _LOCAL_POLL

    def _look(self) -> bool:
        """Look for what is new; whether anything is."""
        now = self._clock.monotonic()
        self._trouble = ""
        if self._run is None:
            new = self._try_to_open()
        else:
            try:
                new = self._look_at_run(now)
            except DataError as error:
                # Hours of judging are not lost for a network that is away for a while.
                self._trouble = str(error)
                new = False
        if new:
            self._last_new = self._clock.monotonic()
            self._unseen = True
        return new

    def _look_at_run(self, now: float) -> bool:
        for part in (self._run.trial, self._run.profiler) if self._run is not None else ():
            if part is not None:
                part.storage.require_folder()  # what is gone is not what has changed
        # Files that come late lie where nobody looks any more: a look at everything finds them.
        everything = self._unseen and now - self._looked_at_all >= self._pace.grace
        new = self._open_more() if everything else False
        new |= self._trial is not None and self._trial.look(everything=everything)
        new |= self._profiler is not None and self._profiler.look(everything=everything)
        if everything:
            self._looked_at_all, self._unseen = self._clock.monotonic(), False
        return new

    def _try_to_open(self) -> bool:
        try:
            run = self._assignment.open(self._uri)
        except MissingDataError as error:
            self._absent = str(error)
            return False
        self._take(run)
        return True

    def _open_more(self) -> bool:
        """Look whether the part of the run that was not there has come."""
        if self._trial is not None and self._profiler is not None:
            return False
        steps = self._trial.trial.steps() if self._trial is not None and self._trial.trial is not None else []
        with suppress(MissingDataError):
            # What is known of the trial need not be read again to learn whether there is profiler output.
            run = self._assignment.open(self._uri, since=steps[-1] + 1 if steps else None)
            more = (run.trial is not None and self._trial is None) or (
                run.profiler is not None and self._profiler is None
            )
            if more:
                self._take(run)
            return more
        return False

    def _take(self, run: Run) -> None:
        self._run = run
        self._drop_evaluation()
        if run.trial is not None:
            self._trial = FollowedTrial(run.trial.storage, self._clock, self._pace.grace)
            self._trial.look()
        if run.profiler is not None:
            self._profiler = FollowedProfiler(run.profiler, self._clock, self._pace.grace)

    def _judge_new(self) -> None:
        """Judge what has become complete; from the start if what was judged has changed."""
        if self._run is None:
            return
        trial = self._trial.trial if self._trial is not None else None
        names = len(trial.tensor_names()) if trial is not None else 0
        changed = (
            self._run.trial is not trial
            or names != self._names
            or (self._trial is not None and self._trial.changed)
            or (self._profiler is not None and self._profiler.changed)
        )
        started = self._clock.monotonic()
        if changed and self._evaluation is not None:
            if started < self._rest_until:
                return
            self._drop_evaluation()
        again = self._evaluation is None
        if self._evaluation is None:
            profiler = self._profiler.profiler if self._profiler is not None else None
            self._run = self._run._replace(trial=trial, profiler=profiler)
            self._names = names
            self._evaluation = self._begin(self._run)
        if self._trial is not None:
            self._fired |= self._judge_steps(self._evaluation, self._trial.complete())
        if self._profiler is not None and not (self._fired and self._scope.stop_on_first):
            windows = self._evaluation.windows
            if windows is not None:
                batches = self._profiler.batches(windows.reader)
                self._fired |= self._evaluation.judge_windows(batches)
                self._profiler.changed = self._profiler.changed or bool(windows.late)
        if again:
            ended = self._clock.monotonic()
            self._rest_until = ended + _SHARE * (ended - started)

    def _drop_evaluation(self) -> None:
        """What was judged counts no more: the next look judges from the start."""
        if self._evaluation is not None:
            self._evaluation.end()
        self._evaluation = None
        if self._trial is not None:
            self._trial.begin_again()
        if self._profiler is not None:
            self._profiler.begin_again()

    def _begin(self, run: Run) -> Evaluation:
        self._assignment.dispatcher.begin_again()
        evaluation = self._assignment.evaluation(run, self._tell)
        evaluation.begin(self._executor, self._scope)
        self._recall(evaluation, None)
        return evaluation

    def _judge_steps(self, evaluation: Evaluation, steps: Sequence[int]) -> bool:
        """Judge steps; what rules found in the silence after one of them is recalled there."""
        fired = False
        rest = list(steps)
        for after in sorted({one.step for one in self._silences if one.step is not None} & set(rest)):
            before = [step for step in rest if step <= after]
            rest = rest[len(before) :]
            fired |= evaluation.judge_steps(before)
            self._recall(evaluation, after)
        fired |= evaluation.judge_steps(rest)
        if steps:
            self._last_step = steps[-1]
        return fired

    def _recall(self, evaluation: Evaluation, step: int | None) -> None:
        for silence in self._silences:
            if silence.step == step:
                evaluation.recall(silence.name, silence.finding)

    def _idle(self) -> None:
        if self._evaluation is None:
            return
        self._waiting = True
        try:
            self._evaluation.idle(self._clock.monotonic())
        finally:
            self._waiting = False

    def _tell(self, name: str, finding: Finding) -> None:
        if self._waiting:
            self._silences.append(_Silence(self._last_step, name, finding))
            self._fired = True
        key = hash((name, finding.key, finding.step, finding.window_start_us, finding.value))
        if self._on_finding is not None and key not in self._told:
            self._told.add(key)
            self._on_finding(name, finding)

    def _end(self, new: bool) -> str | None:
        """Why following is over, `None` if it is not: empty, if nothing has to be said of it."""
        now = self._clock.monotonic()
        if self._job_end is not None and (status := self._job_end()) is not None and not new:
            return status
        parts = [part for part in (self._trial, self._profiler) if part is not None]
        ended = [part.ended for part in parts]
        if self._is_one_file and not new:
            return ""
        if any(ended):
            self._ended_at = self._ended_at if self._ended_at is not None else now
            waits = not all(ended) or any(part.waits_for for part in parts)
            # The marker may overtake the last file: one look that finds nothing must follow it.
            patience = self._pace.grace if waits else 0
            if not new and now > self._ended_at and now - max(self._ended_at, self._last_new) >= patience:
                return ""
        if now - self._last_new >= self._pace.idle_timeout:
            return f"nothing came for {self._pace.idle_timeout:g} s: following ended, the job perhaps did not"
        return None

    @property
    def _is_one_file(self) -> bool:
        """Whether the run is a single file of metrics or events: nothing can be added to it."""
        run = self._run
        if run is None or run.trial is not None or run.profiler is None:
            return False
        return [file.name for file in run.profiler.files] == [run.uri.rpartition("/")[2]]

    def _waits_for(self) -> str:
        if self._run is None:
            return f"data: {self._absent}"
        if self._trouble:
            return f"what cannot be read now: {self._trouble}"
        if self._trial is not None and (worker := self._trial.waits_for) is not None:
            return worker
        return "the next step or the end of the job"

    def _early_report(self, run: Run, evaluation: Evaluation, warning: str | None = None) -> Report:
        """The report on what was judged so far."""
        evaluation.end()
        evaluation.warnings += [warning] if warning else []
        return self._assignment.report(run, evaluation, evaluation.outcomes(self._output))

    def _last_report(self, reason: str) -> Report:
        """The report on all that is there."""
        try:
            run = self._assignment.open(self._uri)
        except DataError as error:
            if self._evaluation is None or self._run is None:
                raise
            lost = (
                f"everything could not be read once more ({error}): the report is on what was judged before"
            )
            return self._early_report(self._run, self._evaluation, lost)
        if self._evaluation is not None:
            self._evaluation.end()
        evaluation = self._begin(run)
        if run.trial is not None:
            self._judge_steps(evaluation, run.trial.steps())
        if evaluation.windows is not None:
            evaluation.judge_windows(evaluation.windows.reader)
        evaluation.end()
        if reason:
            evaluation.warnings.append(reason)
        return self._assignment.report(run, evaluation, evaluation.outcomes(self._output))
