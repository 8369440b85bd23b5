"""Bytes: files of a run, wherever they lie."""

from __future__ import annotations

import os

from smdbg_core.errors import ConfigError
from smdbg_core.storage.local import LocalFile, LocalStorage
from smdbg_core.storage.s3 import S3Storage
from smdbg_core.storage.storage import File, Listed, Opened, Storage, Version

__all__ = [
    "File",
    "Listed",
    "LocalFile",
    "LocalStorage",
    "Opened",
    "S3Storage",
    "Storage",
    "Version",
    "open_storage",
]


def open_storage(uri: str) -> Storage:
    """The storage behind a path; nothing is read yet.

    Args:
        uri: A local folder, where `~` stands for the home folder, or `s3://bucket/prefix`.

    Raises:
        ConfigError: A kind of URI that this release cannot read, or one with credentials.
    """
    scheme, separator, rest = uri.partition("://")
    if separator and "@" in rest.partition("/")[0] and scheme != "file":
        # The complaint must not repeat them.
        message = (
            f"{scheme}://...@...: a URI with credentials; leave them out and give them by the environment"
        )
        raise ConfigError(message)
    if separator and scheme == "s3":
        return S3Storage(uri)
    if separator and scheme != "file":
        known = "there are local folders, s3://, and what plugins bring"
        message = f"{uri}: {scheme}:// is not known; {known}"
        raise ConfigError(message)
    path = uri.removeprefix("file://")
    return LocalStorage(os.path.expanduser(path))
