"""What a store of files must offer: readers work with these two protocols and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import NamedTuple, Protocol, Self, TypeAlias

from smdbg_core.errors import DataError

__all__ = ["File", "Listed", "Opened", "Storage", "Version"]


class Listed(NamedTuple):
    """A file, as a listing shows it."""

    name: str
    """Relative to the storage, with forward slashes."""

    token: str
    """Another one where the file was replaced; equal tokens promise nothing more."""


class Version(NamedTuple):
    """What a file is at this moment; another one after every change of its content."""

    size: int
    """Bytes."""

    token: str


class File(Protocol):
    """An open file; used in a `with` statement."""

    name: str
    """Relative to the storage, with forward slashes."""

    @property
    def size(self) -> int:
        """Bytes in the file when it was opened."""

    def expect(self, spans: Iterable[tuple[int, int]]) -> None:
        """Say, before anything is read, which parts (offset, length) will be; said again, it adds to them.

        A remote store fetches these with one request; what is read beside them costs another.
        """

    def holds(self, offset: int, length: int) -> bool:
        """Whether this part can be read without another request."""

    def read_into(self, offset: int, buffer: memoryview) -> int:
        """Fill `buffer` from `offset` on; the bytes read are fewer only at the end of the file."""

    def read(self, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset` on."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


Opened: TypeAlias = File | DataError
"""A file, or why it cannot be read."""


class Storage(Protocol):
    """The files below one place. Names are relative, with forward slashes.

    Everything about runs is read through these methods, so whoever implements them brings runs from another
    kind of store. Measuring happens wherever an executor has it done: a storage is picklable, cheaply, and
    several threads may open files at once.
    """

    uri: str
    """Where it is, as reports show it; equal for equal places."""

    parallel: int
    """How many files are worth reading at once; 1 where waiting for one is no use of time."""

    def names(self, folder: str) -> Iterator[str]:
        """Names of all files below `folder`, sorted; a folder that is not there has none.

        Args:
            folder: The folder; where it is empty, all files of the place are named.

        Raises:
            DataAccessError: It cannot be listed.
        """

    def entries(self, folder: str, after: str = "") -> Iterator[Listed]:
        """What lies below `folder` at this moment, in no particular order; a remote store is asked anew.

        Args:
            folder: The folder.
            after: Only names that sort after this one; a remote store sends one page for each thousand.

        Raises:
            DataAccessError: It cannot be listed.
        """

    def version(self, name: str) -> Version | None:
        """The version of a file, `None` if there is none.

        A remote store answers from what it has listed, and lists again only for a name that it does not know.
        """

    def files(self) -> list[str]:
        """Names of the files that lie in the place itself, sorted.

        Raises:
            DataAccessError: It cannot be listed.
        """

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""

    def is_file(self) -> bool:
        """Whether the place is a single file itself."""

    def require_folder(self) -> None:
        """Complain if nothing can lie below the place.

        Raises:
            MissingDataError: It is not there, or is a file.
            DataAccessError: It cannot be listed.
        """

    def is_empty(self) -> bool:
        """Whether the place holds nothing at all."""

    def below(self, folder: str) -> Storage:
        """The storage of a folder of this one."""

    def beside(self) -> tuple[Storage, str]:
        """Of a single file: the storage that holds it, and its name there."""

    def open(self, name: str) -> File:
        """Open a file.

        Raises:
            MissingDataError: There is no such file.
            CorruptDataError: The name leads out of the place, or is no regular file.
            DataAccessError: It cannot be read.
        """

    def open_all(self, names: Iterable[str]) -> Iterator[tuple[str, Opened]]:
        """Open files one after the other, each to be read whole; a remote store fetches some ahead."""

    def read(self, name: str) -> bytes:
        """The whole content of a file; raises as `open` does."""
