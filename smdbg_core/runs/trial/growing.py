"""A trial that is still being written: looked at again and again, at the cost of what is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from smdbg_core.errors import MissingDataError
from smdbg_core.runs.trial.index import Layout, StepFile
from smdbg_core.runs.trial.reader import END_MARKER, TrialReader, is_index
from smdbg_core.runs.trial.trial import Trial
from smdbg_core.storage import Storage, Version

__all__ = ["Growth", "GrowingTrial"]


_EXTENTS = 256
"""How many layouts are remembered."""


class Growth(NamedTuple):
    """What a look at a growing trial has brought."""

    new: bool
    """Whether anything is new: a file, or the end marker."""

    changed: frozenset[int] = frozenset()
    """Steps that were known already, and have changed or come with another worker."""

    another: bool = False
    """Whether `trial` is another object, because what was known has changed or collections are new."""


class GrowingTrial:
    """A trial, as far as it has been written.

    Args:
        storage: Where it lies.

    Attributes:
        trial: What was there at the last look.
    """

    def __init__(self, storage: Storage) -> None:
        self.trial: Trial | None = None
        self._storage = storage
        self._reader = TrialReader(storage)
        self._known: dict[str, str] = {}
        self._collections: dict[str, str] = {}
        self._damaged: dict[str, Version | None] = {}
        self._ended = False
        self._extents: dict[int, tuple[Layout, int]] = {}

    def look(self, *, since: int | None = None) -> Growth:
        """Look for what is new.

        Args:
            since: Only index files of this global step and later ones are looked at; by default all.
        """
        after = "" if since is None or self.trial is None else self._before(since)
        fresh = [
            entry
            for entry in self._storage.entries("index", after)
            if is_index(entry.name) and self._known.get(entry.name) != entry.token
        ]
        collections = {entry.name: entry.token for entry in self._storage.entries("collections/000000000")}
        other_collections = collections != self._collections
        if other_collections:
            self._collections = collections
            self._reader.read_collections()
        # What was damaged may have been half written, in place; what could not be read is tried again.
        unread = self._reader.unread()
        healed = {name for name, version in self._damaged.items() if self._storage.version(name) != version}
        names = sorted({entry.name for entry in fresh} | healed | unread)
        before = [file for name in names if (file := self._reader.files.get(name)) is not None]
        # Remembered before they are read: what changes meanwhile is found by the next look.
        self._known |= {entry.name: entry.token for entry in fresh}
        versions = {name: self._storage.version(name) for name in names}
        files = self._reader.read_index(names)
        damaged = self._reader.damaged()
        self._damaged = {name: versions.get(name, self._damaged.get(name)) for name in damaged}
        ended, self._ended = self._ended, self._storage.version(END_MARKER) is not None
        changed, another = self._take(files, before, other_collections)
        if self.trial is not None:
            self.trial.ended = self._ended
        came = set(names) - (unread & self._reader.unread())
        return Growth(bool(came or other_collections or ended != self._ended), changed, another)

    def is_written(self, step: int) -> bool:
        """Whether each worker has written what its index file of this step promises."""
        trial = self.trial
        if trial is None:
            return False
        files = trial.files(step)
        return len(files) >= trial.num_workers and all(map(self._is_there, files))

    def waits_for(self, step: int) -> str:
        """Who has not written a step, in words."""
        trial = self.trial
        files = trial.files(step) if trial is not None else ()
        late = [file.event_file for file in files if not self._is_there(file)]
        if late:
            return f"the rest of {late[0]}"
        there = {file.worker for file in files}
        missing = [worker for worker in (trial.workers if trial else ()) if worker not in there]
        return ", ".join(missing) or "another worker"

    def _take(
        self, files: list[StepFile], before: Sequence[StepFile], other_collections: bool
    ) -> tuple[frozenset[int], bool]:
        """Put what was read into the trial, or make another one."""
        trial = self.trial
        files.sort(key=lambda file: (file.step, file.worker))
        known = trial.steps() if trial is not None else []
        changed = {file.step for file in before}
        changed |= {file.step for file in files if trial is not None and trial.files(file.step)}
        beyond = all(not known or file.step > known[-1] for file in files if file.step not in changed)
        alike = all(
            (file.mode, file.mode_step) == (trial.mode(file.step), trial.mode_step(file.step))
            for file in files
            if trial is not None and file.step in changed
        )
        if trial is not None and beyond and alike and not (before or other_collections):
            trial.extend(files)
            return frozenset(changed), False
        try:
            self.trial = self._reader.trial()
        except MissingDataError:
            return frozenset(), False
        return frozenset(changed), True

    def _before(self, step: int) -> str:
        """A name before which no index file of this step sorts."""
        return f"index/{step // 1000:09d}/{step:012d}"

    def _is_there(self, file: StepFile) -> bool:
        if file.event_file is None:
            return True
        version = self._storage.version(file.event_file)
        return version is not None and version.size >= self._extent_of(file)

    def _extent_of(self, file: StepFile) -> int:
        """Where the last record ends in the event file."""
        known = self._extents.get(id(file.layout))
        if known is None:
            entries = file.layout.entries.values()
            spans = [span for one in entries for span in (one.span, *one.reductions.values()) if span]
            known = file.layout, max((start + length for start, length in spans), default=0)
            if len(self._extents) >= _EXTENTS:
                self._extents.clear()
            self._extents[id(file.layout)] = known
        return known[1]
