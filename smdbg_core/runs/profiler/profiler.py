"""Profiler output: opened, and read in the order of time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from smdbg_core.errors import DataError, MissingDataError
from smdbg_core.runs.damage import Damage, damage_of
from smdbg_core.runs.profiler.events import Events, EventsReader
from smdbg_core.runs.profiler.files import END_MARKER, Kind, ProfilerFile, classify, in_order, may_be_pytorch
from smdbg_core.runs.profiler.pytorch import PytorchReader, place
from smdbg_core.runs.profiler.samples import Samples, SamplesReader, SeriesKey
from smdbg_core.runs.profiler.tensorflow import TensorflowReader, place_of
from smdbg_core.storage import File, Storage, open_storage

__all__ = [
    "FOLDERS",
    "Batch",
    "Profiler",
    "ProfilerReader",
    "find_profiler",
    "open_profiler",
    "read_profiler",
]

FOLDERS = ("system", "framework")


class Batch(NamedTuple):
    """Data of one file, or of a part of it."""

    complete: int
    """Microseconds since the epoch: everything before has been delivered once this batch is."""

    data: Samples | Events | None
    """`None` at the end of the data."""


class Profiler:
    """The profiler output of one job.

    Attributes:
        uri: Where it lies.
        files: What there is to read, in order of time.
        nodes: Names of the machines, sorted.
        ended: Nodes or folders whose end marker is there.
        ignored: Files that are nothing that profilers write.
    """

    def __init__(
        self, storage: Storage, files: Iterable[ProfilerFile], ended: bool, ignored: Iterable[str] = ()
    ) -> None:
        self.storage = storage
        self.uri = storage.uri
        self.files = tuple(sorted(files, key=lambda file: (file.time, file.node, file.name)))
        self.nodes = tuple(sorted({file.node for file in self.files if file.node}))
        self.ended = ended
        self.ignored = tuple(ignored)
        self._damage: dict[Damage, None] = {}

    def __repr__(self) -> str:
        return f"<Profiler {self.uri}: {len(self.files)} files>"

    @property
    def start(self) -> int:
        """Beginning of the first scan window: the earliest time in a file's name."""
        return min((file.time for file in self.files if file.time), default=0)

    @property
    def damage(self) -> list[Damage]:
        """What could not be read so far, one entry for each place."""
        return list(self._damage)

    def add_damage(self, damage: Iterable[Damage]) -> None:
        """Remember damage that was met while reading."""
        self._damage.update(dict.fromkeys(damage))

    def count(self, kind: Kind) -> int:
        """How many files of a kind there are."""
        return sum(file.kind == kind for file in self.files)

    def reader(self, measures: Collection[str] | None = None, *, events: bool = True) -> ProfilerReader:
        """A fresh pass over the data.

        Args:
            measures: Only series of these dimensions (or names, where there is no dimension); `None`
                reads all, an empty collection opens no file of metrics.
            events: Whether framework events are read.
        """
        return ProfilerReader(self, measures, events)


class ProfilerReader:
    """One pass over profiler output, file by file."""

    def __init__(self, profiler: Profiler, measures: Collection[str] | None, events: bool) -> None:
        self._profiler = profiler
        self._samples = SamplesReader(measures)
        self._events = EventsReader()
        self._tensorflow = TensorflowReader()
        self._pytorch = PytorchReader()
        self._metrics = measures is None or bool(measures)
        self._with_events = events

    @property
    def keys(self) -> list[SeriesKey]:
        """Series by number, as far as they have been met."""
        return self._samples.series()

    @property
    def unpaired(self) -> int:
        """Ends of events that had no beginning, or came before it."""
        return self._events.unpaired

    @property
    def dropped(self) -> int:
        """Samples left out because their value or time was no finite number."""
        return self._samples.dropped

    def __iter__(self) -> Iterator[Batch]:
        yield from self.read(in_order(self._profiler.files))
        yield Batch(2**62, None)

    def wants(self, file: ProfilerFile) -> bool:
        """Whether anything of a file is read."""
        return self._metrics if file.kind == "metrics" else self._with_events

    def read(self, files: Iterable[tuple[int, ProfilerFile]]) -> Iterator[Batch]:
        """Read files, each with the time before which everything has been delivered by then."""
        wanted = [(complete, file) for complete, file in files if self.wants(file)]
        opened = self._profiler.storage.open_all(entry.name for _, entry in wanted)
        for (complete, entry), (_, file) in zip(wanted, opened, strict=True):
            try:
                if isinstance(file, DataError):
                    raise file
                with file:
                    for data in self._read(entry, file):
                        yield Batch(complete, data)
            except DataError as error:
                self._profiler.add_damage([damage_of(error, entry.name).damage])
            except OSError as error:
                lost = Damage(entry.name, None, "unreadable", error.strerror or str(error))
                self._profiler.add_damage([lost])
        for reader in (self._samples, self._events, self._tensorflow, self._pytorch):
            self._profiler.add_damage(reader.damage)

    def _read(self, entry: ProfilerFile, file: File) -> Iterator[Samples | Events]:
        if entry.kind == "metrics":
            yield from self._samples.read(entry.name, file)
        elif entry.kind == "trace":
            yield from self._events.read(entry, file)
        elif entry.kind == "pytorch":
            yield from self._pytorch.read(entry, file)
        else:
            yield from self._tensorflow.read(entry, file)


