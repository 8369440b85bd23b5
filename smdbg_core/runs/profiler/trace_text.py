"""The text of a Chrome trace, `{..., "traceEvents": [{...}, ...], ...}`, decoded a piece at a time."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from smdbg_core.runs.damage import Damage
from smdbg_core.storage import File

__all__ = ["TraceText"]

Row = TypeVar("Row")

_BLOCK: Final = 1 << 20
_LONGEST: Final = 1 << 24
"""Bytes that one event takes at most."""

_RATIO: Final = 200
_LEAST: Final = 1 << 26
"""Traces shrink to a tenth or a twentieth; what claims to unpack to far more is an attack."""

_EVENTS = re.compile(rb'"traceEvents"\s{0,64}:\s{0,64}\[')
_BORDER = re.compile(rb"\}\s{0,64},\s{0,64}\{")
_SEPARATORS = re.compile(rb"[, \n\r\t]*")
_BLANK: Final = b", \n\r\t"
_TRIES: Final = 8
"""Borders to try, or to look past within one event, before something must be broken."""

_PATIENCE: Final = 1 << 22
"""Bytes in which a true border must appear."""

_ENDS: Final = 64

_FAILED = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


class TraceText:
    """The text of one trace, plain or gzipped, read once from its beginning.

    Events are decoded in blocks that end where one event ends. The border is guessed from the
    characters there and proven by decoding: a wrong one, in a string or in a nested object, leaves
    something open.

    Args:
        name: Of the file, for what is said about damage.
        file: The file.

    Attributes:
        damage: What could not be read. Offsets are those of the unpacked text.
    """

    def __init__(self, name: str, file: File) -> None:
        self.damage: list[Damage] = []
        self._name = name
        self._blocks = self._unpacked(file) if file.read(0, 2) == b"\x1f\x8b" else self._plain(file)
        self._pending = b""
        self._offset = 0

    def start(self, longest: int) -> tuple[bytes, int | None]:
        """What has been read to find the events, and where they begin in it.

        Args:
            longest: Bytes to search; `None` is the place if there is no `traceEvents` in them.
        """
        content = b""
        for block in self._blocks:
            content += block
            found = _EVENTS.search(content)
            if found is not None and (len(content) >= found.end() + 4096 or len(block) < 4096):
                break
            if len(content) > longest:
                break
        found = _EVENTS.search(content)
        if found is None:
            return content, None
        self._pending, self._offset = content[found.end() :], found.end()
        return content, found.end()

    def rows(
        self, many: msgspec.json.Decoder[list[Row]], one: msgspec.json.Decoder[Row]
    ) -> Iterator[list[Row]]:
        """The events, in blocks, after `start` found where they begin."""
        for block in self._blocks:
            self._pending += block
            rows = self._whole_events(many, one)
            if rows:
                yield rows
            if len(self._pending) > _LONGEST:
                text = f"an event of more than {_LONGEST} bytes"
                self.damage.append(Damage(self._name, self._offset, "length", text))
                if self._closing(one) is not None:
                    yield self._last_events(many, one)
                return
        yield self._last_events(many, one)

    def _whole_events(
        self, many: msgspec.json.Decoder[list[Row]], one: msgspec.json.Decoder[Row]
    ) -> list[Row]:
        """All events that have been read to their end, but for the last one."""
        end, widest = len(self._pending), 0
        for _ in range(_TRIES):
            end = self._border(end)
            if not end:
                break
            widest = widest or end
            try:
                rows = many.decode(b"[" + self._pending[:end] + b"]")
            except _FAILED as error:
                if "truncated" not in str(error):
                    break
            else:
                self._advance(end)
                return rows
        else:
            # No border yet, or something is broken that leaves all behind it open: more text tells.
            if len(self._pending) < _PATIENCE:
                return []
        if not end and len(self._pending) < _PATIENCE:
            return []
        # Without any border there is nothing to give up: this is blanks, or one long event.
        rows, end = self._one_by_one(self._pending[:widest], one) if widest else ([], 0)
        self._advance(end)
        return rows

    def _last_events(
        self, many: msgspec.json.Decoder[list[Row]], one: msgspec.json.Decoder[Row]
    ) -> list[Row]:
        """What stands before the bracket that closes the array; it may be missing where a file was cut."""
        end = len(self._pending)
        for _ in range(_ENDS):
            end = self._pending.rfind(b"]", 0, end)
            if end < 0:
                break
            try:
                return many.decode(b"[" + self._pending[:end].rstrip().removesuffix(b",") + b"]")
            except _FAILED:
                continue
        known = len(self.damage)
        closing = self._closing(one)
        rows, _ = self._one_by_one(self._pending[:closing].rstrip(_BLANK), one, last=True)
        if closing is None and len(self.damage) == known:
            self._not_closed(self._offset + len(self._pending))
        return rows

    def _closing(self, one: msgspec.json.Decoder[Row]) -> int | None:
        """Where the array ends, although something in it is broken: an event that is whole stands before."""
        end = len(self._pending)
        for _ in range(_ENDS):
            end = self._pending.rfind(b"]", 0, end)
            if end < 0:
                break
            try:
                one.decode(self._pending[self._border(end) : end].strip(_BLANK))
            except _FAILED:
                continue
            return end
        return None

    def _border(self, end: int) -> int:
        """Where the last event before `end` ends that another one follows; 0 if there is none."""
        while end > 0:
            end = self._pending.rfind(b"}", 0, end)
            if end >= 0 and _BORDER.match(self._pending, end):
                return end + 1
        return 0

    def _advance(self, end: int) -> None:
        """Go on behind `end`, and behind the comma there."""
        end = _SEPARATORS.match(self._pending, end).end()  # type: ignore[union-attr]
        self._pending = self._pending[end:]
        self._offset += end

    def _one_by_one(
        self, text: bytes, one: msgspec.json.Decoder[Row], *, last: bool = False
    ) -> tuple[list[Row], int]:
        """Events one at a time: what cannot be read costs itself only.

        Args:
            text: Events and what may be events.
            one: Decodes an event.
            last: Whether nothing comes behind the text; else an event that it leaves open is left.

        Returns:
            The events, and where they end.
        """
        borders = [(found.start() + 1, found.end() - 1) for found in _BORDER.finditer(text)]
        starts = [0, *(start for _, start in borders)]
        ends = [*(end for end, _ in borders), len(text)]
        rows: list[Row] = []
        index = 0
        while index < len(starts):
            complaint: Exception | None = None
            # A border within a nested object leaves the event open: it goes on behind that border.
            for upto in range(index, min(index + _TRIES, len(ends))):
                try:
                    rows.append(one.decode(text[starts[index] : ends[upto]]))
                except _FAILED as error:
                    complaint = complaint or error
                    if "truncated" not in str(error):
                        break
                    if upto + 1 == len(ends) and not last and index:
                        return rows, starts[index]
                else:
                    complaint, index = None, upto
                    break
            if complaint is not None:
                self._complain(self._offset + starts[index], text[starts[index] : ends[index]], complaint)
            index += 1
        return rows, len(text)

    def _complain(self, offset: int, text: bytes, error: Exception) -> None:
        if not text.strip(b" \r\n\t,]}"):
            if b"]" not in text:
                self._not_closed(offset)
            return
        if isinstance(error, msgspec.ValidationError):
            kind = "row"
        else:
            kind = "cut" if "truncated" in str(error) else "not JSON"
        self.damage.append(Damage(self._name, offset, kind, str(error)))

    def _not_closed(self, offset: int) -> None:
        self.damage.append(Damage(self._name, offset, "cut", "the array of events is not closed"))

    def _plain(self, file: File) -> Iterator[bytes]:
        offset = 0
        while offset < file.size:
            block = file.read(offset, _BLOCK)
            if not block:
                return  # shorter than it was when it was opened
            offset += len(block)
            yield block

    def _unpacked(self, file: File) -> Iterator[bytes]:
        limit = max(_LEAST, _RATIO * file.size)
        unpacker = zlib.decompressobj(wbits=31)
        total = offset = 0
        packed = b""
        try:
            while True:
                if not packed and offset < file.size:
                    packed = file.read(offset, _BLOCK)
                    offset += len(packed)
                block = unpacker.decompress(packed, _BLOCK)
                total += len(block)
                if block:
                    yield block
                if total > limit:
                    text = f"unpacks to more than {limit} bytes"
                    self.damage.append(Damage(self._name, None, "length", text))
                    return
                packed = unpacker.unconsumed_tail
                if unpacker.eof:
                    packed = unpacker.unused_data
                    if not packed and offset >= file.size:
                        return
                    unpacker = zlib.decompressobj(wbits=31)  # gzip files may be joined
                elif not packed and not block and offset >= file.size:
                    text = f"the compressed data ends at byte {offset} of the file before it is complete"
                    self.damage.append(Damage(self._name, None, "cut", text))
                    return
        except zlib.error as error:
            text = f"{error}, about byte {offset} of the file"
            self.damage.append(Damage(self._name, None, "not gzip", text))
