"""A run: what is evaluated; a trial, profiler output, or both."""

from __future__ import annotations

from typing import NamedTuple

from smdbg_core.runs.trial import Trial, open_trial

__all__ = ["Run", "open_run"]


class Run(NamedTuple):
    """An opened run."""

    uri: str
    trial: Trial | None = None

    @property
    def has(self) -> list[str]:
        """Names of the kinds of data that are there."""
        return ["trial"] if self.trial is not None else []


def open_run(uri: str, *, steps: tuple[int | None, int | None] | None = None) -> Run:
    """Open what lies at a path.

    Args:
        uri: A local folder.
        steps: Global steps `begin <= step < end` to read; `None` leaves an end open.

    Raises:
        MissingDataError: Nothing there that can be evaluated.
        DataAccessError: It is there, but cannot be read.
    """
    trial = open_trial(uri, steps=steps)
    return Run(trial.uri, trial)
