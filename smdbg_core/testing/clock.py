"""A clock for tests of what happens while a run is followed."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["FakeClock"]


class FakeClock:
    """Time that passes only when somebody waits, and things that happen meanwhile.

        clock = FakeClock()
        clock.at(5, writer.write_next_step)
        follow("run", [MyRule()], clock=clock, idle_timeout=60)

    Attributes:
        now: Seconds since the clock was made.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, Callable[[], object]]] = []

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self.now

    def at(self, seconds: float, call: Callable[[], object]) -> None:
        """Call something when the clock comes to a time; at once at the next wait, if that has passed."""
        self._due.append((seconds, call))
        self._due.sort(key=lambda one: one[0])

    def sleep(self, seconds: float) -> None:
        """Let time pass: what is due meanwhile happens, in order, each at its time."""
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            time, call = self._due.pop(0)
            self.now = max(self.now, time)
            call()
        self.now = end
