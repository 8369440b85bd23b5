"""The floor: what reading the same bytes and summing their magnitudes costs at least.

Event files are mapped into memory; magnitudes and sums are formed in blocks of 32,768 elements with
preallocated scratch, in one thread.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterable

import numpy as np

from smdbg_core import Trial
from smdbg_core.runs.trial.payload import locate

BLOCK = 32768

Spans = list[tuple[str, int, int]]


def spans_of(trial: Trial, names: Iterable[str]) -> Spans:
    """File, offset and element count of the raw values of float32 tensors; not part of what is timed."""
    wanted = set(names)
    spans = []
    for step in trial.steps():
        for stored in trial.files(step):
            with trial.storage.open(stored.event_file or "") as file:
                for entry in stored.layout.entries.values():
                    if entry.name in wanted and entry.span is not None:
                        payload = locate(file, entry.name, entry.span)
                        path = f"{trial.uri}/{stored.event_file}"
                        spans.append((path, payload.offset, payload.nbytes // 4))
    return sorted(spans)


def floor_seconds(spans: Spans) -> float:
    """Seconds for the mean magnitude of every span."""
    started = time.perf_counter()
    scratch = np.empty(BLOCK, np.float32)
    maps: dict[str, mmap.mmap] = {}
    for path, offset, count in spans:
        if path not in maps:
            with open(path, "rb") as file:
                maps[path] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        values = np.frombuffer(maps[path], np.float32, count, offset)
        total = 0.0
        for start in range(0, count, BLOCK):
            block = values[start : start + BLOCK]
            part = scratch[: len(block)]
            np.abs(block, out=part)
            total += float(part.sum())
    return time.perf_counter() - started
