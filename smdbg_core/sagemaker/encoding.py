r"""Values as the strings of a request, and back.

One encoding per type, and every value that is written reads back as the same value:

| value | string |
| --- | --- |
| `None` | left out; `None` where the parameter's default is something else |
| `True`, `False` | `True`, `False` |
| whole number, also a float | `500` |
| other float | the shortest text that reads back: `1e-07`, `inf` |
| text | itself |
| list | comma-separated, `\,` for a comma in an item; a JSON array where that does not read back |
| mapping | JSON |
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from smdbg_core.conversion import convert
from smdbg_core.errors import ConfigError
from smdbg_core.parameters import Parameter

__all__ = ["decode_mapping", "encode", "encode_parameter", "is_nothing"]

_NOTHING = frozenset({"", "none", "null"})


def is_nothing(text: Any) -> bool:
    """Whether a value of a request stands for no value."""
    return text is None or (isinstance(text, str) and text.strip().casefold() in _NOTHING)


def encode(value: Any) -> str:
    """The string of one value.

    Raises:
        ConfigError: There is none: NaN, or a type that no request has.
    """
    if hasattr(value, "dtype"):  # NumPy scalars and arrays, without importing NumPy
        value = value.item() if getattr(value, "ndim", 0) == 0 else value.tolist()
    if value is None:
        return "None"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, Mapping):
        return _json(value)
    if isinstance(value, list | tuple):
        if any(isinstance(item, Mapping | list | tuple) for item in value):
            return _json(value)
        return ",".join(encode(item).replace(",", r"\,") for item in value)
    message = f"{value!r}: a {type(value).__name__} cannot be sent"
    raise ConfigError(message)


def encode_parameter(parameter: Parameter, value: Any) -> str | None:
    """The string of a parameter's value, `None` if it is to be left out.

    Args:
        parameter: Its declaration.
        value: The converted value.

    Raises:
        ConfigError: No string reads back as this value.
    """
    if value is None and parameter.default is None:
        return None
    candidates = [encode(value)]
    if isinstance(value, tuple):
        candidates.append(_json(value))
    for text in candidates:
        if convert(parameter.conversion, text) == convert(parameter.conversion, value):
            return text
    message = f"{parameter.name}={value!r} cannot be sent: SageMaker would read {candidates[0]!r} otherwise"
    raise ConfigError(message)


def decode_mapping(text: str) -> dict[str, Any]:
    """A nested mapping from JSON, or from the Python text that SDK 2 makes of a dict.

    Raises:
        ConfigError: It is neither.
    """
    value: Any
    try:
        value = json.loads(text)
    except ValueError:
        value = _literal(text)
    except RecursionError:
        value = None
    if not isinstance(value, dict) or any(type(key) is not str for key in value):
        shown = text if len(text) <= 60 else text[:57] + "..."
        message = f"{shown!r} is neither a JSON object nor a Python dict of literals"
        raise ConfigError(message)
    return value


def _literal(text: str) -> Any:
    """A Python literal, parsed and never run; `None` if it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _number(value: float) -> str:
    if value != value:
        message = "NaN cannot be sent: it compares with nothing"
        raise ConfigError(message)
    return repr(_whole(value))


def _json(value: Any) -> str:
    try:
        return json.dumps(_plain(value), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    except (TypeError, ValueError) as error:
        message = f"{value!r} cannot be sent as JSON: {error}"
        raise ConfigError(message) from None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _whole(value) if isinstance(value, float) else value


def _whole(value: float) -> float:
    """The number as an integer, where it is one and an integer says it exactly."""
    return int(value) if abs(value) < 1e16 and value % 1 == 0 else value