def find_profiler(storage: Storage) -> Profiler | None:
    """The profiler output whose root `storage` is, `None` if there is none.

    Traces of PyTorch's profiler lie in the folder itself.
    """
    names = [name for folder in FOLDERS for name in storage.names(folder)]
    files = [file for file in map(classify, names) if file is not None]
    files += _pytorch_traces(storage)
    ended = any(name.rpartition("/")[2] == END_MARKER for name in names)
    if not files and not ended:
        return None
    known = {file.name for file in files}
    ignored = [name for name in names if name not in known and name.rpartition("/")[2] != END_MARKER]
    places = {place.folder: place for place in map(place_of, ignored) if place is not None}
    placed = [places[f].apply(file) if (f := _step_folder(file)) in places else file for file in files]
    profiler = Profiler(storage, _once(placed), ended, ignored)
    profiler.add_damage(
        Damage(file.name, None, "duplicate", "another file of this name is read instead")
        for file in placed
        if file not in profiler.files
    )
    return profiler


def _pytorch_traces(storage: Storage) -> list[ProfilerFile]:
    """Traces directly in the folder, recognised by name and beginning."""
    found = []
    for name in storage.files():
        if may_be_pytorch(name):
            file = _as_pytorch(storage, name)
            if file is None and may_be_pytorch(name, only=True):
                # Named as a trace, but damaged before its first event: reading it says so.
                file = ProfilerFile(name, "pytorch", 0, "", "", "pytorch")
            found += [file] if file is not None else []
    return found


def _as_pytorch(storage: Storage, name: str) -> ProfilerFile | None:
    with suppress(DataError), storage.open(name) as file:
        return place(ProfilerFile(name, "pytorch", 0, "", "", "pytorch"), file)
    return None


def open_profiler(path: str) -> Profiler:
    """Open profiler output: its folder, the job's folder above it, or a single file.

    Raises:
        MissingDataError: There is none.
        DataAccessError: It is there, but cannot be read.
    """
    return read_profiler(open_storage(str(path).strip()))


def read_profiler(storage: Storage) -> Profiler:
    """The same, of a storage that is open already."""
    if storage.is_file():
        return _single(storage)
    storage.require_folder()
    profiler = find_profiler(storage) or find_profiler(storage.below("profiler-output"))
    if profiler is None:
        problem = "no profiler output: it has a folder system or framework"
        raise MissingDataError(storage.uri, problem)
    return profiler


def _single(single: Storage) -> Profiler:
    """One file on its own; what its name does not tell, its first bytes do."""
    storage, base = single.beside()
    path = single.uri
    known = classify(base) or _as_pytorch(storage, base)
    if known is None:
        with storage.open(base) as file:
            start = file.read(0, 64).lstrip()
        if start[:1] not in (b"{", b"["):
            problem = "neither system metrics (JSON lines) nor trace events (a JSON array, or traceEvents)"
            raise MissingDataError(path, problem)
        digits = base.partition("_")[0].partition(".")[0]
        seconds = int(digits) * 1_000_000 if len(digits) == 10 and digits.isdecimal() else 0
        kind: Kind = "metrics" if start[:1] == b"{" else "trace"
        source = "horovod" if "horovod" in base else "python"
        known = ProfilerFile(base, kind, seconds, "", "", source if kind == "trace" else None)  # type: ignore[arg-type]
    return Profiler(storage, [known], ended=False)


def _step_folder(file: ProfilerFile) -> str | None:
    """Of a TensorFlow trace: the folder of the step, three levels above its own."""
    return file.name.rsplit("/", 4)[0] if file.kind == "tensorflow" else None


def _once(files: Iterable[ProfilerFile]) -> list[ProfilerFile]:
    """Files with copies left out: both folder layouts may hold the same file."""
    chosen: dict[str, ProfilerFile] = {}
    for file in files:
        base = file.name if file.kind == "tensorflow" else file.name.rpartition("/")[2]
        chosen.setdefault(base, file)
    return list(chosen.values())
