"""Opening trials: reading the index of a folder of saved tensors, once or while it grows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from smdbg_core.errors import ConfigError, DataError, MissingDataError
from smdbg_core.runs.damage import Damage, RecordError, damage_of
from smdbg_core.runs.trial.collections import CollectionReader
from smdbg_core.runs.trial.index import IndexReader, StepFile
from smdbg_core.runs.trial.trial import Trial
from smdbg_core.storage import Storage, open_storage

__all__ = ["TrialReader", "open_trial", "read_trial"]

END_MARKER = "training_job_end.ts"
_COLLECTIONS = "collections/000000000"
_INDEX = "index"
_LARGEST = 1 << 28
"""Bytes of an index or collections file that are read; a hundred thousand tensors take ten million."""

_INDEX_NAME = re.compile(r"(\d{1,18})_.+\.(?:json|csv)", re.DOTALL)


class TrialReader:
    """Reads collections and index files; each may be read again when it has changed.

    Args:
        storage: Where the trial lies.
        steps: Global steps `begin <= step < end` whose index files are read; `None` leaves an end open.

    Attributes:
        files: What was read of each index file, by name; `None` where it cannot be used.
        seen_index: Whether there was any index file, within the range of steps or not.
    """

    def __init__(self, storage: Storage, steps: tuple[int | None, int | None] | None = None) -> None:
        self.storage = storage
        self.files: dict[str, StepFile | None] = {}
        self.seen_index = False
        self._steps = steps
        self._collections = CollectionReader()
        self._collections_damage: list[Damage] = []
        self._index = IndexReader()
        self._index_damage: dict[str, list[Damage]] = {}

    @property
    def damage(self) -> list[Damage]:
        """What could not be read, one entry for each place."""
        index = [one for name in sorted(self._index_damage) for one in self._index_damage[name]]
        return [*self._collections_damage, *index]

    def damaged(self) -> list[str]:
        """Names of the index files that could not be read, or not in full."""
        return list(self._index_damage)

    def unread(self) -> set[str]:
        """Names of those of them of which nothing was read: what they hold is not known."""
        return {
            name
            for name, damage in self._index_damage.items()
            if any(one.kind in ("missing", "unreadable") for one in damage)
        }

    def read_collections(self) -> None:
        """Read all collections files."""
        self._collections = CollectionReader()
        damage: list[Damage] = []
        for name, data in _contents(self.storage, self.storage.names(_COLLECTIONS), damage):
            self._collections.read(name, data)
        self._collections_damage = [*damage, *self._collections.damage]

    def index_names(self) -> list[str]:
        """Names of all index files, sorted."""
        return [name for name in self.storage.names(_INDEX) if is_index(name)]

    def read_index(self, names: Iterable[str]) -> list[StepFile]:
        """Read index files; those that are damaged beyond use are left out.

        Args:
            names: Names of index files, sorted.
        """
        names = list(names)
        self.seen_index = self.seen_index or bool(names)
        wanted = [name for name in names if self._is_wanted(name)]
        found = []
        lost: list[Damage] = []
        for name in wanted:
            self.files[name] = None
            self._index_damage.pop(name, None)
        for name, data in _contents(self.storage, wanted, lost):
            file = self.files[name] = self._index.read(name, data)
            if self._index.damage:
                self._index_damage[name], self._index.damage = self._index.damage, []
            if file is not None:
                found.append(file)
        for one in lost:
            self._index_damage[one.file] = [one]
        return found

    def trial(self) -> Trial:
        """The trial, as far as it was read.

        Raises:
            MissingDataError: No step was read, nor was one left out because of the range.
        """
        files = sorted(
            (file for file in self.files.values() if file is not None),
            key=lambda file: (file.step, file.worker),
        )
        if not files and not (self._steps is not None and self.seen_index):
            raise MissingDataError(self.storage.uri, self._nothing_there())
        trial = Trial(self.storage, files, self._collections, self.ended())
        trial.add_damage(self.damage)
        return trial

    def ended(self) -> bool:
        """Whether the end marker is there."""
        return self.storage.exists(END_MARKER)

    def _is_wanted(self, name: str) -> bool:
        begin, end = self._steps or (None, None)
        matched = _INDEX_NAME.fullmatch(name.rpartition("/")[2])
        if matched is None:
            return True
        step = int(matched[1])
        return (begin is None or step >= begin) and (end is None or step < end)

    def _nothing_there(self) -> str:
        """Which of the many ways of having no data this is."""
        if self.seen_index:
            first = next((one for damage in self._index_damage.values() for one in damage), None)
            return "no index file can be read" + (f": {first.file}: {first.detail}" if first else "")
        if self._collections.collections:
            return "collections were configured, but no step was saved; check the save interval and the hook"
        if next(self.storage.names("events"), None) is not None:
            return "event files without index files: copy the folder `index` of the trial as well"
        if self.storage.is_empty():
            return "the folder is empty"
        return "not a trial: a trial has the folders collections, events and index"


def open_trial(path: str, *, steps: tuple[int | None, int | None] | None = None) -> Trial:
    """Open a folder of saved tensors; nothing is waited for.

    Args:
        path: The folder; blanks around it are dropped, `~` is the home folder.
        steps: Global steps `begin <= step < end` whose index files are read; `None` leaves an end open.

    Raises:
        MissingDataError: There is no such folder, or no trial in it.
        ConfigError: The range of steps is empty.
        DataAccessError: The folder cannot be listed.
    """
    return read_trial(open_storage(str(path).strip()), steps=steps)


def read_trial(storage: Storage, *, steps: tuple[int | None, int | None] | None = None) -> Trial:
    """The same, of a storage that is open already."""
    begin, end = steps or (None, None)
    if begin is not None and end is not None and begin >= end:
        message = f"steps {begin}:{end} are none: the end must be above the beginning"
        raise ConfigError(message)
    storage.require_folder()
    reader = TrialReader(storage, steps)
    reader.read_collections()
    reader.read_index(reader.index_names())
    return reader.trial()


def is_index(name: str) -> bool:
    """Whether the name is that of a finished index file."""
    return name.endswith((".json", ".csv"))


def _contents(storage: Storage, names: Iterable[str], damage: list[Damage]) -> Iterator[tuple[str, bytes]]:
    """Names and contents of files; those that cannot be read are noted as damage."""
    for name, file in storage.open_all(names):
        try:
            if isinstance(file, DataError):
                raise file
            with file:
                if file.size > _LARGEST:
                    detail = f"the file has {file.size} bytes; at most {_LARGEST} are read"
                    raise RecordError(name, None, "length", detail)
                yield name, file.read(0, file.size)
        except DataError as error:
            damage.append(damage_of(error, name).damage)
        except OSError as error:
            damage.append(Damage(name, None, "unreadable", error.strerror or str(error)))
