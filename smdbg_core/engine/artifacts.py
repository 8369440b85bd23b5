"""Artifacts: the files that rules want written below the output folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from smdbg_core.errors import ConfigError, DataAccessError
from smdbg_core.findings import Artifact

__all__ = ["write_artifacts"]


def write_artifacts(folder: Path, artifacts: Iterable[Artifact]) -> list[str]:
    """Write artifacts below `folder`, each whole or not at all.

    Returns:
        Their paths relative to the folder, in the order given.

    Raises:
        ConfigError: A path leads out of the folder.
        DataAccessError: The folder cannot be written.
    """
    written = []
    for artifact in artifacts:
        path = PurePosixPath(artifact.path)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            message = f"artifact path {artifact.path!r} leads out of the output folder"
            raise ConfigError(message)
        target = folder.joinpath(*path.parts)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(target.name + ".tmp")
            temporary.write_bytes(artifact.content)
            temporary.replace(target)
        except OSError as error:
            raise DataAccessError(str(target), f"cannot be written: {error.strerror or error}") from error
        written.append(str(path))
    return written
