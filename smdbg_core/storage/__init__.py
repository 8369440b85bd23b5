"""Bytes: files of a run, wherever they lie."""

from __future__ import annotations

import os

from smdbg_core.errors import ConfigError
from smdbg_core.storage.local import LocalFile, LocalStorage

__all__ = ["LocalFile", "LocalStorage", "open_storage"]


def open_storage(uri: str) -> LocalStorage:
    """The storage behind a path; nothing is read yet.

    Args:
        uri: A local folder; `~` stands for the home folder.

    Raises:
        ConfigError: A kind of URI that this release cannot read.
    """
    scheme, separator, _ = uri.partition("://")
    if separator and scheme != "file":
        message = f"{uri}: {scheme}:// is not supported in this release; copy the run to a local folder"
        raise ConfigError(message)
    path = uri.removeprefix("file://")
    return LocalStorage(os.path.expanduser(path))
