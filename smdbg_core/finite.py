"""Plain data without the numbers and characters that JSON lacks."""

from __future__ import annotations

import math
from typing import Any

from smdbg_core.strict_text import strict_text

__all__ = ["finite"]


def finite(value: Any) -> Any:
    """The value with `"nan"`, `"inf"` and `"-inf"` for the numbers that JSON lacks, and strict texts."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return strict_text(value)
    if isinstance(value, dict):
        return {
            strict_text(key) if isinstance(key, str) else key: finite(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value
