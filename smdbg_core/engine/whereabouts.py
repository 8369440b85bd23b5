"""Where a run is, when it is not where it was looked for: a level too high or too low."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from smdbg_core.errors import SmdbgError
from smdbg_core.runs.run import open_run
from smdbg_core.storage import open_storage

__all__ = ["runs_near"]

_FOLDERS = frozenset(
    ("collections", "debug-output", "events", "framework", "index", "profiler-output", "system")
)
"""What runs and jobs hold."""

_LOOKED_AT = 20_000
"""Names of files that are looked at below a folder."""

_FOUND = 3
"""How many runs below are named."""


def runs_near(path: str) -> list[str]:
    """The nearest path above `path` that can be opened as a run; where there is none, some below.

    Args:
        path: Where no run is: a local folder or file, which need not be there, or `s3://bucket/prefix`.
    """
    if "://" not in path:
        path = os.path.abspath(os.path.expanduser(path))
    above = next(filter(_opens, _above(path)), None)
    return [above] if above is not None else list(islice(filter(_opens, _below(path)), _FOUND))


def _above(path: str) -> Iterator[str]:
    parts = path.rstrip("/").split("/")
    for index in range(len(parts) - 1, 0, -1):
        if parts[index] in _FOLDERS:
            yield "/".join(parts[:index])


def _below(path: str) -> Iterator[str]:
    """Folders that hold what a run holds, told by the names of files."""
    seen: set[str] = set()
    with suppress(SmdbgError):
        for name in islice(open_storage(path).names(""), _LOOKED_AT):
            parts = name.split("/")
            place = next((i for i, part in enumerate(parts[:-1]) if part in _FOLDERS), 0)
            folder = "/".join(parts[:place])
            if folder and folder not in seen:
                seen.add(folder)
                yield f"{path.rstrip('/')}/{folder}"


def _opens(path: str) -> bool:
    try:
        open_run(path)
    except SmdbgError:
        return False
    return True
