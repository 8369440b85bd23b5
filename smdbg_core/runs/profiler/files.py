"""Files of profiler output: what each one is, as far as its name tells.

The grammar is that of the files which SageMaker's profiler and smdebug 1.0.34 write. Folders are for
listing only; no time is taken from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

__all__ = [
    "END_MARKER",
    "Kind",
    "ProfilerFile",
    "Source",
    "classify",
    "in_order",
    "may_be_pytorch",
    "worker_of",
]

Kind: TypeAlias = Literal["metrics", "trace", "tensorflow", "pytorch"]
Source: TypeAlias = Literal["python", "model", "horovod", "smdataparallel", "tf_profiler", "pytorch"]

END_MARKER: Final = "training_job_end.ts"

_METRICS = re.compile(r"(\d{10})\.(algo-\d+)\.json")
_TRACE = re.compile(r"(\d{16}|\d{19})_(.+)_(python|model_|horovod_|smdataparallel_)timeline\.json", re.DOTALL)
_TENSORFLOW = re.compile(r".+\.trace\.json\.gz", re.DOTALL)
_PYTORCH = re.compile(r".+\.pt\.trace\.json(?:\.gz)?", re.DOTALL)
_PERHAPS_PYTORCH = re.compile(r".*trace.*\.json(?:\.gz)?", re.DOTALL | re.IGNORECASE)
_WORKER = re.compile(r"(.*)-(algo-\d+)", re.DOTALL)

MICROSECONDS: Final = 1_000_000
_EARLY = 5 * MICROSECONDS
"""How much earlier than its name says a file of metrics may begin."""


class ProfilerFile(NamedTuple):
    """One file of profiler output."""

    name: str
    """Relative to the root, with forward slashes."""

    kind: Kind
    time: int
    """Microseconds since the epoch: start of a minute of metrics, end of the last event of a trace,
    start of a trace of PyTorch's profiler."""

    node: str
    worker: str
    """The node for metrics; for traces `algo-1-27`, rank or process 27 on node `algo-1`."""

    source: Source | None = None


def classify(name: str) -> ProfilerFile | None:
    """What the file is, `None` if it is nothing that profilers write."""
    base = name.rpartition("/")[2]
    matched = _METRICS.fullmatch(base)
    if matched:
        return ProfilerFile(name, "metrics", int(matched[1]) * MICROSECONDS, matched[2], matched[2])
    matched = _TRACE.fullmatch(base)
    if matched:
        # The nineteen digits of an early TensorFlow writer are nanoseconds.
        time = int(matched[1]) if len(matched[1]) == 16 else int(matched[1]) // 1000
        node, worker = worker_of(matched[2])
        return ProfilerFile(name, "trace", time, node, worker, matched[3].rstrip("_"))  # type: ignore[arg-type]
    if _TENSORFLOW.fullmatch(base) and "detailed_profiling" in name.split("/"):
        return ProfilerFile(name, "tensorflow", 0, "", "", "tf_profiler")
    return None


def may_be_pytorch(base: str, *, only: bool = False) -> bool:
    """Whether the name of a file is one that PyTorch's profiler, or a script of its users, gives a trace.

    Args:
        base: Name without folders.
        only: Only the profiler's own names, which nothing else has.
    """
    return _PYTORCH.fullmatch(base) is not None or (
        not only and _PERHAPS_PYTORCH.fullmatch(base) is not None and _TRACE.fullmatch(base) is None
    )


def worker_of(middle: str) -> tuple[str, str]:
    """Node and worker from the middle part of a trace's name."""
    matched = _WORKER.fullmatch(middle)
    if matched:
        return matched[2], f"{matched[2]}-{matched[1]}"
    # Early versions wrote `4487_0000`: the node is what stands before the underscore.
    node = middle.partition("_")[0]
    return node, node


def in_order(files: Iterable[ProfilerFile]) -> Iterator[tuple[int, ProfilerFile]]:
    """The files in the order in which to read them, each with the earliest time it may bring.

    A trace file brings events that ended after the previous file of its writer was closed; they may
    have started at any time before.
    """
    files = sorted(files, key=lambda file: (file.time, file.node, file.name))
    closed: dict[tuple[str, str | None], int] = {}
    bounded = []
    for file in files:
        if file.kind == "metrics":
            bounded.append((file.time - _EARLY, file))
        elif file.kind == "pytorch":
            bounded.append((file.time, file))
        else:
            writer = file.worker, file.source
            bounded.append((closed.get(writer, 0), file))
            closed[writer] = file.time
    bounded.sort(key=lambda one: one[0])
    return iter(bounded)
