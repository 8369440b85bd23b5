"""Class labels and predictions, as frameworks save them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["class_labels", "predicted_classes"]


def class_labels(values: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Labels as integers, and how many were left out because they are not finite.

    Rows of a two-dimensional array that each sum to one are one-hot labels; anything else is flattened,
    and rounded to the nearest integer.
    """
    if values.ndim == 2 and values.shape[1] > 1 and _is_one_hot(values):
        return np.asarray(values.argmax(axis=-1), np.int64), 0
    flat = values.reshape(-1)
    if flat.dtype.kind != "f":
        return flat.astype(np.int64), 0
    finite = np.isfinite(flat)
    return np.rint(flat[finite]).astype(np.int64), int(flat.size - np.count_nonzero(finite))


def predicted_classes(values: NDArray[Any], *, argmax: bool) -> NDArray[np.int64]:
    """Predictions as integers: the position of the largest score, or the nearest integer; NaN is -1."""
    if argmax and values.ndim:
        return np.asarray(values.reshape(-1, values.shape[-1]).argmax(axis=-1), np.int64)
    flat = values.reshape(-1)
    if flat.dtype.kind != "f":
        return flat.astype(np.int64)
    classes = np.full(flat.size, -1, np.int64)
    finite = np.isfinite(flat)
    classes[finite] = np.rint(flat[finite])
    return classes


def _is_one_hot(values: NDArray[Any]) -> bool:
    return bool(((values == 0) | (values == 1)).all() and (values.sum(axis=1) == 1).all())
