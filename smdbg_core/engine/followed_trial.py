"""A trial that is followed: which of its steps can be judged by now."""

from __future__ import annotations

from smdbg_core.engine.clock import Clock
from smdbg_core.runs.trial import GrowingTrial, Trial
from smdbg_core.storage import Storage

__all__ = ["FollowedTrial"]


class FollowedTrial:
    """Hands out the steps of a growing trial in order, each once it is complete.

    A step is complete when every worker has written it, or when a later step is complete and the time of
    grace has passed since. What comes for a step that was handed out already makes `changed` true.

    Args:
        storage: Where the trial lies.
        clock: Measures the time of grace.
        grace: Seconds that a step is waited for once a later one is complete.

    Attributes:
        changed: Whether what was handed out is no longer what the trial holds.
    """

    def __init__(self, storage: Storage, clock: Clock, grace: float) -> None:
        self.changed = False
        self._growing = GrowingTrial(storage)
        self._clock = clock
        self._grace = grace
        self._position = 0
        self._blocked: tuple[int, float] | None = None
        self._given_up: set[int] = set()

    @property
    def trial(self) -> Trial | None:
        """The trial, as far as it has been written."""
        return self._growing.trial

    @property
    def ended(self) -> bool:
        """Whether the end marker is there."""
        return self.trial is not None and self.trial.ended

    @property
    def waits_for(self) -> str | None:
        """Who has not written the next step, in words; `None` if no step is begun."""
        trial = self.trial
        steps = trial.steps() if trial is not None else []
        if self._position >= len(steps):
            return None
        step = steps[self._position]
        return f"{self._growing.waits_for(step)} at step {step}"

    def look(self, *, everything: bool = False) -> bool:
        """Look for what is new; whether anything is.

        Args:
            everything: Look at all index files rather than at those of steps that were not handed out.
        """
        steps = self.trial.steps() if self.trial is not None else []
        last = steps[self._position - 1] if self._position else None
        pending = steps[self._position] if self._position < len(steps) else last
        growth = self._growing.look(since=None if everything else pending)
        if last is not None and (growth.another or any(step <= last for step in growth.changed)):
            self.changed = True
        return growth.new

    def begin_again(self) -> None:
        """Hand out all steps once more."""
        self._position = 0
        self.changed = False

    def complete(self) -> list[int]:
        """The steps that have become complete, in order."""
        trial = self.trial
        if trial is None or self.changed:
            return []
        steps = trial.steps()
        begin = self._position
        while self._position < len(steps) and self._is_complete(steps, self._position):
            self._position += 1
        return steps[begin : self._position]

    def _is_complete(self, steps: list[int], position: int) -> bool:
        step = steps[position]
        if step in self._given_up or self._growing.is_written(step):
            return True
        if self._blocked is None or self._blocked[0] != step:
            if not any(self._growing.is_written(later) for later in steps[position + 1 :]):
                return False
            self._blocked = step, self._clock.monotonic()
        if self._clock.monotonic() - self._blocked[1] < self._grace:
            return False
        self._given_up.add(step)
        return True
