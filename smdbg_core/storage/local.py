"""Local files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

from smdbg_core.errors import CorruptDataError, DataAccessError, DataError, MissingDataError
from smdbg_core.storage.storage import Listed, Version

__all__ = ["LocalFile", "LocalStorage"]


_PLAIN = 1024
"""How many folders are remembered to hold no symbolic link."""


class LocalFile:
    """An open file; use it in a `with` statement.

    Attributes:
        size: Bytes in the file when it was opened.
    """

    def __init__(self, name: str, descriptor: int, size: int) -> None:
        self.name = name
        self.size = size
        self._descriptor = descriptor

    def expect(self, spans: Iterable[tuple[int, int]]) -> None:
        """Nothing to prepare: the operating system reads ahead."""

    def holds(self, offset: int, length: int) -> bool:
        """Reading any part costs no more than reading it."""
        return True

    def read_into(self, offset: int, buffer: memoryview) -> int:
        """Fill `buffer` from `offset` on; the bytes read are fewer only at the end of the file."""
        wanted = len(buffer)
        done = os.preadv(self._descriptor, [buffer], offset)
        while 0 < done < wanted:
            got = os.preadv(self._descriptor, [buffer[done:]], offset + done)
            if not got:
                break
            done += got
        return done

    def read(self, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset` on."""
        return os.pread(self._descriptor, max(0, min(length, self.size - offset)), offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


class LocalStorage:
    """The files below one folder.

    Names are relative, with forward slashes. A name that leads out of the folder, by `..` or by a
    symbolic link, is refused: names come from files that others wrote.

    Args:
        root: The folder.
    """

    parallel = 1

    def __init__(self, root: str) -> None:
        self.uri = root
        self._real_root = os.path.realpath(root)
        self._plain: set[str] = set()

    def __reduce__(self) -> tuple[type[LocalStorage], tuple[str]]:
        return LocalStorage, (self.uri,)

    def names(self, folder: str) -> Iterator[str]:
        """Names of all files below `folder`, sorted; a folder that is not there has none.

        Raises:
            DataAccessError: It cannot be listed.
        """
        # No recursion: folders may lie deeper than Python's stack.
        waiting = self._within(folder)
        while waiting:
            name, is_folder = waiting.pop()
            if is_folder:
                waiting += self._within(name)
            else:
                yield name

    def _within(self, folder: str) -> list[tuple[str, bool]]:
        """Names in a folder, each with whether it is a folder; sorted backwards."""
        try:
            with os.scandir(os.path.join(self.uri, folder)) as entries:
                listed = sorted(
                    ((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries), reverse=True
                )
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise DataAccessError(os.path.join(self.uri, folder), _reason(error)) from error
        return [(f"{folder}/{base}" if folder else base, is_folder) for base, is_folder in listed]

    def entries(self, folder: str, after: str = "") -> Iterator[Listed]:
        """What lies below `folder` at this moment; a file that took another's place has another token.

        Raises:
            DataAccessError: It cannot be listed.
        """
        waiting = [folder]
        while waiting:
            folder = waiting.pop()
            try:
                # One system call for hundreds of names, and none for each file.
                with os.scandir(os.path.join(self.uri, folder)) as found:
                    for entry in found:
                        name = f"{folder}/{entry.name}"
                        if entry.is_dir(follow_symlinks=False):
                            if f"{name}/" > after or after.startswith(f"{name}/"):
                                waiting.append(name)
                        elif name > after:
                            yield Listed(name, str(entry.inode()))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise DataAccessError(os.path.join(self.uri, folder), _reason(error)) from error

    def version(self, name: str) -> Version | None:
        """The version of a file: its size, inode and time of change."""
        try:
            status = os.stat(self._path(name))
        except (OSError, CorruptDataError):
            return None
        return Version(status.st_size, f"{status.st_ino}-{status.st_mtime_ns}")

    def files(self) -> list[str]:
        """Names of the files directly in the root, sorted.

        Raises:
            DataAccessError: It cannot be listed.
        """
        try:
            with os.scandir(self.uri) as entries:
                return sorted(entry.name for entry in entries if not _is_folder(entry))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise DataAccessError(self.uri, _reason(error)) from error

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return os.path.lexists(os.path.join(self.uri, name))

    def require_folder(self) -> None:
        """Complain if the root is no folder.

        Raises:
            MissingDataError: It is not there, or is a file.
        """
        if not os.path.isdir(self.uri):
            problem = (
                "is a file; give the folder of the run" if os.path.exists(self.uri) else "no such folder"
            )
            raise MissingDataError(self.uri, problem)

    def is_file(self) -> bool:
        """Whether the root is a file."""
        return os.path.isfile(self.uri)

    def below(self, folder: str) -> LocalStorage:
        """The files below a folder of this one."""
        return LocalStorage(f"{self.uri}/{folder}")

    def beside(self) -> tuple[LocalStorage, str]:
        """The folder of this file, and its name there."""
        folder, _, name = self.uri.rpartition("/")
        return LocalStorage(folder or "."), name

    def is_empty(self) -> bool:
        """Whether the root holds nothing at all."""
        with os.scandir(self.uri) as entries:
            return next(entries, None) is None

    def open(self, name: str) -> LocalFile:
        """Open a file.

        Raises:
            MissingDataError: There is no such file.
            CorruptDataError: The name leads out of the folder, or is no regular file.
            DataAccessError: It cannot be read.
        """
        path = self._path(name)
        try:
            descriptor = self._open(name, path)
        except OSError as error:
            raise _failure(name, error) from error
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise CorruptDataError(name, "not a regular file")
        return LocalFile(name, descriptor, status.st_size)

    def open_all(self, names: Iterable[str]) -> Iterator[tuple[str, LocalFile | DataError]]:
        """Open files one after the other."""
        for name in names:
            try:
                opened: LocalFile | DataError = self.open(name)
            except DataError as error:
                opened = error
            yield name, opened

    def read(self, name: str) -> bytes:
        """The whole content of a file; raises as `open` does."""
        with self.open(name) as file:
            try:
                return file.read(0, file.size)
            except OSError as error:
                raise _failure(name, error) from error

    def _open(self, name: str, path: str) -> int:
        # Without O_NONBLOCK, opening a pipe would wait for somebody to write to it.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        if self._is_plain(name.rpartition("/")[0]):
            try:
                return os.open(path, flags | os.O_NOFOLLOW)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
        if not self._leads_inside(path):
            raise CorruptDataError(name, "a symbolic link leads out of the folder of the run")
        return os.open(path, flags)

    def _path(self, name: str) -> str:
        if not name or name[0] == "/" or ".." in name.split("/") or "\0" in name:
            raise CorruptDataError(name, "leads out of the folder of the run")
        return f"{self.uri}/{name}"

    def _is_plain(self, folder: str) -> bool:
        """Whether no part of the relative path `folder` is a symbolic link; asked once for each folder."""
        if not folder or folder in self._plain:
            return True
        if os.path.islink(os.path.join(self.uri, folder)) or not self._is_plain(folder.rpartition("/")[0]):
            return False
        if len(self._plain) >= _PLAIN:
            self._plain.clear()
        self._plain.add(folder)
        return True

    def _leads_inside(self, path: str) -> bool:
        return os.path.commonpath([os.path.realpath(path), self._real_root]) == self._real_root


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder, or a symbolic link to one; a link to itself is neither."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _failure(name: str, error: OSError) -> DataError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return MissingDataError(name, "no such file")
    if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENAMETOOLONG):
        return CorruptDataError(name, "not a regular file")
    return DataAccessError(name, _reason(error))


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"
