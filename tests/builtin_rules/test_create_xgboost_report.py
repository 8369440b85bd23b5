"""CreateXgboostReport."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from smdbg_builtin_rules.create_xgboost_report import CreateXgboostReport
from smdbg_builtin_rules.xgboost_report import XgboostReport, build_report
from smdbg_core import evaluate, open_trial
from smdbg_core.runs.trial import Collection


def boosting(objective: str, labels: object, predictions: object) -> dict[int, dict[str, object]]:
    shared = {"labels": np.asarray(labels), "predictions": np.asarray(predictions)}
    first = {"hyperparameters/objective": [objective], "train-rmse": np.array([2.0])}
    importance = {
        f"feature_importance/weight/f{n}": np.array([share]) for n, share in ((2, 0.25), (10, 0.75))
    }
    return {0: shared | first, 5: shared | importance | {"train-rmse": np.array([1.0])}}


@pytest.fixture
def report(write: Callable[..., str]) -> Callable[..., XgboostReport]:
    metrics = Collection("metrics", ["^[a-z]+-"])

    def build(*case: object) -> XgboostReport:
        path = write(boosting(*case))  # type: ignore[arg-type]
        trial = open_trial(path)
        trial.collections["metrics"] = metrics
        return build_report(trial)

    return build


def test_binary_worked_example(report: Callable[..., XgboostReport]) -> None:
    found = report("binary:logistic", [0.0, 0, 1, 1], [0.2, 0.6, 0.7, 0.9])
    assert found.ConfusionMatrix is not None
    assert found.ConfusionMatrix["group_counts"] == [1, 1, 0, 2]
    stats = found.ConfusionMatrix["stats"]
    assert stats == {
        "accuracy": 0.75,
        "precision": pytest.approx(2 / 3),
        "recall": 1.0,
        "f1_score": pytest.approx(0.8),
    }
    assert found.ROCCurve is not None
    assert found.ROCCurve["area_under_curve"] == 1.0
    assert found.ResidualDistribution is not None
    assert sum(found.ResidualDistribution["hist"]) == 4
    assert found.ResidualDistribution["mu"] == 0.25
    assert found.IterativeClassAccuracy == {"steps": [0, 5], "accuracy": {"0": [0.5, 0.5], "1": [1.0, 1.0]}}
    assert found.LabelsDistribution == {
        "labels_and_samples": [
            {"labels": 0, "num_samples_per_label": 2},
            {"labels": 1, "num_samples_per_label": 2},
        ]
    }


def test_regression_worked_example(report: Callable[..., XgboostReport]) -> None:
    found = report("reg:squarederror", np.arange(10.0), np.arange(10) + 0.5)
    assert found.AbsoluteErrorPerLabelBin is not None
    assert all(series == [0.5, 0.5] for series in found.AbsoluteErrorPerLabelBin["errors"].values())
    assert set(found.AbsoluteErrorPerLabelBin["mean_errors"].values()) == {0.5}
    assert found.ResidualDistribution is not None
    assert (found.ResidualDistribution["mu"], found.ResidualDistribution["sigma"]) == (0.5, 0.0)
    assert found.ConfusionMatrix is None


def test_multiclass_scores(report: Callable[..., XgboostReport]) -> None:
    found = report("multi:softprob", [0, 1, 2], np.eye(3))
    assert found.EvaluationMetrics is not None
    assert found.EvaluationMetrics["overall_accuracy"] == 1.0
    assert found.ROCCurve is None


def test_other_objectives_have_the_sections_that_need_none(report: Callable[..., XgboostReport]) -> None:
    found = report("rank:pairwise", [0, 1], [0.1, 0.2])
    assert dict(found.sections()).keys() == {"LabelsDistribution", "LossData", "FeatureImportance"}
    assert any("rank:pairwise" in notice for notice in found.notices)
    assert found.FeatureImportance is not None
    assert [row["feature"] for row in found.FeatureImportance["features"]["weight"]] == ["f2", "f10"]
    assert found.FeatureImportance["features"]["weight"][1]["importance"] == 75
    assert found.LossData is not None
    assert [row["loss"] for row in found.LossData["category_loss_per_step"]] == [2.0, 1.0]


def test_predictions_that_are_not_finite_are_left_out_with_a_notice(
    report: Callable[..., XgboostReport],
) -> None:
    found = report("binary:logistic", [0.0, 1, 1], [0.2, np.nan, 0.7])
    assert found.ConfusionMatrix is not None
    assert sum(found.ConfusionMatrix["group_counts"]) == 2
    assert any("not finite" in notice for notice in found.notices)


def test_one_class_has_no_curve(report: Callable[..., XgboostReport]) -> None:
    found = report("binary:logistic", [1.0, 1], [0.2, 0.7])
    assert found.ROCCurve is None
    assert any("one class" in notice for notice in found.notices)


def test_files_are_strict_json_and_written_only_with_an_output_folder(
    write: Callable[..., str], tmp_path: Path
) -> None:
    path = write(boosting("binary:logistic", [0.0, 0, 1, 1], [0.2, 0.6, 0.7, 0.9]))
    (outcome,) = evaluate(path, [CreateXgboostReport()]).outcomes
    assert (outcome.status, outcome.artifacts) == ("clean", [])
    assert "no output folder" in str(outcome.reason)
    (outcome,) = evaluate(path, [CreateXgboostReport()], output=tmp_path / "out").outcomes
    assert "rule-output/CreateXgboostReport/xgboost-reports/ConfusionMatrix.json" in outcome.artifacts
    for name in outcome.artifacts:
        json.loads((tmp_path / "out" / name).read_text(), parse_constant=pytest.fail)


def test_nothing_to_report(write: Callable[..., str]) -> None:
    (outcome,) = evaluate(write({0: {"a": 1.0}}), [CreateXgboostReport()]).outcomes
    assert outcome.status == "not_evaluated"


def test_damage_is_a_notice(write: Callable[..., str]) -> None:
    path = write(boosting("binary:logistic", [0.0, 0, 1, 1], [0.2, 0.6, 0.7, 0.9]))
    (Path(path) / "events/000000000005/000000000005_worker_0.tfevents").write_bytes(b"")
    (outcome,) = evaluate(path, [CreateXgboostReport()]).outcomes
    assert outcome.status in ("clean", "not_evaluated"), outcome.traceback
    found = build_report(open_trial(path))
    assert any("labels at step 5 cannot be read" in notice for notice in found.notices)
