"""Traces of PyTorch's profiler: Chrome traces, plain or gzipped, one file for each rank and cycle."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec
import numpy as np

from smdbg_core.runs.damage import Damage
from smdbg_core.runs.profiler.events import Args, Events
from smdbg_core.runs.profiler.files import ProfilerFile
from smdbg_core.runs.profiler.trace_text import TraceText
from smdbg_core.storage import File

__all__ = ["PytorchReader", "place"]

_LATEST: Final = 1e17
_START: Final = 1 << 22
"""Bytes within which a trace must come to its events."""

_STEP = re.compile(r"ProfilerStep#(\d+)")
_LOADER = re.compile(r"enumerate\(DataLoader\)#.*__next__|DataLoader")
_OPTIMIZER = re.compile(r"Optimizer\.(?:step|zero_grad)(?=#)")
_COLLECTIVE = re.compile(r"(?:gloo|mpi|ucc|xccl|hccl):\w+")
"""Back ends whose annotation covers the work; NCCL's covers the launch only, its kernels the work."""

_FIRST_TIME = re.compile(rb'"ts"\s{0,9}:\s{0,9}([0-9.eE+-]+)')
_NAME = re.compile(r"(.+?)(?:\.\d{10,})?(?:\.pt)?(?:\.trace)?\.json(?:\.gz)?", re.DOTALL)
_NUMBERED = re.compile(r"(.*?)[._-]?(?:rank|worker)?[._-]?(\d+)", re.DOTALL | re.IGNORECASE)

_OPERATORS: Final = ("cpu_op", "operator")
_ANNOTATIONS: Final = ("user_annotation",)
_DEVICE: Final = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "concurrent_kernel")
_RUNTIME: Final = ("cuda_runtime", "cuda_driver", "runtime", "hip_runtime", "xpu_runtime")


class _Rank(msgspec.Struct, gc=False):
    rank: int | None = None


class _Header(msgspec.Struct, gc=False):
    """What stands before the events."""

    baseTimeNanoseconds: int | None = None  # noqa: N815 - the format's name
    distributedInfo: _Rank | None = None  # noqa: N815
    host_name: str | None = None


