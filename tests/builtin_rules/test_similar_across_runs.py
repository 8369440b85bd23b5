"""SimilarAcrossRuns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from smdbg_builtin_rules.similar_across_runs import SimilarAcrossRuns
from smdbg_core import RuleConfig, evaluate
from tests.builtin_rules.conftest import Judge


def test_worked_examples(judge: Judge, write: Callable[..., str]) -> None:
    other = write({0: {"w": np.array([1.0, 2.0])}})
    changed = write({0: {"w": np.array([1.0, 2.001])}})
    steps = {0: {"w": np.array([1.0, 2.0])}, 5: {"w": np.array([9.0, 9.0])}}
    same = judge(SimilarAcrossRuns(other_trials=other), steps)
    assert same.status == "clean"
    assert same.coverage.skipped == {"not in the other runs at this step": 1}
    (finding,) = judge(SimilarAcrossRuns(other_trial=changed), steps).findings
    assert (finding.step, finding.value) == (0, 1.0)
    assert changed in finding.message
    assert judge(SimilarAcrossRuns(other_trial=changed, rtol=0.01), steps).status == "clean"


def test_several_runs(judge: Judge, write: Callable[..., str]) -> None:
    runs = [write({0: {"w": np.array([value])}}) for value in (1.0, 2.0)]
    outcome = judge(
        SimilarAcrossRuns(other_trial_0=runs[0], other_trial_1=runs[1]), {0: {"w": np.array([1.0])}}
    )
    assert outcome.coverage.points == 2
    assert outcome.status == "fired"


def test_nan_equals_nan_and_words_are_compared(judge: Judge, write: Callable[..., str]) -> None:
    other = write({0: {"w": np.array([np.nan]), "s": ["a"]}})
    assert (
        judge(SimilarAcrossRuns(other_trials=other), {0: {"w": np.array([np.nan]), "s": ["a"]}}).status
        == "clean"
    )
    assert (
        judge(SimilarAcrossRuns(other_trials=other), {0: {"w": np.array([np.nan]), "s": ["b"]}}).status
        == "fired"
    )


def test_modes_are_aligned_not_global_steps(judge: Judge, write: Callable[..., str]) -> None:
    other = write({0: ("EVAL", {"w": 5.0}), 1: ("TRAIN", {"w": 1.0})})
    assert judge(SimilarAcrossRuns(other_trials=other), {0: ("TRAIN", {"w": 1.0})}).status == "clean"


def test_other_runs_are_needed_and_must_be_there(tmp_path: Path, write: Callable[..., str]) -> None:
    assert SimilarAcrossRuns().missing() == (("other_trials",),)
    (outcome,) = evaluate(
        write({0: {"w": 1.0}}), [SimilarAcrossRuns(other_trials=str(tmp_path / "no"))]
    ).outcomes
    assert outcome.status == "error"
    assert "no such folder" in str(outcome.reason)


def test_nothing_in_common_is_not_evaluated(judge: Judge, write: Callable[..., str]) -> None:
    assert (
        judge(SimilarAcrossRuns(other_trials=write({0: {"v": 1.0}})), {0: {"w": 1.0}}).status
        == "not_evaluated"
    )


def test_two_instances_have_runs_of_their_own(write: Callable[..., str]) -> None:
    same, other = write({0: {"w": 1.0}}), write({0: {"w": 2.0}})
    rules = [
        RuleConfig("SimilarAcrossRuns", name, {"other_trials": path})
        for name, path in (("a", same), ("b", other))
    ]
    report = evaluate(write({0: {"w": 1.0}}), rules)
    assert [(one.name, one.status) for one in report.outcomes] == [("a", "clean"), ("b", "fired")]
