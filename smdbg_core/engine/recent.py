"""Recently read arrays: what a tensor is compared with was most often read one step ago."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RecentArrays"]


class RecentArrays:
    """Arrays by key, up to a number of bytes; the memory of those that are dropped is used again.

    Args:
        capacity: Bytes to keep.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._kept: dict[Hashable, tuple[NDArray[Any], memoryview]] = {}
        self._free: dict[int, list[memoryview]] = {}
        self._nbytes = 0
        self._pinned: Hashable = None

    def get(self, key: Hashable) -> NDArray[Any] | None:
        """The array of that key, if it is still there."""
        found = self._kept.get(key)
        return None if found is None else found[0]

    def memory(self, nbytes: int) -> memoryview:
        """Memory to read an array of this size into."""
        free = self._free.get(nbytes)
        return free.pop() if free else np.empty(nbytes, np.uint8).data

    def pin(self, key: Hashable) -> None:
        """Keep this array, and no other pinned before, whatever is read after it."""
        self._pinned = key

    def put(self, key: Hashable, array: NDArray[Any], memory: memoryview) -> None:
        """Keep an array that was read into `memory`; the oldest ones make room for it."""
        self._kept[key] = array, memory
        self._nbytes += len(memory)
        for old in list(self._kept) if self._nbytes > self._capacity else ():
            if self._nbytes <= self._capacity:
                break
            if old not in (key, self._pinned):
                dropped = self._kept.pop(old)[1]
                self._nbytes -= len(dropped)
                self._free.setdefault(len(dropped), []).append(dropped)
