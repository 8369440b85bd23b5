"""Which parameters a training means to train."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["trained_parameters"]

_PREFIX = "gradient/"


def trained_parameters(names: Iterable[str]) -> frozenset[str]:
    """Names of the tensors whose gradients are saved.

    A layer that is frozen by intent needs no gradient, and so has none to save; one that was forgotten
    has one, and still does not move.
    """
    known = frozenset(names)
    return frozenset(name.removeprefix(_PREFIX) for name in known if name.startswith(_PREFIX)) & known
