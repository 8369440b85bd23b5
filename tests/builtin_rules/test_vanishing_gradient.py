"""VanishingGradient."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.vanishing_gradient import VanishingGradient
from tests.builtin_rules.conftest import Judge

SMALL = np.array([1e-8, -1e-8])


def test_fires_below_the_threshold_and_names_the_tensor(judge: Judge) -> None:
    outcome = judge(
        VanishingGradient(), {0: {"gradient/a": SMALL, "gradient/b": np.array([0.1])}}, mode="TRAIN"
    )
    (finding,) = outcome.findings
    assert (finding.subject, finding.step, finding.mode) == ("gradient/a", 0, "TRAIN")
    assert finding.value == pytest.approx(1e-8)
    assert (finding.comparison, finding.limit, finding.count) == ("<", 1e-7, 1)


def test_a_mean_at_the_threshold_is_clean(judge: Judge) -> None:
    outcome = judge(VanishingGradient(), {0: {"gradient/a": np.array([1e-7, 1e-7])}})
    assert outcome.status == "clean"
    assert outcome.closest is not None
    assert outcome.closest.value == pytest.approx(1e-7)


def test_no_gradients_are_not_evaluated(judge: Judge) -> None:
    outcome = judge(VanishingGradient(), {0: {"a.weight": SMALL}})
    assert outcome.status == "not_evaluated"
    assert "nothing matched collection gradients" in str(outcome.reason)
    assert "a.weight" in str(outcome.reason)


def test_saved_reductions_suffice(judge: Judge) -> None:
    outcome = judge(VanishingGradient(), {0: {"gradient/a": SMALL}}, raw=False, reductions=("abs_mean",))
    assert outcome.status == "fired"
    other = judge(VanishingGradient(), {0: {"gradient/a": SMALL}}, raw=False, reductions=("l1",))
    assert (other.status, other.reason) == ("not_evaluated", "raw value not saved (1 point)")


def test_non_finite_gradients_are_indeterminate(judge: Judge) -> None:
    outcome = judge(
        VanishingGradient(), {0: {"gradient/a": np.array([np.nan, 1e-9])}, 1: {"gradient/a": np.ones(2)}}
    )
    assert outcome.status == "clean"
    assert (outcome.coverage.points, outcome.coverage.non_finite) == (2, 1)
    alone = judge(VanishingGradient(), {0: {"gradient/a": np.array([np.nan, 1e-9])}})
    assert alone.status == "not_evaluated"


def test_every_worker_is_judged(judge: Judge) -> None:
    outcome = judge(VanishingGradient(), {0: {"gradient/a": SMALL}}, workers=("worker_0", "worker_1"))
    assert [finding.worker for finding in outcome.findings] == ["worker_0", "worker_1"]


def test_a_clean_point_ends_an_episode(judge: Judge) -> None:
    steps = {n: {"gradient/a": SMALL if n != 2 else np.ones(2)} for n in range(5)}
    outcome = judge(VanishingGradient(), steps)
    assert [(f.step, f.last_step, f.count) for f in outcome.findings] == [(0, 1, 2), (3, 4, 2)]


@pytest.mark.parametrize(
    "name", ["gradient/Net_fc1.weight", "gradients/dense/kernelGrad", "gradient/conv0_weight"]
)
def test_names_of_frameworks(judge: Judge, name: str) -> None:
    assert judge(VanishingGradient(), {0: {name: SMALL}}).status == "fired"


@pytest.mark.parametrize(("first", "status"), [(0.9e-4, "fired"), (1.1e-4, "clean")])
def test_a_share_of_the_largest_gradient(judge: Judge, first: float, status: str) -> None:
    steps = {0: {"gradient/a": np.array([first]), "gradient/b": np.array([1.0])}}
    outcome = judge(VanishingGradient(ratio_threshold=1e-4), steps)
    assert outcome.status == status
    assert judge(VanishingGradient(), steps).status == "clean"
    if outcome.findings:
        assert (outcome.findings[0].subject, outcome.findings[0].statistic) == (
            "gradient/a",
            "share_of_largest",
        )


@pytest.mark.parametrize(("small", "status"), [(3, "fired"), (2, "clean")])
def test_patience_waits_for_a_streak(judge: Judge, small: int, status: str) -> None:
    steps = {n: ("TRAIN", {"gradient/a": SMALL if n < small else np.ones(2)}) for n in range(5)}
    assert judge(VanishingGradient(patience=3), steps).status == status


def test_indeterminate_points_stay_indeterminate_under_patience(judge: Judge) -> None:
    steps = {n: {"gradient/a": np.array([np.nan, 1e-9])} for n in range(4)}
    assert judge(VanishingGradient(patience=2), steps).status == "not_evaluated"
