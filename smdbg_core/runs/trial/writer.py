"""The trial writer: record tensors from any training loop, in the format that the reader reads.

    with TrialWriter("runs/mine") as writer:
        for number, batch in enumerate(batches):
            ...
            with writer.step(number, mode="TRAIN") as step:
                step.add("gradient/fc1.weight", gradient)
                step.add("CrossEntropyLoss_output_0", loss)

It needs NumPy only, and what it writes is read by smdebug 1.0.34 as well.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import crc32c
import numpy as np
from numpy.typing import ArrayLike, NDArray

from smdbg_core.errors import ConfigError
from smdbg_core.runs.trial.collections import Collection
from smdbg_core.runs.trial.dtypes import BFLOAT16, NUMBER_OF
from smdbg_core.runs.trial.modes import Mode
from smdbg_core.runs.trial.records import CONSTANT_FOOTER, header, masked
from smdbg_core.runs.trial.tensor import REDUCTIONS, reduce

__all__ = ["StepWriter", "TrialWriter"]

_END_MARKER = "training_job_end.ts"

_STANDARD = {
    "all": (),
    "biases": (r"^(?!gradient).*bias",),
    "default": (),
    "gradients": (r"^gradient",),
    "losses": (r"[Ll]oss_(?!input).*output",),
    "weights": (r"^(?!gradient).*weight",),
}
"""Collections that every trial has, with the patterns of the PyTorch hook."""


class TrialWriter:
    """Writes a trial.

    Files appear under their final names only when they are whole. The end marker is written when the
    `with` block ends without an exception, so that a crash leaves a trial that is visibly unfinished.

    Args:
        path: Folder of the trial; it is made.
        worker: Name of this worker. Several writers, each with a name of its own, share a folder; the
            last one to leave should be the only one with `end=True`.
        num_workers: How many workers write.
        collections: Further collections, or other patterns for the standard ones.
        checksums: Whether to write true checksums of payloads. smdebug 1.0.34 refuses such files.
        end: Whether closing ends the trial.

    Raises:
        ConfigError: The folder holds a trial that has ended.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        worker: str = "worker_0",
        num_workers: int = 1,
        collections: Iterable[Collection] = (),
        checksums: bool = False,
        end: bool = True,
    ) -> None:
        self.path = Path(path).expanduser()
        self.worker = worker
        self.num_workers = num_workers
        self._checksums = checksums
        self._end = end
        self._file_worker = worker.replace("/", "_").replace(":", "-") if worker.startswith("/") else worker
        if not worker or "/" in self._file_worker or "\0" in worker:
            message = f"worker {worker!r} cannot be part of a file name"
            raise ConfigError(message)
        if (self.path / _END_MARKER).exists():
            message = f"{self.path} holds a trial that has ended; write to another folder"
            raise ConfigError(message)
        self._collections = {name: Collection(name, patterns) for name, patterns in _STANDARD.items()}
        self._collections |= {collection.name: collection for collection in collections}
        self._next_mode_step: dict[Mode, int] = {}
        self._last_step = -1
        self._seen: set[str] = set()

    def step(
        self, step: int | None = None, *, mode: str = "GLOBAL", mode_step: int | None = None
    ) -> StepWriter:
        """Begin a step; use it in a `with` statement, at whose end its files appear.

        Args:
            step: Global step; by default the one after the last.
            mode: `TRAIN`, `EVAL`, `PREDICT`, or `GLOBAL` for trainings without modes.
            mode_step: Step within the mode; by default counted, or the global step where there are no modes.

        Raises:
            ConfigError: A step that is not above the last one, or an unknown mode.
        """
        try:
            known = Mode(mode.upper())
        except ValueError:
            message = f"no mode {mode!r}; there are {', '.join(Mode)}"
            raise ConfigError(message) from None
        step = self._last_step + 1 if step is None else step
        if step <= self._last_step:
            message = f"step {step} comes after step {self._last_step}: steps must rise"
            raise ConfigError(message)
        if mode_step is None:
            mode_step = step if known is Mode.GLOBAL else self._next_mode_step.get(known, 0)
        self._last_step = step
        self._next_mode_step[known] = mode_step + 1
        return StepWriter(self, step, known, mode_step)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._last_step >= 0:
            self._write_collections()
        if kind is None and self._end:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / _END_MARKER).touch()

    def _finished(self, names: Iterable[str], first: bool) -> None:
        self._seen.update(names)
        if first:
            self._write_collections()

    def _write_collections(self) -> None:
        """Write the collections file; hooks write it after the first step, so that readers can begin."""
        listed = {}
        for name, collection in sorted(self._collections.items()):
            reduction_config = collection.reduction_config or {
                "save_raw_tensor": True,
                "reductions": "",
                "save_shape": False,
            }
            listed[name] = {
                "name": name,
                "include_regex": collection.include_regex,
                "tensor_names": sorted(tensor for tensor in self._seen if collection.matches(tensor)),
                "reduction_config": reduction_config,
                "save_config": _save_config(collection),
                "save_histogram": bool(collection.save_histogram),
            }
        document = {"collections": listed, "_meta": {"num_workers": self.num_workers}}
        folder = self.path / "collections" / "000000000"
        _write_whole(folder / f"{self._file_worker}_collections.json", json.dumps(document).encode())


