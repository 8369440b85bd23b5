"""Judging the runs: the parameters of rules that judge nothing without any, and what is not measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from smdbg_core import evaluate

__all__ = ["PARAMETERS", "SETTINGS", "UNMEASURED", "judge"]

SETTINGS: tuple[str | None, ...] = (None, "recommended")
"""The presets that are measured; `None` for the defaults alone."""

PARAMETERS: dict[str, dict[str, Any]] = {
    "AllZero": {"collection_names": "weights,gradients"},
    "UnchangedTensor": {"collection_names": "weights"},
    "TensorVariance": {
        "tensor_regex": r"^(?!gradient).*weight",
        "min_threshold": 1e-10,
        "max_threshold": 100,
    },
}
"""For both measurements alike."""

UNMEASURED = {
    "SimilarAcrossRuns": "compares with a second run, which a single training has not",
    "StalledTrainingRule": "judges the clock between steps; the trainings here take a second",
    "CreateXgboostReport": "writes a report, and never fires",
}
"""Rules that took part without anything to find, and why."""


def judge(folder: Path, preset: str | None) -> frozenset[str]:
    """The rules that fire on a recorded run.

    With the defaults, Confusion refuses some labels of regressions; to refuse is not to fire.

    Raises:
        AssertionError: A rule failed with a preset.
    """
    report = evaluate(folder, parameters=PARAMETERS, preset=preset)
    failed = [f"{one.name}: {one.reason}" for one in report.outcomes if one.status == "error"]
    assert preset is None or not failed, failed
    return frozenset(one.name for one in report.fired)
