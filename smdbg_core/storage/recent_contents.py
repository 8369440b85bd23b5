"""What was fetched from a remote store a moment ago."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, NamedTuple

__all__ = ["Content", "RecentContents"]

_RECENT_BYTES: Final = 1 << 26


class Content(NamedTuple):
    """A part of an object."""

    start: int
    data: bytes
    size: int
    """Of the whole object."""


class RecentContents:
    """What was fetched a moment ago: measuring and judging read the same files, one after the other."""

    def __init__(self) -> None:
        self._contents: OrderedDict[str, Content] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, place: str, start: int, end: int | None) -> Content | None:
        """A content that holds this part."""
        with self._lock:
            content = self._contents.get(place)
            if content is None:
                return None
            self._contents.move_to_end(place)
        stop = content.size if end is None else min(end, content.size)
        held = content.start <= start and stop <= content.start + len(content.data)
        return content if held else None

    def put(self, place: str, content: Content) -> None:
        """Keep a content; the oldest ones make room."""
        if len(content.data) > _RECENT_BYTES // 4:
            return
        with self._lock:
            self._drop(place)
            self._contents[place] = content
            self._bytes += len(content.data)
            while self._bytes > _RECENT_BYTES:
                self._drop(next(iter(self._contents)))

    def forget(self, prefix: str) -> None:
        """Drop what lies below a prefix: it is read anew, and may have changed."""
        with self._lock:
            for place in [place for place in self._contents if place.startswith(prefix)]:
                self._drop(place)

    def _drop(self, place: str) -> None:
        content = self._contents.pop(place, None)
        if content is not None:
            self._bytes -= len(content.data)