class StepWriter:
    """Writes one step; made by `TrialWriter.step`."""

    def __init__(self, writer: TrialWriter, step: int, mode: Mode, mode_step: int) -> None:
        self._writer = writer
        self._step = step
        self._mode = mode
        self._mode_step = mode_step
        self._stem = f"{step:012d}_{writer._file_worker}"
        self._tensors: list[dict[str, Any]] = []
        self._shapes: list[dict[str, Any]] = []
        self._names: set[str] = set()
        self._offset = 0
        self._file: Any = None

    @property
    def _event_name(self) -> str:
        return f"events/{self._step:012d}/{self._stem}.tfevents"

    def __enter__(self) -> Self:
        return self

    def add(
        self,
        name: str,
        value: ArrayLike,
        *,
        raw: bool = True,
        reductions: Sequence[str] = (),
        shape: bool = False,
        original_name: str | None = None,
    ) -> None:
        """Save a tensor.

        Args:
            name: Name of the tensor.
            value: An array, number, string or list of strings; anything that NumPy converts.
            raw: Whether to save the value itself.
            reductions: Reductions to save: `"mean"`, `"abs_mean"`, `"l2"`, ...; std and variance are the
                population's, norms those of the flattened tensor.
            shape: Whether to save the shape on its own.
            original_name: The framework's own name, saved with the shape.

        Raises:
            ConfigError: A value that the format cannot hold, or an unknown reduction.
        """
        array, number = _storable(name, value)
        self._names.add(name)
        if raw:
            self._write(name, array, number)
        for reduction in reductions:
            plain = reduction.removeprefix("abs_").removesuffix("_norm")
            if plain not in REDUCTIONS:
                message = f"{name}: no reduction {reduction!r}; there are {', '.join(REDUCTIONS)}"
                raise ConfigError(message)
            magnitudes = np.abs(array) if reduction.startswith("abs_") else array
            key = ("abs_" if reduction.startswith("abs_") else "") + plain
            reduced = np.array(reduce(magnitudes, plain))
            self._write(f"smdebug/reductions/{key}/{name}", reduced, NUMBER_OF[reduced.dtype])
        if shape:
            self._shapes.append(
                {"tensorname": name, "originalname": original_name or name, "shape": list(array.shape)}
            )

    def _write(self, name: str, array: NDArray[Any], number: int) -> None:
        before, after, content = self._message(name, array, number)
        length = len(before) + content.nbytes + len(after)
        if self._file is None:
            temporary = self._writer.path / f"{self._event_name}.tmp"
            temporary.parent.mkdir(parents=True, exist_ok=True)
            self._file = temporary.open("wb")
        self._file.write(header(length))
        self._file.write(before)
        self._file.write(content)
        self._file.write(after)
        if self._writer._checksums:
            crc = crc32c.crc32c(after, crc32c.crc32c(content, crc32c.crc32c(before)))
            self._file.write(struct.pack("<I", masked(crc)))
        else:
            self._file.write(CONSTANT_FOOTER)
        size = length + 16
        self._tensors.append({"tensorname": name, "start_idx": self._offset, "length": size})
        self._offset += size

    def _message(self, name: str, array: NDArray[Any], number: int) -> tuple[bytes, bytes, memoryview]:
        """The Event message around the elements: bytes before them, after them, and the elements."""
        dimensions = b"".join(
            _field(2, (_number(1, size) if size else b"") + _field(2, f"{name}_{size}".encode()))
            for size in array.shape
        )
        tensor = (_number(1, number) if number else b"") + _field(2, dimensions)
        content = memoryview(b"")
        if array.dtype.kind == "U":
            tensor += b"".join(_field(8, str(text).encode()) for text in array)
        else:
            content = array.reshape(-1).view(np.uint8).data
            tensor += _tag(4, 2) + _varint(content.nbytes)
        plugins = _field(1, _field(1, b"mode_step") + _field(2, str(self._mode_step).encode()))
        plugins += _field(1, _field(1, b"mode") + _field(2, str(self._mode.number).encode()))
        metadata = _field(9, plugins)
        value_head = _field(1, name.encode()) + _tag(8, 2) + _varint(len(tensor) + content.nbytes) + tensor
        value_length = len(value_head) + content.nbytes + len(metadata)
        summary_head = _tag(1, 2) + _varint(value_length)
        event = _tag(1, 1) + struct.pack("<d", time.time()) + (_number(2, self._step) if self._step else b"")
        event += _tag(5, 2) + _varint(len(summary_head) + value_length) + summary_head + value_head
        return event, metadata, content

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        root = self._writer.path
        if self._file is not None:
            self._file.close()
            temporary = root / f"{self._event_name}.tmp"
            if kind is not None:
                temporary.unlink()
                return
            os.replace(temporary, root / self._event_name)
        if kind is not None:
            return
        meta: dict[str, Any] = {"mode": self._mode.value, "mode_step": self._mode_step}
        if self._file is not None:
            meta["event_file_name"] = self._event_name
        document = {"meta": meta, "tensor_payload": self._tensors, "shape_payload": self._shapes}
        index = root / "index" / f"{self._step // 1000:09d}" / f"{self._stem}.json"
        _write_whole(index, json.dumps(document).encode())
        self._writer._finished(self._names, not self._writer._seen)


