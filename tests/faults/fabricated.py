"""Data that no accident makes: claims of terabytes, bombs, paths that lead away, clocks that jump."""

from __future__ import annotations

import gzip
import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from smdbg_core.runs.trial.records import CONSTANT_FOOTER, header
from smdbg_core.testing import T0
from tests.faults.damages import TERABYTE, Case
from tests.faults.subjects import Subject

__all__ = ["HOSTILE", "fabricated"]

HOSTILE = "<b>\n</script>\x1b[2J\x07&\u202e\"'"
"""Markup, a line end, a command to a terminal, a change of the direction of writing, quotes."""

_MILLION = 1_000_000


def fabricated(trial: Subject, profiler: Subject) -> Iterator[Case]:
    """All cases of two subjects."""
    index = "index/000000000/000000000002_worker_0.json"
    yield from _spans(trial, index)
    yield from _shapes(trial, index)
    yield from _index_documents(trial, index)
    yield from _collections(trial)
    yield from _names(trial, index)
    yield from _bombs(profiler)
    yield from _clocks(profiler)


def _spans(trial: Subject, index: str) -> Iterator[Case]:
    """Where a record is said to lie."""
    event = _document(trial, index)["meta"]["event_file_name"]
    claims = {
        "an index offset past the end": (1 << 40, 100),
        "an index offset that overflows": ((1 << 63) - 1, (1 << 63) - 1),
        "an index offset below zero": (-5, 100),
        "an index length of terabytes": (0, 1 << 45),
        "an index length of nothing": (0, 0),
        "an index length below zero": (0, -1),
        "an index number of a thousand digits": (int("9" * 1000), 1),
    }
    for kind, (start, length) in claims.items():
        document = _document(trial, index)
        document["tensor_payload"][0] |= {"start_idx": start, "length": length}
        yield _case(kind, trial, index, _json(document), named_as=event)
    for path in ("../../outside.tfevents", "/etc/passwd", "events/../../x", "", "events", "a\0b", "x" * 5000):
        document = _document(trial, index)
        document["meta"]["event_file_name"] = path
        yield _case(
            "an event file out of the folder", trial, index, _json(document), named_as=f"damaged: {path}: "
        )
    document = _document(trial, index)
    document["meta"]["event_file_name"] = "elsewhere/environ"

    def away(file: Path) -> None:
        file.write_bytes(_json(document))
        (file.parents[2] / "elsewhere").symlink_to("/proc/self")

    yield Case(
        "an event file out of the folder", trial, index, away, 0, TERABYTE, named_as="elsewhere/environ"
    )


def _shapes(trial: Subject, index: str) -> Iterator[Case]:
    """What a record says of its own tensor, its framing being sound."""
    event = _document(trial, index)["meta"]["event_file_name"]
    name = _document(trial, index)["tensor_payload"][0]["tensorname"]
    shapes = {
        "a shape of terabytes": [1 << 20, 1 << 22],
        "a shape whose product overflows": [1 << 62, 1 << 62, 1 << 62],
        "a shape of a thousand dimensions": [1] * 1000,
        "a shape below zero": [(1 << 64) - 4],
    }
    for kind, shape in shapes.items():
        record = _record(name, shape, b"\0" * 16)
        yield _case(kind, trial, event, _with_first_record(trial, index, record), record_of=index)
    record = _record(name, [4], b"\0" * 16, size=1 << 50)
    yield _case(
        "a field of petabytes", trial, event, _with_first_record(trial, index, record), record_of=index
    )
    document = _document(trial, index)
    document["shape_payload"] = [
        {"tensorname": "huge", "originalname": "huge", "shape": [1 << 40, 1 << 40, 1 << 40]}
    ]
    yield Case("a saved shape of terabytes", trial, index, _writing(_json(document)), 0, 0, unseen=True)


