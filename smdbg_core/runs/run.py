"""A run: what is evaluated; a trial, profiler output, or both."""

from __future__ import annotations

from os import PathLike
from typing import NamedTuple

from smdbg_core.errors import MissingDataError
from smdbg_core.runs.profiler import Profiler, find_profiler, read_profiler
from smdbg_core.runs.trial import Trial, read_trial
from smdbg_core.storage import Storage, open_storage

__all__ = ["Run", "open_run"]

_TENSORS = "debug-output"
_PROFILER = "profiler-output"
_TRIAL_FOLDERS = ("collections", "events", "index")


class Run(NamedTuple):
    """An opened run."""

    uri: str
    trial: Trial | None = None
    profiler: Profiler | None = None
    problems: tuple[str, ...] = ()
    """What is there but cannot be opened, beside what can."""

    @property
    def has(self) -> list[str]:
        """Names of the kinds of data that are there."""
        there = {"trial": self.trial, "profiler": self.profiler}
        return [name for name, data in there.items() if data is not None]


def open_run(
    uri: str | PathLike[str] | Storage, *, steps: tuple[int | None, int | None] | None = None
) -> Run:
    """Open what lies at a path.

    A job's folder has tensors in `debug-output` and metrics in `profiler-output`; either of them can
    also be given alone, and so can a single file of metrics or trace events.

    Args:
        uri: A local folder or file, `s3://bucket/prefix`, or a storage of another kind.
        steps: Global steps `begin <= step < end` to read; `None` leaves an end open.

    Raises:
        MissingDataError: Nothing there that can be evaluated.
        DataAccessError: It is there, but cannot be read.
    """
    storage = open_storage(str(uri).strip()) if isinstance(uri, str | PathLike) else uri
    if storage.is_file():
        return Run(storage.uri, profiler=read_profiler(storage))
    storage.require_folder()
    profiler = find_profiler(storage) or find_profiler(storage.below(_PROFILER))
    tensors = _tensors(storage)
    if tensors is None and profiler is not None:
        return Run(storage.uri, profiler=profiler)
    try:
        trial = read_trial(tensors or storage, steps=steps)
    except MissingDataError as error:
        if profiler is None and tensors is None and not storage.is_empty():
            problem = "and no profiler output, which has the folders system or framework"
            raise MissingDataError(error.where, f"{error.message}; {problem}") from error
        if profiler is None:
            raise
        return Run(storage.uri, profiler=profiler, problems=(str(error),))
    return Run(storage.uri, trial, profiler)


def _tensors(storage: Storage) -> Storage | None:
    """Where the saved tensors of a run are, if it has any."""
    for root in (storage, storage.below(_TENSORS)):
        if any(next(root.names(folder), None) is not None for folder in _TRIAL_FOLDERS):
            return root
    return None
