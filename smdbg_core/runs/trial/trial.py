"""Trials: saved tensors of one training, asked."""

from __future__ import annotations

import re
import struct
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from numpy.typing import NDArray

from smdbg_core.errors import ConfigError, DataError, MissingDataError
from smdbg_core.runs.damage import Damage, RecordError, damage_of
from smdbg_core.runs.trial.collections import Collection, CollectionReader
from smdbg_core.runs.trial.event_file import EventFileReader, Record
from smdbg_core.runs.trial.index import Layout, StepFile
from smdbg_core.runs.trial.modes import Mode
from smdbg_core.runs.trial.records import HEADER, START
from smdbg_core.runs.trial.tensor import Tensor
from smdbg_core.spelling import nearest
from smdbg_core.storage import Storage

__all__ = ["Trial"]

_STARTS = 1024


class Trial:
    """The saved tensors of one training.

    Steps without a mode are global steps, which count over all modes; a step with a mode counts within it.

    Attributes:
        uri: Where the trial lies.
        collections: Collections by name.
        workers: Names of the workers, sorted.
        num_workers: How many workers write, as the trial says.
        ended: Whether the end marker is there.
        modes: Modes of the steps, in the order TRAIN, EVAL, PREDICT, GLOBAL.
    """

    def __init__(
        self, storage: Storage, files: Iterable[StepFile], collections: CollectionReader, ended: bool
    ) -> None:
        self.storage = storage
        self.uri = storage.uri
        self.collections: dict[str, Collection] = dict(sorted(collections.collections.items()))
        self.ended = ended
        self._damage: dict[Damage, None] = {}
        self._files: dict[int, list[StepFile]] = {}
        self._by_mode: dict[Mode, dict[int, int]] = defaultdict(dict)
        self._layouts: dict[int, Layout] = {}
        self._steps: list[int] = []
        self._wall_times: dict[int, float | None] = {}
        self._starts: dict[str, bytes] = {}
        self._names: dict[str, None] | None = None
        self._declared_workers = collections.num_workers
        self.workers = tuple(sorted(collections.workers))
        self.extend(files)

    def __repr__(self) -> str:
        return f"<Trial {self.uri}: {len(self._steps)} steps, {len(self.tensor_names())} tensors>"

    def extend(self, files: Iterable[StepFile]) -> None:
        """Take in what was saved since: further steps, or further workers of a step that is known.

        Args:
            files: In the order of steps, then workers; new steps lie beyond those that are known.
        """
        workers = set(self.workers)
        for file in files:
            known = self._files.get(file.step)
            if known is None:
                self._files[file.step] = [file]
                self._steps.append(file.step)
                self._by_mode[file.mode].setdefault(file.mode_step, file.step)
            else:
                insort(known, file, key=attrgetter("worker"))
                self._wall_times.pop(file.step, None)
            workers.add(file.worker)
            if id(file.layout) not in self._layouts:
                self._layouts[id(file.layout)] = file.layout
                self._names = None
        self.workers = tuple(sorted(workers))
        self.num_workers = self._declared_workers or max(1, len(self.workers))
        self.modes = tuple(mode for mode in Mode if mode in self._by_mode)

    @property
    def damage(self) -> list[Damage]:
        """What could not be read so far, one entry for each place."""
        return list(self._damage)

    def add_damage(self, damage: Iterable[Damage]) -> None:
        """Remember damage that was met while reading."""
        self._damage.update(dict.fromkeys(damage))

    def steps(self, mode: str | None = None) -> list[int]:
        """Saved steps, sorted: global ones, or those of a mode. `GLOBAL` asks for global steps as well."""
        mode = _mode(mode)
        return list(self._steps) if mode is None else sorted(self._by_mode.get(mode, {}))

    def incomplete_steps(self) -> list[int]:
        """Global steps that fewer workers have written than write in this trial."""
        return [step for step in self._steps if len(self._files[step]) < self.num_workers]

    def files(self, step: int) -> Sequence[StepFile]:
        """What each worker saved at a global step, sorted by worker; nothing for an unknown step."""
        return self._files.get(step, ())

    def mode(self, step: int) -> Mode | None:
        """Mode of a global step, `None` for an unknown one."""
        return self._files[step][0].mode if step in self._files else None

    def mode_step(self, step: int) -> int | None:
        """Mode step of a global step, `None` for an unknown one."""
        return self._files[step][0].mode_step if step in self._files else None

    def global_step(self, mode: str | None, mode_step: int) -> int | None:
        """Global step of a mode step, `None` for an unknown one."""
        wanted = _mode(mode)
        if wanted is None:
            return mode_step if mode_step in self._files else None
        return self._by_mode.get(wanted, {}).get(mode_step)

    def tensor_names(
        self,
        *,
        step: int | None = None,
        mode: str | None = None,
        regex: str | Iterable[str] | None = None,
        collection: str | None = None,
    ) -> list[str]:
        """Names of tensors, sorted; the conditions are joined by and.

        Args:
            step: Saved at this step, of `mode` if one is given.
            mode: Saved in this mode.
            regex: A pattern or several; one matches anywhere in the name.
            collection: Name of a collection; an unknown one has no tensors.
        """
        if step is not None:
            at = self.global_step(mode, step)
            names = sorted(
                {name for file in self.files(-1 if at is None else at) for name in file.layout.names}
            )
        elif _mode(mode) is not None:
            steps = self._by_mode.get(Mode(str(mode).upper()), {}).values()
            layouts = {id(file.layout): file.layout for at in steps for file in self._files[at]}
            names = sorted({name for layout in layouts.values() for name in layout.names})
        else:
            names = list(self._known_names())
        if regex is not None:
            patterns = [re.compile(one) for one in ((regex,) if isinstance(regex, str) else regex)]
            names = [name for name in names if any(pattern.search(name) for pattern in patterns)]
        if collection is not None:
            known = self.collections.get(collection)
            names = [name for name in names if known is not None and known.matches(name)]
        return names

    def _known_names(self) -> dict[str, None]:
        """All names in order, for quick look-up."""
        if self._names is None:
            names = sorted({name for layout in self._layouts.values() for name in layout.names})
            self._names = dict.fromkeys(names)
        return self._names

    def collection(self, name: str) -> Collection:
        """The collection of that name.

        Raises:
            MissingDataError: There is none.
        """
        if name not in self.collections:
            raise MissingDataError(self.uri, f"no collection {name!r}{nearest(name, self.collections)}")
        return self.collections[name]

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name.

        Raises:
            MissingDataError: There is none.
        """
        if name not in self._known_names():
            raise MissingDataError(self.uri, f"no tensor {name!r}{nearest(name, self.tensor_names())}")
        return Tensor(self, name)

    def note_start(self, file: StepFile, start: bytes) -> None:
        """Remember the first bytes of an event file, which have been read already."""
        if start and file.event_file is not None:
            if len(self._starts) >= _STARTS:
                self._starts.clear()
            self._starts[file.event_file] = start

    def wall_time(self, step: int) -> float | None:
        """When a global step was written, in seconds since the epoch: the latest over its workers.

        It is read from the first record of each event file; `None` where none can be read.
        """
        if step not in self._wall_times:
            times = [time for file in self.files(step) if (time := self._written_at(file)) is not None]
            self._wall_times[step] = max(times, default=None)
        return self._wall_times[step]

    def _written_at(self, file: StepFile) -> float | None:
        if file.event_file is None:
            return None
        start = self._starts.get(file.event_file)
        if start is None:
            try:
                with self.storage.open(file.event_file) as opened:
                    opened.expect([(0, START)])
                    start = opened.read(0, START)
            except DataError:
                return None
        if len(start) < START or start[HEADER] != 0x09:
            return None
        return float(struct.unpack_from("<d", start, HEADER + 1)[0])

    def values(
        self, names: Iterable[str] | None = None, steps: Iterable[int] | None = None
    ) -> Iterator[tuple[int, str, str, NDArray[Any]]]:
        """All raw values, each event file read once: global step, worker, name, array.

        In the order of steps, then workers, then names. What cannot be read is left out and noted in
        `damage`.

        Args:
            names: Only these tensors.
            steps: Only these global steps.
        """
        wanted = None if names is None else frozenset(names)
        reader = EventFileReader()
        by_layout: dict[int, tuple[Record, ...]] = {}
        for step in self._steps if steps is None else steps:
            for file in self.files(step):
                records = by_layout.get(id(file.layout))
                if records is None:
                    entries = file.layout.entries.values()
                    records = by_layout[id(file.layout)] = tuple(
                        (entry.name, entry.span)
                        for entry in entries
                        if entry.span is not None and (wanted is None or entry.name in wanted)
                    )
                if not records or file.event_file is None:
                    continue
                worker = file.worker
                for name, array in self._read_file(reader, file.event_file, records):
                    yield step, worker, name, array

    def _read_file(
        self, reader: EventFileReader, name: str, records: tuple[Record, ...]
    ) -> Iterator[tuple[str, NDArray[Any]]]:
        try:
            with self.storage.open(name) as file:
                data, payloads = reader.locate(file, records)
                whole = None if data is None else memoryview(data)
                for (tensor, _), payload in zip(records, payloads, strict=True):
                    if isinstance(payload, RecordError):
                        self.add_damage([payload.damage])
                    elif whole is not None:
                        yield tensor, payload.array(whole[payload.offset : payload.offset + payload.nbytes])
                    else:
                        content = bytearray(payload.nbytes)
                        file.read_into(payload.offset, memoryview(content))
                        yield tensor, payload.array(content)
        except DataError as error:
            self.add_damage([damage_of(error, name).damage])


def _mode(mode: str | None) -> Mode | None:
    """The mode, `None` for global steps."""
    if mode is None:
        return None
    try:
        found = Mode(str(mode).strip().upper())
    except ValueError:
        message = f"no mode {mode!r}; there are {', '.join(Mode)}"
        raise ConfigError(message) from None
    return None if found is Mode.GLOBAL else found