def _storable(name: str, value: ArrayLike) -> tuple[NDArray[Any], int]:
    """The array in C order and the number of its type."""
    array = np.asarray(value)
    if array.dtype.name == "bfloat16":
        return np.ascontiguousarray(array).view(np.uint16).reshape(array.shape), BFLOAT16
    if array.dtype.kind == "S" or array.dtype == object:
        texts = [item.decode() if isinstance(item, bytes) else item for item in array.reshape(-1).tolist()]
        if not all(isinstance(text, str) for text in texts):
            message = f"{name}: an array of Python objects cannot be saved; make it numbers or strings"
            raise ConfigError(message)
        array = np.array(texts, dtype=np.str_).reshape(array.shape)
    if array.dtype.kind == "U":
        if array.ndim > 1:
            message = f"{name}: strings are saved in one dimension, not in shape {array.shape}"
            raise ConfigError(message)
        return np.atleast_1d(array), 0
    number = NUMBER_OF.get(array.dtype.newbyteorder("="))
    if number is None:
        message = f"{name}: the format has no type for {array.dtype}; convert the tensor first"
        raise ConfigError(message)
    little = array.dtype.newbyteorder("<")
    return np.ascontiguousarray(array, dtype=little).reshape(array.shape), number


def _save_config(collection: Collection) -> dict[str, Any]:
    configs: dict[str, Any] = {}
    for mode in Mode:
        config = collection.save_config.get(mode)
        configs[mode.value] = (
            None
            if config is None
            else {
                "save_interval": config.save_interval or 1,
                "save_steps": config.save_steps or [],
                "start_step": config.start_step or 0,
                "end_step": config.end_step,
            }
        )
    return configs


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is seen whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _number(number: int, value: int) -> bytes:
    return _tag(number, 0) + _varint(value)


def _field(number: int, content: bytes) -> bytes:
    return _tag(number, 2) + _varint(len(content)) + content
