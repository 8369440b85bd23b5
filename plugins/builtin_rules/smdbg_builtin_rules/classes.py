"""Class labels and predictions, as frameworks save them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["are_whole", "class_labels", "predicted_classes"]


_LARGEST = 2.0**53
"""Beyond this, floating-point numbers are no integers that anybody meant."""


def are_whole(values: NDArray[Any]) -> bool:
    """Whether every finite value is a whole number, as classes are."""
    if values.dtype.kind not in "fc":
        return True
    finite = values[np.isfinite(values)]
    return bool((finite == np.rint(finite)).all())


def class_labels(values: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Labels as integers, and how many were left out because they are none.

    Rows of a two-dimensional array that each sum to one are one-hot labels; anything else is flattened,
    and rounded to the nearest integer.
    """
    if values.ndim == 2 and values.shape[1] > 1 and _is_one_hot(values):
        return np.asarray(values.argmax(axis=-1), np.int64), 0
    classes, sound = _nearest(values)
    return classes[sound], int(sound.size - np.count_nonzero(sound))


def predicted_classes(values: NDArray[Any], *, argmax: bool) -> NDArray[np.int64]:
    """Predictions as integers: the position of the largest score, or the nearest integer; -1 for none."""
    if argmax and values.ndim:
        return np.asarray(values.reshape(-1, values.shape[-1]).argmax(axis=-1), np.int64)
    return _nearest(values)[0]


def _nearest(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Each element as the nearest integer, -1 where there is none; and where there is one."""
    flat = np.abs(values.reshape(-1)) if values.dtype.kind == "c" else values.reshape(-1)
    if flat.dtype.kind != "f":
        return flat.astype(np.int64), np.ones(flat.size, np.bool_)
    sound = np.abs(flat.astype(np.float64)) < _LARGEST
    classes = np.full(flat.size, -1, np.int64)
    classes[sound] = np.rint(flat[sound])
    return classes, sound


def _is_one_hot(values: NDArray[Any]) -> bool:
    return bool(((values == 0) | (values == 1)).all() and (values.sum(axis=1) == 1).all())
