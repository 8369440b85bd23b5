"""Runs in zip archives: `smdbg run zip:///data/jobs.zip!/job-1`.

A plugin that brings runs from another kind of store. It goes into a distribution with the entry point

    [project.entry-points."smdbg.plugins"]
    zip-store = "zip_store"
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from smdbg_core import DataError, MissingDataError, Run, hookimpl, open_run
from smdbg_core.storage import File, Listed, Storage, Version

SCHEME = "zip://"


@hookimpl
def smdbg_open_run(uri: str, options: dict[str, Any]) -> Run | None:
    """Open what lies in an archive; everything else is left to others."""
    return open_run(ZipStorage(uri), **options) if uri.startswith(SCHEME) else None


class ZipFile:
    """One member, read whole when it is opened: members are compressed."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self.size = len(content)
        self._content = content

    def expect(self, spans: Iterable[tuple[int, int]]) -> None:
        """Nothing to prepare."""

    def holds(self, offset: int, length: int) -> bool:
        """Everything is here."""
        return True

    def read(self, offset: int, length: int) -> bytes:
        """A part of the member."""
        return self._content[offset : offset + length]

    def read_into(self, offset: int, buffer: memoryview) -> int:
        """Fill a buffer; the bytes read."""
        part = self.read(offset, len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._content = b""


class ZipStorage:
    """The members below a folder of an archive: `zip://PATH!/FOLDER`. It holds nothing open."""

    parallel = 1

    def __init__(self, uri: str) -> None:
        path, _, folder = uri.removeprefix(SCHEME).partition("!/")
        folder = folder.strip("/")
        self.uri = f"{SCHEME}{path}!/{folder}"
        self._path = path
        self._prefix = f"{folder}/" if folder else ""

    def names(self, folder: str) -> Iterator[str]:
        """Members below a folder, sorted."""
        return iter(sorted(name for name in self._members() if name.startswith(f"{folder}/")))

    def entries(self, folder: str, after: str = "") -> Iterator[Listed]:
        """The same as they are now, with what tells a replaced member."""
        for name, version in self._members().items():
            if name.startswith(f"{folder}/") and name > after:
                yield Listed(name, version.token)

    def version(self, name: str) -> Version | None:
        """Size and checksum of a member."""
        return self._members().get(name)

    def files(self) -> list[str]:
        """Members directly in the folder."""
        return sorted(name for name in self._members() if "/" not in name)

    def exists(self, name: str) -> bool:
        """Whether there is such a member."""
        return name in self._members()

    def is_file(self) -> bool:
        """A place in an archive is taken for a folder."""
        return False

    def require_folder(self) -> None:
        """Complain if nothing is there."""
        if not self._members():
            raise MissingDataError(self.uri, "nothing in the archive below this folder")

    def is_empty(self) -> bool:
        """Whether nothing is there."""
        return not self._members()

    def below(self, folder: str) -> Storage:
        """A folder of this one."""
        return ZipStorage(f"{self.uri.rstrip('/')}/{folder}")

    def beside(self) -> tuple[Storage, str]:
        """Asked only of single files."""
        raise MissingDataError(self.uri, "not a single file")

    def open(self, name: str) -> File:
        """A member."""
        return ZipFile(name, self.read(name))

    def open_all(self, names: Iterable[str]) -> Iterator[tuple[str, File | DataError]]:
        """Members one after the other."""
        for name in names:
            try:
                yield name, self.open(name)
            except DataError as error:
                yield name, error

    def read(self, name: str) -> bytes:
        """The whole of a member."""
        try:
            with zipfile.ZipFile(self._path) as archive:
                return archive.read(self._prefix + name)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise MissingDataError(name, f"not in {self._path}: {error}") from error

    def _members(self) -> dict[str, Version]:
        try:
            with zipfile.ZipFile(self._path) as archive:
                return {
                    member.filename.removeprefix(self._prefix): Version(member.file_size, f"{member.CRC:08x}")
                    for member in archive.infolist()
                    if member.filename.startswith(self._prefix) and not member.is_dir()
                }
        except (OSError, zipfile.BadZipFile) as error:
            raise MissingDataError(self._path, f"no archive: {error}") from error
