"""Back-off: how long to wait between attempts."""

from __future__ import annotations

import random
from collections.abc import Iterator

__all__ = ["delays"]

FIRST = 0.5
LONGEST = 20.0


def delays(repetitions: int) -> Iterator[float]:
    """Seconds to wait before each repetition: doubling, with jitter, so that clients do not come in step."""
    for number in range(repetitions):
        yield min(FIRST * 2**number, LONGEST) * random.uniform(0.75, 1.25)  # noqa: S311 - no secret
