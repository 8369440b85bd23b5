"""Index files: which tensors a step has, and where they lie.

Training writes the same tensors at every step, so that the payload lists of most index files are equal
byte for byte. They are decoded once: index files share `Layout` objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import msgspec

from smdbg_core.runs.damage import Damage
from smdbg_core.runs.trial.modes import Mode
from smdbg_core.strict_text import strict_text

__all__ = ["Entry", "IndexReader", "Layout", "Span", "StepFile", "worker_of"]

Span = tuple[int, int]
"""Offset and length of a record in its event file."""

_FILE_NAME = re.compile(r"(\d{1,18})_(.+)\.(?:json|csv)", re.DOTALL)
_REDUCTION = "smdebug/reductions/"
_MODES = {mode.value: mode for mode in Mode}


class Entry(NamedTuple):
    """What a step has of one tensor."""

    name: str
    span: Span | None
    """Record of the raw value, if it was saved."""

    reductions: dict[str, Span]
    """Records of saved reductions: `mean`, `abs_mean`, `l2`, ..."""

    shape: tuple[int, ...] | None = None
    """Shape, if it was saved on its own."""

    original_name: str | None = None
    """The framework's own name."""


class Layout(NamedTuple):
    """The tensors of an index file."""

    names: tuple[str, ...]
    """Sorted."""

    entries: dict[str, Entry]


class StepFile:
    """One index file: what one worker saved at one step."""

    __slots__ = ("event_file", "layout", "mode", "mode_step", "step", "worker")

    def __init__(
        self, step: int, worker: str, mode: Mode, mode_step: int, event_file: str | None, layout: Layout
    ) -> None:
        self.step = step
        self.worker = worker
        self.mode = mode
        self.mode_step = mode_step
        self.event_file = event_file
        self.layout = layout

    def __repr__(self) -> str:
        return f"<StepFile {self.step} {self.worker} {self.mode} {self.mode_step}>"


class _Meta(msgspec.Struct):
    mode: str
    mode_step: int
    event_file_name: str | None = None


_ABSENT = msgspec.Raw(b"null")


class _Document(msgspec.Struct):
    meta: _Meta
    tensor_payload: msgspec.Raw = _ABSENT
    shape_payload: msgspec.Raw = _ABSENT


class _Tensor(msgspec.Struct):
    tensorname: str
    start_idx: int
    length: int


class _Shape(msgspec.Struct):
    tensorname: str
    shape: tuple[int, ...]
    originalname: str | None = None


_Item = TypeVar("_Item", _Tensor, _Shape)


class IndexReader:
    """Decodes index files.

    Attributes:
        damage: What could not be read, in the order of reading.
    """

    def __init__(self) -> None:
        self.damage: list[Damage] = []
        self._decode = msgspec.json.Decoder(_Document).decode
        self._layouts: dict[tuple[bytes, bytes], Layout] = {}
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._workers: dict[str, str] = {}

    def read(self, name: str, data: bytes) -> StepFile | None:
        """Decode one index file; `None` if it is damaged beyond use.

        Args:
            name: Name of the file relative to the run's folder.
            data: Its content.
        """
        matched = _FILE_NAME.fullmatch(name.rpartition("/")[2])
        if matched is None:
            self.damage.append(Damage(name, None, "name", "no step number and worker in the file's name"))
            return None
        if not data:
            self.damage.append(Damage(name, None, "empty", "the file is empty"))
            return None
        try:
            document = self._decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.damage.append(_not_json(name, error))
            return None
        mode = _MODES.get(document.meta.mode.strip())
        if mode is None or document.meta.mode_step < 0:
            detail = (
                f"no mode {document.meta.mode!r}" if mode is None else f"mode step {document.meta.mode_step}"
            )
            self.damage.append(Damage(name, None, "mode", detail))
            return None
        if document.tensor_payload == document.shape_payload == _ABSENT:
            self.damage.append(Damage(name, None, "inconsistent", "neither tensor_payload nor shape_payload"))
            return None
        layout = self._layout(name, document)
        event_file = document.meta.event_file_name
        if event_file is None and any(entry.span or entry.reductions for entry in layout.entries.values()):
            self.damage.append(Damage(name, None, "inconsistent", "tensors, but no event_file_name"))
            return None
        worker = self._workers.setdefault(matched[2], worker_of(matched[2]))
        return StepFile(int(matched[1]), worker, mode, document.meta.mode_step, event_file, layout)

    def _layout(self, name: str, document: _Document) -> Layout:
        key = bytes(document.tensor_payload), bytes(document.shape_payload)
        layout = self._layouts.get(key)
        if layout is None:
            before = len(self.damage)
            layout = self._build(name, *key)
            if len(self.damage) == before:
                self._layouts[key] = layout
        return layout

    def _build(self, name: str, tensors: bytes, shapes: bytes) -> Layout:
        spans: dict[str, Span] = {}
        reductions: dict[str, dict[str, Span]] = {}
        for tensor in self._items(name, tensors, _Tensor):
            if tensor.start_idx < 0 or tensor.length < 0 or tensor.start_idx + tensor.length >= 1 << 62:
                detail = f"{tensor.tensorname!r}: start {tensor.start_idx}, length {tensor.length}"
                self.damage.append(Damage(name, None, "inconsistent", detail))
                continue
            span = tensor.start_idx, tensor.length
            _, is_reduction, rest = tensor.tensorname.partition(_REDUCTION)
            reduction, _, owner = rest.partition("/")
            if is_reduction:
                reductions.setdefault(owner, {})[reduction] = span
            else:
                spans[tensor.tensorname] = span
        described = {shape.tensorname: shape for shape in self._items(name, shapes, _Shape)}
        names = tuple(sorted({*spans, *reductions, *described}))
        names = self._shared.setdefault(names, names)
        entries = {}
        for tensor_name in names:
            shape = described.get(tensor_name)
            entries[tensor_name] = Entry(
                tensor_name,
                spans.get(tensor_name),
                reductions.get(tensor_name, {}),
                shape.shape if shape else None,
                shape.originalname if shape else None,
            )
        return Layout(names, entries)

    def _items(self, name: str, data: bytes, kind: type[_Item]) -> Iterator[_Item]:
        """The items of a list; where one is broken, each is decoded alone and the others are kept."""
        try:
            yield from msgspec.json.decode(data, type=list[kind] | None) or ()  # type: ignore[valid-type]
            return
        except msgspec.DecodeError:
            pass
        try:
            items = msgspec.json.decode(data, type=list[msgspec.Raw])
        except msgspec.DecodeError as error:
            self.damage.append(_not_json(name, error))
            return
        for item in items:
            try:
                yield msgspec.json.decode(item, type=kind)
            except msgspec.DecodeError as error:
                self.damage.append(_not_json(name, error))


def worker_of(serialised: str) -> str:
    """The worker's name from its form in file names.

    Device strings such as `/job:worker/replica:0/task:1/device:GPU:0` are written with `_` for `/` and
    `-` for `:`, and so begin with an underscore; other names are written as they are.
    """
    serialised = strict_text(serialised)
    if not serialised.startswith("_"):
        return serialised
    return serialised.replace("_", "/").replace("-", ":")


def _not_json(name: str, error: Exception) -> Damage:
    matched = re.search(r"\(byte (\d+)\)", str(error))
    kind = "cut" if "truncated" in str(error) else "not JSON"
    if isinstance(error, msgspec.ValidationError):
        kind = "inconsistent"
    return Damage(name, int(matched[1]) if matched else None, kind, str(error))
