"""Parameters as the text that the service's report files carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["parameter_text"]


def parameter_text(values: Mapping[str, Any]) -> str:
    """One `name:value` on each line; whole numbers without a point."""
    return "\n".join(f"{name}:{_plain(value)}" for name, value in values.items())


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
