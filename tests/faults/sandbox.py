"""Calls with limits on time and memory: each in a child of its own, so that nothing can hurt the suite."""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["MEMORY", "SECONDS", "Ended", "confined"]

SECONDS = 20.0
MEMORY = 1 << 30
"""Bytes of address space that a call may take beyond what the suite itself holds."""


class Ended(NamedTuple):
    """How a call ended."""

    result: Any
    problem: str | None
    """What it raised, or what killed it; `None` where it returned."""

    hung: bool
    seconds: float
    growth: float
    """MiB that its memory grew to at most, beyond what the suite held when it began."""


def confined(call: Callable[[], Any], seconds: float = SECONDS, memory: int = MEMORY) -> Ended:
    """The result of a call, made in a child of this process.

    Args:
        call: What to do; its result is sent back pickled. The suite trusts itself.
        seconds: The child is killed after so long.
        memory: Address space it may take beyond that of this process, in bytes.
    """
    reading, writing = os.pipe()
    before = _resident()
    started = time.monotonic()
    child = os.fork()
    if not child:
        os.close(reading)
        _run(call, writing, memory)
    os.close(writing)
    content, hung = _receive(reading, started + seconds)
    os.close(reading)
    if hung:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    took = time.monotonic() - started
    growth = max(0.0, usage.ru_maxrss / 1024 - before)
    if hung:
        return Ended(None, f"no end within {seconds:g} s", True, took, growth)
    if not content:
        return Ended(None, f"the process died, status {status}", False, took, growth)
    problem, result = pickle.loads(content)
    return Ended(result, problem, False, took, growth)


def _run(call: Callable[[], Any], writing: int, memory: int) -> None:
    """The child: it never returns."""
    try:
        limit = _address_space() + memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        content = pickle.dumps((None, call()))
    except BaseException:
        content = pickle.dumps((traceback.format_exc(), None))
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(content)
    os._exit(0)


def _receive(reading: int, until: float) -> tuple[bytes, bool]:
    """All that the child sends; whether it did not come to an end."""
    content = b""
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return content, True
        piece = os.read(reading, 1 << 16)
        if not piece:
            return content, False
        content += piece


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)
