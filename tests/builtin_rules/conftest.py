"""Judging a small trial with one rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest

from smdbg_core import Outcome, TensorRule, evaluate
from tests.builders import write_trial


class Judge(Protocol):
    """Writes a trial and judges it: `judge(rule, steps, mode="TRAIN")`."""

    def __call__(self, rule: TensorRule, steps: Mapping[int, Any], **options: Any) -> Outcome: ...


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes a trial into a folder of its own and returns the path."""
    numbers = count()
    return lambda steps, **options: write_trial(tmp_path / f"trial{next(numbers)}", steps, **options)


@pytest.fixture
def judge(write: Callable[..., str]) -> Judge:
    """The outcome of a rule on a trial made of its steps."""

    def run(rule: TensorRule, steps: Mapping[int, Any], **options: Any) -> Outcome:
        (outcome,) = evaluate(write(steps, **options), [rule]).outcomes
        assert outcome.status != "error", outcome.traceback
        return outcome

    return run


def fired_at(outcome: Outcome) -> list[int | None]:
    """Global steps at which episodes begin."""
    return sorted({finding.step for finding in outcome.findings})  # type: ignore[type-var]
