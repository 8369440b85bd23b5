"""Damage: a place in the data that could not be read."""

from __future__ import annotations

from typing import Any, NamedTuple

from smdbg_core.errors import CorruptDataError

__all__ = ["Damage", "RecordError"]


class Damage(NamedTuple):
    """One place that could not be read; everything else was."""

    file: str
    """Name relative to the run's folder."""

    offset: int | None
    kind: str
    """`cut`, `checksum`, `length`, `wire`, `dtype`, `shape`, `name`, `mode`, `not JSON`, `missing`,
    `empty`, `outside`, `unreadable` or `inconsistent`."""

    detail: str


class RecordError(CorruptDataError):
    """A record or index entry is damaged."""

    def __init__(self, file: str, offset: int | None, kind: str, detail: str) -> None:
        self.damage = Damage(file, offset, kind, detail)
        place = file if offset is None else f"{file} at byte {offset}"
        super().__init__(place, f"{kind}: {detail}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self.damage)
