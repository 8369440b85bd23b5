"""The training report of an XGBoost run: what it says, as data.

Sections, file names and field names are those of the report that SageMaker Debugger writes. Where its
template is wrong, the report is not: labels are counted at one step, accuracy by class is a share of the
class, and every section is of the same step.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from smdbg_builtin_rules.classes import class_labels, predicted_classes
from smdbg_core import DataError, Trial

__all__ = ["XgboostReport", "build_report"]

_BINS = 10
_CURVE_POINTS = 50
_IMPORTANCES = ("weight", "gain", "cover")
_FAMILIES = {
    "binary": "binary",
    "multi": "multiclass",
    "reg": "regression",
    "count": "regression",
    "survival": "regression",
}

Values = NDArray[Any]


class XgboostReport(msgspec.Struct, kw_only=True):
    """All sections; one that the run has no data for is `None`, and `notices` say why."""

    objective: str | None
    kind: str | None
    """`binary`, `multiclass`, `regression`, or `None` for other objectives."""

    plot_step: int | None
    """Step of labels, matrix, curve and residuals."""

    notices: list[str]
    LabelsDistribution: dict[str, Any] | None = None
    LossData: dict[str, Any] | None = None
    FeatureImportance: dict[str, Any] | None = None
    ConfusionMatrix: dict[str, Any] | None = None
    EvaluationMetrics: dict[str, Any] | None = None
    IterativeClassAccuracy: dict[str, Any] | None = None
    ROCCurve: dict[str, Any] | None = None
    ResidualDistribution: dict[str, Any] | None = None
    AbsoluteErrorPerLabelBin: dict[str, Any] | None = None

    def sections(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Name and data of the sections that there are."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name[0].isupper() and value is not None:
                yield name, value


def build_report(
    trial: Trial, plot_step: int | None = None, *, labels_all_steps: bool = False
) -> XgboostReport:
    """Compute the report from a trial alone.

    Args:
        trial: Saved by the XGBoost hook.
        plot_step: Step of the sections that are of one step; by default the last one with labels and
            predictions.
        labels_all_steps: Count labels at every saved step, as the service's template does.
    """
    return _Builder(trial, plot_step, labels_all_steps).report


class _Builder:
    def __init__(self, trial: Trial, plot_step: int | None, labels_all_steps: bool) -> None:
        self._trial = trial
        self._labels_all_steps = labels_all_steps
        self._notices: list[str] = []
        names = set(trial.tensor_names())
        objective = self._text("hyperparameters/objective") if "hyperparameters/objective" in names else None
        kind = _FAMILIES.get((objective or "").partition(":")[0])
        self._steps = self._judged_steps() if {"labels", "predictions"} <= names else []
        chosen = plot_step if plot_step is not None else (self._steps[-1] if self._steps else None)
        self.report = XgboostReport(objective=objective, kind=kind, plot_step=chosen, notices=self._notices)
        notice = self._notices.append
        if objective is None:
            notice("the objective was not saved (collection hyperparameters): some sections are missing")
        elif kind is None:
            notice(f"objective {objective} is no classification or regression: some sections are missing")
        if "labels" in names:
            self._add_labels()
        else:
            notice("labels were not saved: nothing can be said about predictions")
        self._add_losses()
        self._add_importances(names)
        if chosen is not None and chosen not in self._steps:
            notice(f"step {chosen} has no labels and predictions")
        elif chosen is not None and kind is not None:
            self._add_predictions(chosen, kind)
        elif "predictions" not in names:
            notice("predictions were not saved; they need a validation set")

    def _text(self, name: str) -> str | None:
        tensor = self._trial.tensor(name)
        values = self._read(name, tensor.steps()[0])
        return str(values.reshape(-1)[0]) if values is not None and values.size else None

    def _read(self, name: str, step: int) -> Values | None:
        """A saved value; one that cannot be read is a notice."""
        try:
            return self._trial.tensor(name).value(step)
        except DataError as error:
            notice = f"{name} at step {step} cannot be read: {error}"
            if notice not in self._notices:
                self._notices.append(notice)
            return None

    def _number(self, name: str, step: int) -> float | None:
        """A saved number, `None` where there is no finite one: JSON has no other."""
        values = self._read(name, step)
        number = float(values.reshape(-1)[0]) if values is not None and values.size else math.nan
        return number if math.isfinite(number) else None

    def _judged_steps(self) -> list[int]:
        predictions = set(self._trial.tensor("predictions").steps())
        return [step for step in self._trial.tensor("labels").steps() if step in predictions]

    def _add_labels(self) -> None:
        steps = self._trial.tensor("labels").steps()
        at = self.report.plot_step if self.report.plot_step in steps else steps[-1]
        read = [self._read("labels", step) for step in (steps if self._labels_all_steps else [at])]
        values = [one.reshape(-1) for one in read if one is not None]
        if not values:
            return
        labels = np.concatenate(values)
        if self.report.kind in ("binary", "multiclass"):
            labels = class_labels(labels)[0]
        unique, counts = np.unique(labels[np.isfinite(labels)], return_counts=True)
        rows = zip(unique.tolist(), counts.tolist(), strict=True)
        self.report.LabelsDistribution = {
            "labels_and_samples": [{"labels": label, "num_samples_per_label": count} for label, count in rows]
        }

    def _add_losses(self) -> None:
        rows = [
            {"steps": step, "loss": self._number(name, step), "category": name}
            for name in self._trial.tensor_names(collection="metrics")
            for step in self._trial.tensor(name).steps()
        ]
        if rows:
            self.report.LossData = {"category_loss_per_step": rows}
        else:
            self._notices.append("metrics were not saved: there is no loss over steps")

    def _add_importances(self, names: set[str]) -> None:
        features: dict[str, list[dict[str, Any]]] = {}
        for kind in _IMPORTANCES:
            prefix = f"feature_importance/{kind}/"
            mine = sorted((name for name in names if name.startswith(prefix)), key=_natural)
            steps = {name: self._trial.tensor(name).steps() for name in mine}
            last = max((saved[-1] for saved in steps.values()), default=-1)
            shares = {name: self._number(name, last) for name in mine if last in steps[name]}
            features[kind] = [
                {"feature": name.removeprefix(prefix), "importance": None if share is None else 100 * share}
                for name, share in shares.items()
            ]
        if any(features.values()):
            self.report.FeatureImportance = {"features": features}
        else:
            self._notices.append("feature importance was not saved")

    def _pair(self, step: int) -> tuple[Values, Values]:
        """Labels and predictions of a step; samples of which either is not finite are left out."""
        labels, predictions = self._read("labels", step), self._read("predictions", step)
        if labels is None or predictions is None:
            return np.empty(0), np.empty(0)
        labels = labels.reshape(-1)
        if len(predictions) == len(labels):
            finite = np.isfinite(labels) & np.isfinite(predictions.reshape(len(labels), -1)).all(axis=1)
            labels, predictions = labels[finite], predictions[finite]
        return labels, predictions

    def _add_predictions(self, step: int, kind: str) -> None:
        labels, predictions = self._pair(step)
        saved = self._read("labels", step)
        dropped = 0 if saved is None else saved.size - len(labels)
        if dropped:
            self._notices.append(f"{dropped} samples at step {step} are not finite and left out")
        if not len(labels) or len(labels) != len(predictions):
            self._notices.append(f"step {step} has {len(labels)} labels and {len(predictions)} predictions")
            return
        if kind == "regression":
            self._add_residuals(step, np.asarray(predictions.reshape(-1) - labels, np.float64))
            self._add_errors_by_bin(labels)
            return
        true, guessed = _classes(labels, predictions)
        self._add_matrix(true, guessed, kind)
        self._add_class_accuracy()
        if kind == "binary" and predictions.ndim == 1:
            self._add_roc(true, predictions)
        self._add_residuals(step, (guessed - true).astype(np.float64))

    def _add_matrix(self, true: Values, guessed: Values, kind: str) -> None:
        classes, matrix = _matrix(true, guessed)
        accuracy = float(np.trace(matrix) / matrix.sum())
        scores = _scores(matrix)
        stats = {"accuracy": accuracy}
        if kind == "binary" and 1 in classes:
            row = scores[classes.index(1)]
            stats |= {"precision": row["precision"], "recall": row["recall"], "f1_score": row["f1_score"]}
        self.report.ConfusionMatrix = {
            "group_labels": [f"{label}" for label in classes],
            "group_counts": matrix.reshape(-1).tolist(),
            "group_percentages": (matrix.reshape(-1) / matrix.sum()).tolist(),
            "stats": stats,
        }
        support = np.array([row["support"] for row in scores])
        macro = {
            key: float(np.mean([row[key] for row in scores])) for key in ("precision", "recall", "f1_score")
        }
        weighted = {
            key: float(np.average([row[key] for row in scores], weights=support))
            for key in ("precision", "recall", "f1_score")
        }
        self.report.EvaluationMetrics = {
            "overall_accuracy": accuracy,
            "classification_report": {
                str(label): row for label, row in zip(classes, scores, strict=True) if row["support"]
            },
            "micro_performance_metrics": dict.fromkeys(
                ("precision", "recall", "f1_score"), round(accuracy, 3)
            ),
            "macro_performance_metrics": {key: round(value, 3) for key, value in macro.items()},
            "weighted_performance_metrics": {key: round(value, 3) for key, value in weighted.items()},
        }

    def _add_class_accuracy(self) -> None:
        """Recall of each class at every step; `None` where a class has no samples."""
        by_step = []
        for step in self._steps:
            true, guessed = _classes(*self._pair(step))
            by_step.append(_matrix(true, guessed) if len(true) == len(guessed) else ([], np.empty((0, 0))))
        classes = sorted({label for labels, _ in by_step for label in labels})
        series: dict[str, list[float | None]] = {str(label): [] for label in classes}
        for labels, matrix in by_step:
            for label in classes:
                row = matrix[labels.index(label)] if label in labels else np.zeros(1)
                share = matrix[labels.index(label), labels.index(label)] / row.sum() if row.sum() else None
                series[str(label)].append(None if share is None else float(share))
        self.report.IterativeClassAccuracy = {"steps": self._steps, "accuracy": series}

    def _add_roc(self, true: Values, scores: Values) -> None:
        positives, negatives = int((true == 1).sum()), int((true != 1).sum())
        if not positives or not negatives:
            self._notices.append("labels are of one class: there is no ROC curve")
            return
        order = np.argsort(-scores, kind="stable")
        ranked, hits = scores[order], (true[order] == 1).astype(np.float64)
        last_of_value = np.r_[np.flatnonzero(np.diff(ranked)), len(ranked) - 1]
        found = np.cumsum(hits)[last_of_value]
        false = last_of_value + 1 - found
        tpr, fpr = np.r_[0.0, found / positives], np.r_[0.0, false / negatives]
        area = float(np.trapezoid(tpr, fpr))
        self.report.ROCCurve = {
            "false_positive_rate": fpr.tolist(),
            "true_positive_rate": tpr.tolist(),
            "thresholds": [float(ranked[0]) + 1, *ranked[last_of_value].astype(float).tolist()],
            "area_under_curve": round(area, 5),
        }
        if area < 0.6:
            self._notices.append(f"the area under the ROC curve is {area:.3f}: hardly better than chance")

    def _add_residuals(self, step: int, errors: NDArray[np.float64]) -> None:
        counts, edges = np.histogram(errors, bins="auto" if np.ptp(errors) else 1)
        self.report.ResidualDistribution = {
            "plot_step": step,
            "hist": counts.tolist(),
            "edges": edges.tolist(),
            "x": np.linspace(float(errors.min()), float(errors.max()), _CURVE_POINTS).tolist(),
            "mu": float(errors.mean()),
            "sigma": float(errors.std()),
        }

    def _add_errors_by_bin(self, labels: Values) -> None:
        edges = np.linspace(float(labels.min()), float(labels.max()), _BINS + 1)
        names = [f"{low:.4g}-{high:.4g}" for low, high in pairwise(edges)]
        errors: dict[str, list[float | None]] = {name: [] for name in names}
        for step in self._steps:
            true, guessed = self._pair(step)
            if len(true) != len(guessed):
                continue
            magnitude = np.abs(guessed.reshape(-1) - true)
            bins = np.clip(np.searchsorted(edges, true, side="right") - 1, 0, _BINS - 1)
            for number, name in enumerate(names):
                mine = magnitude[bins == number]
                errors[name].append(float(mine.mean()) if mine.size else None)
        means = {name: [value for value in series if value is not None] for name, series in errors.items()}
        self.report.AbsoluteErrorPerLabelBin = {
            "steps": self._steps,
            "bins": names,
            "errors": errors,
            "mean_errors": {
                name: math.fsum(found) / len(found) if found else None for name, found in means.items()
            },
        }


def _classes(labels: Values, predictions: Values) -> tuple[Values, Values]:
    """Labels and predictions as class numbers."""
    scores = predictions.ndim == 2 and predictions.shape[1] > 1
    return class_labels(labels)[0], predicted_classes(predictions, argmax=scores)


def _matrix(true: Values, guessed: Values) -> tuple[list[int], NDArray[np.int64]]:
    """The classes that occur, and counts by label and prediction."""
    classes, positions = np.unique(np.concatenate([true, guessed]), return_inverse=True)
    rows, columns = positions[: len(true)], positions[len(true) :]
    counts = np.bincount(rows * len(classes) + columns, minlength=len(classes) ** 2)
    return classes.tolist(), counts.reshape(len(classes), len(classes))


def _scores(matrix: NDArray[np.int64]) -> list[dict[str, float]]:
    """Precision, recall, F1 and support of each class; 0 where a ratio has no denominator."""
    rows = []
    for number in range(len(matrix)):
        hit, predicted, support = matrix[number, number], matrix[:, number].sum(), matrix[number].sum()
        rows.append(
            {
                "precision": float(hit / predicted) if predicted else 0.0,
                "recall": float(hit / support) if support else 0.0,
                "f1_score": float(2 * hit / (predicted + support)) if predicted + support else 0.0,
                "support": int(support),
            }
        )
    return rows


def _natural(name: str) -> list[Any]:
    """Sorts `f2` before `f10`."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