def _index_documents(trial: Subject, index: str) -> Iterator[Case]:
    """JSON of absurd form."""
    keys = ", ".join(f'"k{number}": {number}' for number in range(_MILLION))
    original = trial.files[index].decode().strip()
    many = "{" + keys + ", " + original.removeprefix("{")
    yield Case("a million keys in one JSON", trial, index, _writing(many.encode()), 0, 0, unseen=True)
    document = _document(trial, index)
    entry = document["tensor_payload"][0]
    document["tensor_payload"] = [
        entry | {"tensorname": f"t{n}", "start_idx": 1 << 40} for n in range(20_000)
    ]
    event = document["meta"]["event_file_name"]
    yield _case("twenty thousand records past the end", trial, index, _json(document), named_as=event)
    for value in ([], {}, None, 1, "x", [1], [None], [{}], [[[]]], {"tensorname": 1}):
        for key in ("meta", "tensor_payload"):
            content = _json(_document(trial, index) | {key: value})
            # A step at which nothing was saved is a step.
            yield _case("JSON of another form", trial, index, content, unseen=key != "meta" and not value)
    for text in (b"null", b"[]", b"{}", b'"x"', b"\xef\xbb\xbf{}", b"\xff\xfe{\0}\0", b"{" * 5000, b"1e999"):
        yield _case("JSON of another form", trial, index, text)