class _Event(msgspec.Struct, gc=False):
    """One trace event, as far as it is read."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0


class _Kind(NamedTuple):
    """What events of one category and name become."""

    phase: str | None
    """`None` where it depends on the device."""

    name: str
    args: Args | None


def place(entry: ProfilerFile, file: File) -> ProfilerFile | None:
    """The file with node, worker and the time of its first event; `None` if it is no such trace.

    The node is the machine's name as the trace has it, or else the file's; the worker is the node and
    the rank, or the number in the name, or the name.
    """
    text = TraceText(entry.name, file)
    content, events = text.start(_START)
    if events is None:
        return None
    header = _header(content[:events])
    found = _FIRST_TIME.search(content, events)
    first = 0.0
    if found is not None:
        with suppress(ValueError):
            first = float(found[1])
    start = _base(header) + first
    matched = _NAME.fullmatch(entry.name.rpartition("/")[2])
    stem = matched[1] if matched else entry.name
    numbered = _NUMBERED.fullmatch(stem)
    node = header.host_name or (numbered[1] if numbered and numbered[1] else stem)
    rank = header.distributedInfo.rank if header.distributedInfo is not None else None
    in_name = numbered[2] if numbered else stem
    identity = in_name if rank is None else str(rank)
    worker = node if identity == node else f"{node}-{identity}"
    return entry._replace(
        time=int(start) if 0 <= start < _LATEST else 0, node=node, worker=worker, source="pytorch"
    )


class PytorchReader:
    """Reads traces of PyTorch's profiler, a piece at a time.

    Operators become the phase `cpu_functions`, what runs on a device `gpu_functions-dev:<k>`,
    `ProfilerStep#N` a training step, waiting for the data loader `DataLoaderIter`, collectives
    `Communication`. Python functions, copies of annotations on the device's time line, flows and
    instants are passed over: they repeat time that is counted already, or have none.

    Attributes:
        damage: What could not be read, one entry for each place.
    """

    def __init__(self) -> None:
        self.damage: list[Damage] = []
        self._many = msgspec.json.Decoder(list[_Event])
        self._one = msgspec.json.Decoder(_Event)
        self._kinds: dict[tuple[str, str], _Kind | None] = {}

    def read(self, entry: ProfilerFile, file: File) -> Iterator[Events]:
        """The events of a trace, in blocks, in the order of the file."""
        text = TraceText(entry.name, file)
        content, events = text.start(_START)
        if events is not None:
            base = _base(_header(content[:events]))
            for rows in text.rows(self._many, self._one):
                found = self._columns(rows, entry, base)
                if found:
                    yield found
        elif not text.damage:
            text.damage.append(Damage(entry.name, None, "not JSON", "no traceEvents"))
        self.damage += text.damage

    def _columns(self, rows: list[_Event], entry: ProfilerFile, base: float) -> Events:
        kinds = self._kinds
        phases, names, args = [], [], []
        starts, durations = [], []
        for row in rows:
            if row.ph != "X":
                continue
            key = row.cat, row.name
            try:
                kind = kinds[key]
            except KeyError:
                kind = kinds[key] = _kind(*key)
            if kind is None:
                continue
            phases.append(kind.phase or f"gpu_functions-dev:{row.pid}")
            names.append(kind.name)
            args.append(kind.args)
            starts.append(row.ts)
            durations.append(row.dur)
        with np.errstate(over="ignore", invalid="ignore"):
            first = np.array(starts, np.float64) + base
            last = first + np.array(durations, np.float64)
        good = (first >= 0) & (last >= first) & (last < _LATEST)
        if not good.all():
            lost = f"{np.count_nonzero(~good)} events at no time"
            self.damage.append(Damage(entry.name, None, "row", lost))
            first, last = np.where(good, first, 0), np.where(good, last, 0)
        events = Events(
            entry.worker,
            entry.node,
            "pytorch",
            _objects(phases),
            _objects(names),
            np.rint(first).astype(np.int64),
            np.rint(last).astype(np.int64),
            _objects(args),
        )
        return events if good.all() else events.take(good)


def _kind(category: str, name: str) -> _Kind | None:
    """What an event is; `None` for what is passed over."""
    folded = category.lower()
    step = _STEP.fullmatch(name)
    if step is not None:
        # The copy of a step on the time line of a device is no step of its own.
        known = folded in (*_ANNOTATIONS, *_OPERATORS)
        return _Kind("Step:ModeKeys.TRAIN", name, Args(step_num=int(step[1]))) if known else None
    if folded in _ANNOTATIONS or (folded in _OPERATORS and name.startswith(("enumerate(", "Optimizer."))):
        if _LOADER.fullmatch(name):
            return _Kind("DataLoaderIter", name, None)
        optimizer = _OPTIMIZER.match(name)
        if optimizer is not None:
            return _Kind(optimizer[0], name, None)
        return _Kind("Communication" if _COLLECTIVE.fullmatch(name) else "UserAnnotation", name, None)
    if folded in _OPERATORS:
        return _Kind("cpu_functions", name, None)
    if folded in _DEVICE:
        return _Kind("Communication" if name.lower().startswith("nccl") else None, name, None)
    return _Kind(folded, name, None) if folded in _RUNTIME else None


def _header(content: bytes) -> _Header:
    """What stands before the events, as far as it can be read."""
    try:
        return msgspec.json.decode(content + b"]}", type=_Header)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _Header()


def _base(header: _Header) -> float:
    """Microseconds since the epoch to which times are relative; earlier versions wrote absolute ones."""
    nanoseconds = header.baseTimeNanoseconds or 0
    return nanoseconds / 1000 if 0 < nanoseconds < _LATEST * 1000 else 0.0


def _objects(values: list[str] | list[Args | None]) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    column = np.empty(len(values), np.object_)
    column[:] = values
    return column
