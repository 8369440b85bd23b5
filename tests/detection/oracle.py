"""The oracle: what a run is, from its final score and what was injected; it knows no rule."""

from __future__ import annotations

__all__ = ["BAR", "HARM", "is_faulty", "is_healthy"]

BAR = 0.6
"""A healthy run gets at least this far from chance to perfect (mean accuracy over classes, or R²)."""

HARM = 0.1
"""A harmful fault costs at least so much of that."""


def is_healthy(score: float) -> bool:
    """Whether a run without any injection ended well."""
    return score >= BAR


def is_faulty(score: float, twin: float, *, harms: bool) -> bool:
    """Whether an injection made a faulty run.

    Args:
        score: Of the run.
        twin: Score of the same recipe with the same seed and nothing injected.
        harms: Whether the fault shows in the score; otherwise it is there because it was injected.
    """
    return is_healthy(twin) and (not harms or not score > twin - HARM)
