"""Identity of plugins: how they are called in lists, messages, and settings."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Identity", "normalised"]

_SPELLING = re.compile(
    r"(?P<distribution>[A-Za-z0-9][A-Za-z0-9._-]*?)(?:==(?P<version>[^\[\]]+))?(?:\[(?P<name>[^\[\]]+)\])?"
)


def normalised(distribution: str) -> str:
    """The normal form of a distribution's name (packaging's rule: case and runs of `-_.` don't count)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


class Identity(NamedTuple):
    """A spelling that names a plugin, or all of a distribution."""

    distribution: str | None
    """Normalised; `None` for a bare name."""

    name: str | None
    """Entry point, case-folded; `None` for all of a distribution."""

    @classmethod
    def parse(cls, spelling: str) -> Identity | None:
        """Read `Name`, `distribution`, `distribution[Name]` or `distribution==version[Name]`.

        A word alone may be either, and is taken as both; `None` for anything else.
        """
        matched = _SPELLING.fullmatch(spelling.strip())
        if matched is None:
            return None
        if matched["name"] is None and matched["version"] is None:
            return cls(None, matched["distribution"].casefold())
        name = matched["name"]
        return cls(normalised(matched["distribution"]), None if name is None else name.casefold())

    def means(self, distribution: str, name: str) -> bool:
        """Whether the spelling names this plugin."""
        if self.distribution is None:
            return self.name == name.casefold() or normalised(self.name or "") == distribution
        return self.distribution == distribution and self.name in (None, name.casefold())
