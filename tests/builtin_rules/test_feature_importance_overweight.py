"""FeatureImportanceOverweight."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.feature_importance_overweight import FeatureImportanceOverweight
from tests.builtin_rules.conftest import Judge


def importances(*values: float, kind: str = "weight") -> dict[int, dict[str, object]]:
    return {0: {f"feature_importance/{kind}/f{n}": np.array([value]) for n, value in enumerate(values)}}


@pytest.mark.parametrize(
    ("values", "parameters", "status"),
    [
        ((0.5, 0.25, 0.15, 0.1), {}, "fired"),
        ((0.1,) * 10, {}, "clean"),
        ((0.5, 0.125, 0.125, 0.125, 0.125), {"threshold": 0.75}, "clean"),
        ((0.5, 0.5), {}, "fired"),
        ((5.0, 2.5, 1.5, 1.0), {"nfeatures": 1, "threshold": 0.5}, "clean"),
    ],
)
def test_share_of_the_top(
    judge: Judge, values: tuple[float, ...], parameters: dict[str, float], status: str
) -> None:
    assert judge(FeatureImportanceOverweight(**parameters), importances(*values)).status == status


def test_findings_name_the_features(judge: Judge) -> None:
    (finding,) = judge(FeatureImportanceOverweight(), importances(0.1, 0.6, 0.3)).findings
    assert finding.subject == "feature_importance/weight"
    assert finding.message.startswith("f1, f2, f0 hold 1")


def test_types_are_judged_apart(judge: Judge) -> None:
    steps = importances(*(0.1,) * 10)
    steps[0] |= importances(0.9, 0.1, kind="gain")[0]
    assert judge(FeatureImportanceOverweight(), steps).status == "clean"
    outcome = judge(FeatureImportanceOverweight(tensor_regex=".*feature_importance/"), steps)
    assert {finding.subject for finding in outcome.findings} == {"feature_importance/gain"}


def test_not_evaluated(judge: Judge) -> None:
    assert judge(FeatureImportanceOverweight(), importances(0.0, 0.0)).status == "not_evaluated"
    assert judge(FeatureImportanceOverweight(), {0: {"train-rmse": 1.0}}).status == "not_evaluated"


def test_the_end_can_be_judged_alone(judge: Judge) -> None:
    steps = {0: importances(0.5, 0.5)[0], 1: importances(*(0.1,) * 10)[0]}
    assert judge(FeatureImportanceOverweight(), steps).status == "fired"
    assert judge(FeatureImportanceOverweight(at_end=True), steps).status == "clean"
    outcome = judge(FeatureImportanceOverweight(at_end=True), {0: steps[1], 1: steps[0]})
    assert [finding.step for finding in outcome.findings] == [1]