def _collections(trial: Subject) -> Iterator[Case]:
    file = next(name for name in trial.files if name.startswith("collections"))
    nested: Any = []
    for _ in range(900):
        nested = [nested]
    contents = {
        "a million keys in one JSON": {f"c{number}": {} for number in range(_MILLION // 4)},
        "a pattern that is no pattern": {
            "a": {"include_regex": ["(" * 5000, "[", "a{99999999999}", None, 3]}
        },
        "deep nesting within a collection": {"a": {"reduction_config": nested, "save_config": nested}},
        "names of markup and control characters": {
            HOSTILE: {"include_regex": ["."], "tensor_names": [HOSTILE]}
        },
    }
    for kind, collections in contents.items():
        content = _json({"_meta": {"num_workers": 2}, "collections": collections})
        yield Case(kind, trial, file, _writing(content), 0, 0, unseen=True)
    for workers in (10**30, -1, True, "x", [], 1e308):
        content = _json({"_meta": {"num_workers": workers}, "collections": {}})
        yield Case("a number of workers that is none", trial, file, _writing(content), 0, 0, unseen=True)


def _names(trial: Subject, index: str) -> Iterator[Case]:
    """Names of files and tensors."""

    def renamed(worker: bytes) -> Callable[[Path], None]:
        def apply(file: Path) -> None:
            os.rename(file, os.path.join(os.fsencode(file.parent), b"000000000002_" + worker + b".json"))

        return apply

    plain = HOSTILE.replace("/", "_").encode()
    for worker in (plain, b"\xff\xfe\x80", b"w" * 200):
        yield Case("file names of any bytes", trial, index, renamed(worker), 0, TERABYTE, unseen=True)
    event = _document(trial, index)["meta"]["event_file_name"]
    for name in (HOSTILE.encode(), b"\xff\xfe", b"", b"x" * 10_000):
        content = _with_first_record(trial, index, _record(name, [4], b"\0" * 16))
        yield _case("names of markup and control characters", trial, event, content, record_of=index)
    document = _document(trial, index)
    document["tensor_payload"][0]["tensorname"] = HOSTILE
    yield _case("names of markup and control characters", trial, index, _json(document), unseen=True)
    document["tensor_payload"][0]["tensorname"] = "\ud800"
    yield _case("names of markup and control characters", trial, index, _json(document))


def _bombs(profiler: Subject) -> Iterator[Case]:
    """What unpacks to far more than it is."""
    packed = next(name for name in profiler.files if name.endswith(".gz"))
    start = b'{"traceEvents": ['
    event = b'{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "pid": 1},\n'
    contents = {
        "zeros": b"\0" * (1 << 29),
        "blanks": start + b" " * (1 << 29),
        "events": start + event * (1 << 22),
        "brackets": start + b"[" * (1 << 28),
        "a string": start + b'{"name": "' + b"x" * (1 << 28),
    }
    for content in contents.values():
        bomb = gzip.compress(content, 1, mtime=0)
        yield _case("a gzip bomb", profiler, packed, bomb, unseen=content is contents["events"])
    trace = (
        "framework/tensorflow/detailed_profiling/2023111422/000000000000/plugins/profile/1/host.trace.json.gz"
    )

    def tensorflow(file: Path) -> None:
        file.parent.mkdir(parents=True)
        file.write_bytes(gzip.compress(start + b" " * (1 << 29), 1, mtime=0))

    yield Case("a gzip bomb", profiler, trace, tensorflow, 0, 0)
    for file in profiler.files:
        if file.endswith((".json", ".gz")):
            yield _case(
                "a million keys in one JSON", profiler, file, _json({f"k{n}": n for n in range(_MILLION)})
            )
            yield _case("one line of a hundred megabytes", profiler, file, b'{"a": "' + b"x" * 100_000_000)


def _clocks(profiler: Subject) -> Iterator[Case]:
    """Times that jump."""
    system = next(name for name in profiler.files if name.startswith("system") and name.endswith(".json"))
    row = json.loads(profiler.files[system].splitlines()[0])
    for time in (
        0,
        -1,
        1e10,
        1e11,
        1e18,
        1e308,
        T0 - 10 * 365 * 86400,
        T0 + 10 * 365 * 86400,
        True,
        "x",
        None,
    ):
        line = _json(row | {"Timestamp": time}) + b"\n"
        yield Case(
            "clock jumps", profiler, system, _writing(line + profiler.files[system]), 0, 0, unseen=True
        )
    trace = next(name for name in profiler.files if name.startswith("framework") and name.endswith(".json"))
    for start, duration in (
        (1e18, 1),
        (-1e18, 1),
        (0, 1e18),
        (0, -5),
        (31e12, 1),
        (0, 31e12),
        (1e308, 1e308),
    ):
        event = _json({"name": "a", "pid": 1, "ph": "X", "ts": start, "dur": duration})
        content = profiler.files[trace].rstrip().removesuffix(b"]") + b",\n" + event + b"\n]"
        yield Case("clock jumps", profiler, trace, _writing(content), 0, 0, unseen=True)


def _case(
    kind: str,
    subject: Subject,
    file: str,
    content: bytes,
    *,
    unseen: bool = False,
    named_as: str | None = None,
    record_of: str | None = None,
) -> Case:
    """A file that holds something else; `record_of` is the index of an event file whose first record differs."""
    end = TERABYTE if record_of is None else _document(subject, record_of)["tensor_payload"][0]["length"]
    return Case(kind, subject, file, _writing(content), 0, end, unseen, named_as)


def _writing(content: bytes) -> Callable[[Path], None]:
    def apply(file: Path) -> None:
        file.write_bytes(content)

    return apply


def _document(subject: Subject, index: str) -> Any:
    return json.loads(subject.files[index])


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _with_first_record(trial: Subject, index: str, record: bytes) -> bytes:
    """The event file with its first record replaced, and padded or cut to the same length within its payload."""
    document = _document(trial, index)
    first = document["tensor_payload"][0]
    content = trial.files[document["meta"]["event_file_name"]]
    length = first["length"] - 16
    # An unknown field of the right size behind the message keeps the record's length.
    payload = record[:length] + _padding(length - len(record))
    return header(length) + payload + CONSTANT_FOOTER + content[first["length"] :]


def _padding(size: int) -> bytes:
    return b"" if size <= 0 else (b"\x7a" + _varint(size - 2) + b"\0" * (size - 2))[:size]


def _record(name: str | bytes, shape: list[int], content: bytes, size: int | None = None) -> bytes:
    """An event of one float32 tensor; `size` is what its content is said to take."""
    dimensions = b"".join(_field(2, b"\x08" + _varint(one)) for one in shape)
    elements = b"\x22" + _varint(len(content) if size is None else size) + content
    tensor = b"\x08\x01" + _field(2, dimensions) + elements
    value = _field(1, name.encode() if isinstance(name, str) else name) + _field(8, tensor)
    return b"\x09" + struct.pack("<d", 1.0) + b"\x10\x02" + _field(5, _field(1, value))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
