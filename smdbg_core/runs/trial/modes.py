"""Modes of training steps."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Mode"]


class Mode(StrEnum):
    """What a step was for; `GLOBAL` where the hook was told no mode."""

    TRAIN = "TRAIN"
    EVAL = "EVAL"
    PREDICT = "PREDICT"
    GLOBAL = "GLOBAL"

    @property
    def number(self) -> int:
        """The number in event files."""
        return _NUMBERS[self]


_NUMBERS = {Mode.TRAIN: 1, Mode.EVAL: 2, Mode.PREDICT: 3, Mode.GLOBAL: 4}
