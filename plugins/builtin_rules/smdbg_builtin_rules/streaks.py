"""Streaks: how many violations in a row each series of points has."""

from __future__ import annotations

import operator
from typing import Any

from smdbg_core import Finding, TensorRule, TensorView

__all__ = ["Streaks"]

_VIOLATES = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Streaks:
    """Lets a rule speak only of what lasts.

    Args:
        rule: The rule that judges.
        patience: How many violations in a row make a finding; with one, every violation is.
    """

    def __init__(self, rule: TensorRule, patience: int) -> None:
        self._rule = rule
        self._patience = patience
        self._counts: dict[tuple[str, str, str, str], int] = {}

    def judge(
        self,
        tensor: TensorView,
        statistic: str,
        value: float,
        comparison: str,
        limit: float,
        *,
        non_finite: int | None = None,
        **options: Any,
    ) -> tuple[Finding, ...]:
        """As `Rule.judge`; a violation that does not last yet is a clean point."""
        if self._patience > 1:
            key = tensor.name, tensor.worker, tensor.mode, f"{statistic} {comparison}"
            unsure = bool(tensor.non_finite if non_finite is None else non_finite)
            violates = not unsure and _VIOLATES[comparison](value, limit)
            streak = self._counts[key] = self._counts.get(key, 0) + 1 if violates else 0
            if 0 < streak < self._patience:
                return self._rule.judge(
                    tensor, f"{statistic}_in_a_row", streak, ">=", self._patience, non_finite=non_finite
                )
        return self._rule.judge(tensor, statistic, value, comparison, limit, non_finite=non_finite, **options)
