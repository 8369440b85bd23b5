"""The finder: which plugins are installed, without importing any of them.

Folders on `sys.path` are scanned for the `entry_points.txt` of distributions, which takes milliseconds for
hundreds of them. Other places (archives, custom finders) are left to `importlib.metadata`, which takes
longer to import than the scan takes.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from smdbg_core.discovery.identity import normalised

__all__ = ["GROUPS", "PluginSpec", "find"]

GROUPS: Final = {
    "smdbg.rules": "rule",
    "smdbg.profiler_rules": "profiler rule",
    "smdbg.actions": "action",
    "smdbg.plugins": "hooks",
}
"""Entry-point groups, and the kind of plugin in each."""

_MARK = b"smdbg."


class PluginSpec(NamedTuple):
    """An installed plugin, as its metadata has it."""

    kind: str
    """`rule`, `profiler rule`, `action` or `hooks`."""

    name: str
    """Name of the entry point; that of the rule or action."""

    value: str
    """`module:attribute`."""

    distribution: str
    """Normalised name."""

    version: str
    requirements: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """`distribution==version[Name]`."""
        return f"{self.distribution}=={self.version}[{self.name}]"

    @property
    def qualified(self) -> str:
        """`distribution[Name]`: works wherever a name does."""
        return f"{self.distribution}[{self.name}]"


def find(path: Iterable[str] | None = None) -> list[PluginSpec]:
    """All installed plugins, sorted by distribution, then name.

    A distribution that is found twice counts where it is found first on the path, as for imports.

    Args:
        path: Places to look; `sys.path` by default.
    """
    found: dict[str, list[PluginSpec]] = {}
    elsewhere = []
    seen_folders: set[str] = set()
    for place in sys.path if path is None else path:
        folder = os.path.realpath(place or os.curdir)
        if folder in seen_folders:
            continue
        seen_folders.add(folder)
        if not os.path.isdir(folder):
            if os.path.exists(folder):
                elsewhere.append(place)
            continue
        for distribution, specs in _scan(folder):
            found.setdefault(distribution, specs)
    if elsewhere:
        for distribution, specs in _ask_importlib(elsewhere):
            found.setdefault(distribution, specs)
    return sorted(
        (spec for specs in found.values() for spec in specs), key=lambda s: (s.distribution, s.name)
    )


def _scan(folder: str) -> Iterator[tuple[str, list[PluginSpec]]]:
    """Distributions in one folder that have entry points of ours."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))
            )
    except OSError:
        return
    for name in names:
        points = _read(os.path.join(folder, name, "entry_points.txt"))
        if points is None or _MARK not in points:
            continue
        metadata = _read(os.path.join(folder, name, "METADATA")) or _read(
            os.path.join(folder, name, "PKG-INFO")
        )
        headers = _headers((metadata or b"").decode(errors="replace"))
        stem = name.rpartition(".")[0]
        distribution = normalised((headers.get("name") or [stem.partition("-")[0]])[0])
        version = (headers.get("version") or [stem.partition("-")[2] or "0"])[0]
        requirements = tuple(headers.get("requires-dist", ()))
        yield distribution, list(_specs(points.decode(errors="replace"), distribution, version, requirements))


def _read(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(descriptor, 1 << 20)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _headers(metadata: str) -> dict[str, list[str]]:
    """The headers of a METADATA file, up to its first empty line; names in lower case."""
    headers: dict[str, list[str]] = {}
    for line in metadata.partition("\n\n")[0].splitlines():
        name, colon, value = line.partition(":")
        if colon and not line[:1].isspace():
            headers.setdefault(name.strip().lower(), []).append(value.strip())
    return headers


def _specs(text: str, distribution: str, version: str, requirements: tuple[str, ...]) -> Iterator[PluginSpec]:
    """The entry points of our groups in an `entry_points.txt`."""
    kind = None
    for line in text.splitlines():
        line = line.strip()
        section = re.fullmatch(r"\[\s*(.+?)\s*\]", line)
        if section is not None:
            kind = GROUPS.get(section[1])
        elif kind is not None and line and line[0] not in "#;":
            name, equals, value = line.partition("=")
            if equals:
                target = value.partition("[")[0].strip()
                yield PluginSpec(kind, name.strip(), target, distribution, version, requirements)


def _ask_importlib(places: list[str]) -> Iterator[tuple[str, list[PluginSpec]]]:
    from importlib.metadata import distributions  # costs more than the scan of all folders

    for found in distributions(path=places):
        distribution = normalised(found.metadata["Name"] or "")
        specs = [
            PluginSpec(
                GROUPS[point.group],
                point.name,
                point.value.partition("[")[0].strip(),
                distribution,
                found.version,
                tuple(found.requires or ()),
            )
            for point in found.entry_points
            if point.group in GROUPS
        ]
        if distribution and specs:
            yield distribution, specs
