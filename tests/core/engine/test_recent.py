"""Recently read arrays."""

from __future__ import annotations

import numpy as np

from smdbg_core.engine.recent import RecentArrays


def put(recent: RecentArrays, key: str, nbytes: int, fill: int) -> None:
    memory = recent.memory(nbytes)
    array = np.frombuffer(memory, np.uint8)
    array[:] = fill
    recent.put(key, array, memory)


def test_the_oldest_make_room_and_their_memory_is_used_again() -> None:
    recent = RecentArrays(100)
    for number, key in enumerate("abc"):
        put(recent, key, 40, number)
    assert recent.get("a") is None
    assert recent.get("b") is not None
    again = recent.memory(40)
    assert np.frombuffer(again, np.uint8)[0] == 0


def test_a_pinned_array_is_never_overwritten() -> None:
    recent = RecentArrays(100)
    put(recent, "current", 60, 7)
    recent.pin("current")
    for number in range(20):
        put(recent, f"other{number}", 60, number)
    current = recent.get("current")
    assert current is not None
    assert (current == 7).all()
