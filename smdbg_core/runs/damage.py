"""Damage: a place in the data that could not be read."""

from __future__ import annotations

from typing import Any, NamedTuple

from smdbg_core.errors import CorruptDataError, DataError

__all__ = ["Damage", "RecordError", "damage_of"]


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


def damage_of(error: DataError, file: str) -> RecordError:
    """Any failure to read a file, as damage of that file."""
    if isinstance(error, RecordError):
        return error
    kinds = {"MissingDataError": "missing", "CorruptDataError": "outside"}
    return RecordError(file, None, kinds.get(type(error).__name__, "unreadable"), error.message)
