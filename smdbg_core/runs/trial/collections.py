"""Collections: named groups of tensors, and how they were to be saved."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from smdbg_core.runs.damage import Damage
from smdbg_core.runs.trial.index import worker_of

__all__ = ["Collection", "CollectionReader", "SaveConfig"]

_FILE_NAME = re.compile(r"(.*?)_?collections\.(?:json|ts)")


class SaveConfig(msgspec.Struct):
    """At which steps of a mode a collection is saved."""

    save_interval: int | None = None
    save_steps: list[int] | None = None
    start_step: int | None = None
    end_step: int | None = None


class Collection:
    """A named group of tensors.

    Attributes:
        name: Name of the collection.
        include_regex: Patterns; a tensor belongs where one matches anywhere in its name.
        tensor_names: Names that were listed; files list only what the first saved step wrote.
        reduction_config: As it was written, or `None`.
        save_config: By mode, as far as it was written.
        save_histogram: As it was written.
    """

    def __init__(
        self,
        name: str,
        include_regex: Iterable[str] = (),
        tensor_names: Iterable[str] = (),
        reduction_config: dict[str, Any] | None = None,
        save_config: dict[str, SaveConfig | None] | None = None,
        save_histogram: bool | None = None,
    ) -> None:
        self.name = name
        self.include_regex = list(include_regex)
        self.tensor_names = set(tensor_names)
        self.reduction_config = reduction_config
        self.save_config = save_config or {}
        self.save_histogram = save_histogram
        self._patterns = [re.compile(pattern) for pattern in self.include_regex]

    def __repr__(self) -> str:
        return f"<Collection {self.name}: {len(self.tensor_names)} names, patterns {self.include_regex}>"

    def matches(self, tensor: str) -> bool:
        """Whether a tensor belongs: it is listed, or a pattern matches its name."""
        return tensor in self.tensor_names or any(pattern.search(tensor) for pattern in self._patterns)


class _Collection(msgspec.Struct):
    name: str | None = None
    include_regex: Any = None
    tensor_names: Any = None
    reduction_config: Any = None
    save_config: Any = None
    save_histogram: Any = None


class _Document(msgspec.Struct):
    collections: dict[str, msgspec.Raw]
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


class CollectionReader:
    """Reads collections files and joins those of all workers.

    Attributes:
        collections: By name. Configurations are those of the first file; names are united.
        workers: The workers that wrote a file.
        num_workers: How many workers write, as the first file says; `None` if no file does.
        damage: What could not be read.
    """

    def __init__(self) -> None:
        self.collections: dict[str, Collection] = {}
        self.workers: set[str] = set()
        self.num_workers: int | None = None
        self.damage: list[Damage] = []

    def read(self, name: str, data: bytes) -> None:
        """Take in one file; files come in the order of their names."""
        matched = _FILE_NAME.fullmatch(name.rpartition("/")[2])
        if matched is None:
            return
        if not data:
            self.damage.append(Damage(name, None, "empty", "the file is empty"))
            return
        try:
            document = msgspec.json.decode(data, type=_Document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            kind = "cut" if "truncated" in str(error) else "not JSON"
            self.damage.append(Damage(name, None, kind, str(error)))
            return
        if matched[1]:
            self.workers.add(worker_of(matched[1]))
        count = document.meta.get("num_workers")
        if self.num_workers is None and isinstance(count, int) and not isinstance(count, bool) and count > 0:
            self.num_workers = count
        for collection_name, raw in document.collections.items():
            try:
                written = msgspec.json.decode(raw, type=_Collection)
            except msgspec.DecodeError as error:
                detail = f"collection {collection_name!r}: {error}"
                self.damage.append(Damage(name, None, "inconsistent", detail))
                continue
            self._add(name, collection_name, written)

    def _add(self, file: str, name: str, written: _Collection) -> None:
        names = _strings(written.tensor_names)
        known = self.collections.get(name)
        if known is not None:
            known.tensor_names |= set(names)
            return
        patterns = []
        for pattern in _strings(written.include_regex):
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                detail = f"collection {name!r}: {pattern!r} is no regular expression: {error}"
                self.damage.append(Damage(file, None, "inconsistent", detail))
            else:
                patterns.append(pattern)
        self.collections[name] = Collection(
            name,
            patterns,
            names,
            written.reduction_config if isinstance(written.reduction_config, dict) else None,
            _save_config(written.save_config),
            written.save_histogram if isinstance(written.save_histogram, bool) else None,
        )


def _strings(value: Any) -> list[str]:
    """The strings of a list; other writers put null or false where there is none."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _save_config(value: Any) -> dict[str, SaveConfig | None]:
    if not isinstance(value, dict):
        return {}
    configs: dict[str, SaveConfig | None] = {}
    for mode, config in value.items():
        try:
            configs[mode] = msgspec.convert(config, SaveConfig | None)
        except msgspec.ValidationError:
            configs[mode] = None
    return configs
