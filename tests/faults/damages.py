"""What is done to files: one damage to one file of a subject, at a time."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.faults.subjects import Point, Subject

__all__ = ["Case", "cases"]

TERABYTE = 1 << 40


class Case(NamedTuple):
    """One damage to one file."""

    kind: str
    subject: Subject
    file: str
    apply: Callable[[Path], None]
    """Given the file in a copy of the subject."""

    begin: int
    """Bytes from here on ..."""

    end: int
    """... up to here differ."""

    unseen: bool = False
    """Whether what remains is a run that could have been written so: nothing tells of the damage."""

    named_as: str | None = None
    """The place that is named instead: what an index file says wrongly shows in its event file."""

    def is_named(self, texts: Iterable[str]) -> bool:
        """Whether one of the texts names the damaged file."""
        names = [self.file, *([self.named_as] if self.named_as else [])]
        return any(name in text for name in names for text in texts)

    def lost(self) -> frozenset[Point]:
        """The points that the damage may cost; all others must be judged."""
        places = self.subject.places.get(self.file, [])
        header = min((place.begin for place in places), default=0)
        if self.begin < header:
            # What stands before the first record is needed for all of them.
            return frozenset(place.point for place in places)
        return frozenset(
            place.point
            for place in places
            if place.begin < max(self.end, self.begin + 1) and place.end > self.begin
        )


def cases(subject: Subject, rng: random.Random, cuts: int, flips: int) -> Iterator[Case]:
    """All damages to all files.

    Args:
        subject: The run.
        rng: Chooses bytes.
        cuts: How many cuts at random bytes of each file.
        flips: How many bits are flipped in each file, one at a time.
    """
    for file, content in subject.files.items():
        size = len(content)

        def case(
            kind: str,
            apply: Callable[[Path], None],
            begin: int = 0,
            end: int = TERABYTE,
            *,
            unseen: bool = False,
            file: str = file,
        ) -> Case:
            return Case(kind, subject, file, apply, begin, end, unseen)

        for at in sorted({at for at in subject.borders[file] if 0 < at < size}):
            yield case("cut at a record's border", _cut(at), at, unseen=_is_whole(subject, file, at))
        for at in sorted(rng.randrange(size) for _ in range(cuts if size else 0)):
            yield case("cut at a random byte", _cut(at), at, unseen=_is_whole(subject, file, at))
        for _ in range(flips if size else 0):
            at, bit = rng.randrange(size), rng.randrange(8)
            # Nothing in the format tells of other values of the same form.
            yield case("a bit flipped", _flip(at, bit), at, at + 1, unseen=True)
        yield case("emptied", _write(b""))
        yield case("removed", os.unlink, unseen=True)
        yield case("replaced by a folder", _folder, unseen=True)
        yield case("replaced by a symbolic link to itself", _loop)
        yield case("replaced by a link out of the folder", _outside)
        yield case("replaced by a FIFO", _fifo)
        yield case("replaced by a terabyte of zeros", _sparse)
        yield case(
            "followed by a terabyte of zeros",
            _grown,
            0 if file.startswith(("index", "collections")) else size,
        )
        yield case("replaced by a million brackets", _write(b"[" * 1_000_000))
        yield case("replaced by deeply nested objects", _write(b'{"a":' * 200_000))
        yield case("replaced by random bytes", _write(rng.randbytes(size)))


def _is_whole(subject: Subject, file: str, at: int) -> bool:
    """Whether what a cut leaves is a whole file: lines are, however few there are."""
    return file.startswith("system") and bool({at, at + 1} & set(subject.borders[file]))


def _cut(at: int) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, at)


def _flip(at: int, bit: int) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[at] ^= 1 << bit
        path.write_bytes(content)

    return apply


def _write(content: bytes) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        path.write_bytes(content)

    return apply


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _outside(path: Path) -> None:
    # Readable, and not part of the run.
    path.unlink()
    path.symlink_to("/proc/self/environ")


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _sparse(path: Path) -> None:
    path.write_bytes(b"")
    os.truncate(path, TERABYTE)


def _grown(path: Path) -> None:
    os.truncate(path, TERABYTE)
