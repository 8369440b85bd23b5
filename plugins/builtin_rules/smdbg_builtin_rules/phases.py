"""Phases: the mean loss of each stretch of training or evaluation steps."""

from __future__ import annotations

import math

__all__ = ["VALIDATION_PREFIXES", "Phase", "first_scale", "is_increasing", "is_share", "metric_of", "splits"]

VALIDATION_PREFIXES = ("validation", "eval", "valid", "test")
"""What evaluation sets of XGBoost are called, the most usual first."""

_INCREASING = ("auc", "map", "aucpr", "ndcg", "accuracy")


_SHARES = ("error", "merror")
"""Shares of wrong predictions: they begin where the first tree has led them, which may be near zero."""

_GUESSING = 0.5


class Phase:
    """A running mean."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin a new phase."""
        self._sum = 0.0
        self._count = 0

    def add(self, loss: float) -> None:
        """Take in the loss of a step; NaN and infinities make the mean what they are."""
        self._sum += loss
        self._count += 1

    def __bool__(self) -> bool:
        return self._count > 0

    @property
    def mean(self) -> float:
        """Mean loss; NaN without any step."""
        return self._sum / self._count if self._count else math.nan


def metric_of(name: str) -> tuple[str, str] | None:
    """Evaluation set and metric of an XGBoost tensor such as `validation-rmse`, `None` for other names."""
    split, dash, metric = name.partition("-")
    return (split, metric) if dash and split and metric else None


def is_increasing(metric: str) -> bool:
    """Whether a metric is better when it is larger, and so is no loss; `ndcg@5` is `ndcg`."""
    return metric.partition("@")[0] in _INCREASING


def is_share(name: str) -> bool:
    """Whether an XGBoost tensor is a share of wrong predictions; `train-error@0.7` is one."""
    parts = metric_of(name)
    return parts is not None and parts[1].partition("@")[0] in _SHARES


def first_scale(name: str, first: float) -> float:
    """What changes of a loss are measured by: its first value, or, of shares, at least what guessing gets."""
    return max(abs(first), _GUESSING) if is_share(name) else abs(first)


def splits(names: list[str]) -> dict[str, tuple[str, str]]:
    """By metric, the training and the validation tensor, where both are there and it is one to minimise."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        parts = metric_of(name)
        if parts is not None:
            found.setdefault(parts[1], {})[parts[0]] = name
    pairs = {}
    for metric, by_split in found.items():
        validation = next((by_split[prefix] for prefix in VALIDATION_PREFIXES if prefix in by_split), None)
        if "train" in by_split and validation is not None and not is_increasing(metric):
            pairs[metric] = by_split["train"], validation
    return pairs
