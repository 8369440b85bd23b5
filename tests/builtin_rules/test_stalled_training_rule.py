"""StalledTrainingRule."""

from __future__ import annotations

from typing import Any

import pytest

from smdbg_builtin_rules.stalled_training_rule import StalledTrainingRule
from smdbg_core import Outcome
from smdbg_core.tally import Tally
from tests.builtin_rules.conftest import Judge


def test_a_long_silence_fires_at_the_step_before(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {n: {"loss": 1.0} for n in (0, 10, 20)}
    outcome = judge_at(judge, monkeypatch, steps, {0: 0.0, 10: 100.0, 20: 2100.0})
    (finding,) = outcome.findings
    assert (finding.step, finding.value, outcome.severity) == (10, 2000.0, "critical")


def test_a_silence_at_the_threshold_is_clean(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {n: {"loss": 1.0} for n in (0, 10)}
    assert judge_at(judge, monkeypatch, steps, {0: 0.0, 10: 1800.0}).status == "clean"


def test_one_step_is_not_evaluated(judge: Judge) -> None:
    assert (
        judge(StalledTrainingRule(), {0: {"loss": 1.0}}).reason == "too few saved steps: at most 1, needs 2"
    )


def test_silence_while_a_job_is_followed() -> None:
    rule = StalledTrainingRule(threshold=60)
    rule._tally = Tally()
    rule.start(None)  # type: ignore[arg-type]
    assert list(rule.idle(100.0)) == []
    assert list(rule.idle(160.0)) == []
    (finding,) = rule.idle(161.0)
    assert (finding.step, finding.value) == (-1, 61.0)


def judge_at(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, steps: dict[int, Any], times: dict[int, float]
) -> Outcome:
    """Judge a trial whose steps were written at given times."""
    now = iter([time for step in steps for time in [times[step]] * len(steps[step])])
    monkeypatch.setattr("smdbg_core.runs.trial.writer.time.time", lambda: next(now))
    return judge(StalledTrainingRule(), steps)
