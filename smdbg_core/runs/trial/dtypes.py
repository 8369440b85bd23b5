"""Data types of event files and of NumPy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["BFLOAT16", "NAME_OF", "NUMBER_OF", "STORED_AS", "STRING", "widened"]

STRING: Final = 0
"""Number of string tensors: the field is left out. 7, the format's own number, is read as well."""

BFLOAT16: Final = 14

STORED_AS: Final[dict[int, np.dtype[Any]]] = {
    1: np.dtype("<f4"),
    2: np.dtype("<f8"),
    3: np.dtype("<i4"),
    4: np.dtype("u1"),
    5: np.dtype("<i2"),
    6: np.dtype("i1"),
    8: np.dtype("<c8"),
    9: np.dtype("<i8"),
    10: np.dtype("?"),
    BFLOAT16: np.dtype("<u2"),
    17: np.dtype("<u2"),
    18: np.dtype("<c16"),
    19: np.dtype("<f2"),
    22: np.dtype("<u4"),
    23: np.dtype("<u8"),
}
"""How elements lie in an event file, by the number of the type (protobuf enum DataType)."""

NUMBER_OF: Final = {
    dtype.newbyteorder("="): number for number, dtype in STORED_AS.items() if number != BFLOAT16
}
"""Number of a NumPy type; bfloat16 is no NumPy type."""


NAME_OF: Final = {
    number: "float32" if number == BFLOAT16 else dtype.name for number, dtype in STORED_AS.items()
}
"""Name of the NumPy type in which a reader gives the elements, by the number of the type."""


def widened(values: NDArray[Any], number: int) -> NDArray[Any]:
    """The values in a NumPy type: bfloat16 bits become the float32 of the same value."""
    if number != BFLOAT16:
        return values
    return (values.astype(np.uint32) << 16).view(np.float32)
