"""Conversion of one given value into what a parameter declares.

Values come natively from Python, and as strings from the command line, configuration files and
request JSON. Both take one path: a pre-pass over the text, then the declared type, then the bounds.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Literal, NamedTuple

from smdbg_core.declaration import Conversion, describe

__all__ = ["Converted", "convert"]

_BLANKS = " \t"
_NONE = frozenset({"", "none", "null"})
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Converted(NamedTuple):
    """A value, or why there is none."""

    value: Any
    kind: Literal["type", "value"] = "value"
    problem: str = ""


class _Problem(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, kind: Literal["type", "value"], text: str) -> None:
        self.kind: Literal["type", "value"] = kind
        self.text = text


def convert(conversion: Conversion, value: Any) -> Converted:
    r"""Convert a native value or text.

    Text is trimmed. `""`, `none` and `null` are no value where that is allowed, and the empty list.
    Lists are sequences, JSON arrays or comma-separated text in which `\,` is a comma. Booleans are
    not numbers, NaN is refused, whole floats such as `5.0` are integers.
    """
    exact = conversion.pattern is not None or conversion.check is not None
    value = _native(value, _BLANKS if exact else None)
    try:
        if value is None or (isinstance(value, str) and value.casefold() in _NONE):
            return Converted(_nothing(conversion, value))
        if conversion.many:
            items = _split(value) if isinstance(value, str) else value
            if not isinstance(items, list | tuple | set | frozenset):
                items = (items,)
            if isinstance(items, set | frozenset):
                items = sorted(items, key=str)
            return Converted(
                tuple(_convert_one(conversion, _native(item, _BLANKS if exact else None)) for item in items)
            )
        return Converted(_convert_one(conversion, value))
    except _Problem as problem:
        return Converted(None, problem.kind, f"{problem.text}; expected {describe(conversion)}")


def _native(value: Any, blanks: str | None) -> Any:
    if isinstance(value, str):
        return str(value).strip(blanks)
    if hasattr(value, "dtype"):  # NumPy scalars and arrays, without importing NumPy
        return value.item() if getattr(value, "ndim", 0) == 0 else value.tolist()
    return value


def _nothing(conversion: Conversion, value: Any) -> Any:
    if conversion.optional:
        return None
    if conversion.many:
        return ()
    if conversion.kind is str and value is not None and not conversion.choices:
        return _text(conversion, value)
    raise _Problem("value", "it needs a value (leave it out for the default)")


def _split(text: str) -> list[Any]:
    if text.startswith("["):
        try:
            items = json.loads(text)
        except ValueError:
            pass
        else:
            if isinstance(items, list):
                return items
    parts = [""]
    depth = 0
    characters = iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            parts[-1] += following if following == "," else character + following
            continue
        # A comma inside brackets belongs to a pattern such as `a{1,2}`.
        depth = max(0, depth + (character in "([{") - (character in ")]}"))
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _convert_one(conversion: Conversion, value: Any) -> Any:
    if conversion.kind is bool:
        return _boolean(value)
    if conversion.kind is str:
        return _text(conversion, value)
    number = _number(value)
    if conversion.kind is int:
        if isinstance(number, float):
            if not number.is_integer():
                raise _Problem("type", "not a whole number")
            number = int(number)
    else:
        number = _as_float(number)
    for sign, bound in conversion.bounds.items():
        within = {"gt": number > bound, "ge": number >= bound, "lt": number < bound, "le": number <= bound}
        if not within[sign]:
            raise _Problem("value", "out of range")
    return number


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        raise _Problem("value", "too large") from None


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.casefold() in _BOOLEANS:
        return _BOOLEANS[value.casefold()]
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise _Problem("type", "neither true nor false")


def _number(value: Any) -> int | float:
    if isinstance(value, bool):
        raise _Problem("type", "a boolean, not a number")
    if isinstance(value, str):
        try:
            # Underscores and other scripts' digits are Python's spelling of numbers, and nobody else's.
            plain = value if value.isascii() and "_" not in value else "?"
            value = int(plain) if re.fullmatch(r"[+-]?[0-9]+", plain) else float(plain)
        except ValueError:
            raise _Problem("type", "not a number") from None
    if not isinstance(value, int | float):
        raise _Problem("type", f"a {type(value).__name__}, not a number")
    if isinstance(value, float) and math.isnan(value):
        raise _Problem("value", "NaN compares with nothing")
    return value


def _text(conversion: Conversion, value: Any) -> str:
    if not isinstance(value, str):
        raise _Problem("type", f"a {type(value).__name__}, not text")
    if conversion.choices:
        by_folded = {choice.casefold(): choice for choice in conversion.choices}
        if value.casefold() not in by_folded:
            raise _Problem("value", "no such choice")
        return by_folded[value.casefold()]
    if conversion.format == "regex":
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            raise _Problem("value", f"not a regular expression ({error})") from None
    if conversion.pattern is not None or conversion.check is not None:
        _examine(conversion, value)
    return value


def _examine(conversion: Conversion, text: str) -> None:
    """Hold a text against its pattern and its check."""
    if text.splitlines() not in ([], [text]):
        raise _Problem("value", "it has a line break")
    if conversion.pattern is not None and not re.fullmatch(conversion.pattern, text, re.ASCII):
        raise _Problem("value", "not of that form")
    complaint = conversion.check(text) if conversion.check is not None else None
    if complaint:
        raise _Problem("value", complaint)
