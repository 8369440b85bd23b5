"""Modes and states of steps, as smdebug names them."""

from __future__ import annotations

from enum import Enum

from smdbg_core.runs.trial import Mode

__all__ = ["ModeKeys", "StepState", "mode_keys", "our_mode"]


class ModeKeys(Enum):
    """What a step was for."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4


class StepState(Enum):
    """Whether a step can be read."""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


def our_mode(mode: ModeKeys | str) -> str | None:
    """The mode as trials know it; `None` stands for global steps."""
    name = mode.name if isinstance(mode, ModeKeys) else str(mode).upper()
    return None if name == "GLOBAL" else name


def mode_keys(mode: Mode) -> ModeKeys:
    """The mode as smdebug knows it."""
    return ModeKeys[mode.value]
