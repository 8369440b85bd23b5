"""Which framework wrote a trial, as far as its names tell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["framework_of"]

_MARKS: Final = (
    (
        "xgboost",
        re.compile(
            r"^(trees|feature_importance|hyperparameters|average_shap|full_shap)/|^(train|validation)-\w"
        ),
    ),
    ("tensorflow", re.compile(r"^gradients/|/weights/.*:\d+$|/(inputs|outputs)(/|$)")),
    (
        "pytorch",
        re.compile(r"^gradient/.*\.(weight|bias)$|^[A-Z]\w*_[\w.]+\.(weight|bias)$|Loss_output_\d+$"),
    ),
    ("mxnet", re.compile(r"^gradient/\w+_(weight|bias|gamma|beta)$|^\w+\d_(weight|bias)$")),
)


def framework_of(names: Iterable[str]) -> str | None:
    """Name of the framework whose hook gives tensors such names, `None` if no name is telling.

    The naming schemes are those of the hooks of smdebug 1.0.34.
    """
    names = list(names)
    for framework, mark in _MARKS:
        if any(mark.search(name) for name in names):
            return framework
    return None
