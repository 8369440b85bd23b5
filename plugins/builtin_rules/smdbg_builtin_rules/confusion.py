"""Confusion."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from smdbg_builtin_rules.classes import are_whole, class_labels, predicted_classes
from smdbg_core import (
    AcrossWorkers,
    ConfigError,
    Finding,
    Meta,
    Reads,
    RuleRun,
    StepView,
    TensorRule,
    TensorView,
)

_Matrix = NDArray[np.int64]


class Confusion(TensorRule):
    """Fires when the confusion matrix of a step has too little on its diagonal, or too much off it.

    Why it matters: some classes are taken for others, which an average accuracy can hide.
    What to do: look at the two classes that are confused: their labels, their number, their features.
    """

    group: ClassVar = "universal"
    presets: ClassVar = {
        "recommended": {
            "normalize": "row",
            "min_diag": 0.5,
            "max_off_diag": 0.5,
            "window": 4,
            "whole_labels": True,
            "at_end": True,
            "min_samples": 20,
        }
    }

    category_no: Annotated[
        int | None, Meta(ge=2, description="Number of classes; found from the data without.")
    ] = None
    labels: Annotated[str, Meta(description="Tensor with the true labels.")] = "labels"
    predictions: Annotated[str, Meta(description="Tensor with the predictions.")] = "predictions"
    labels_collection: Annotated[str, Meta(description="Collection to use where that tensor is absent.")] = (
        "labels"
    )
    predictions_collection: Annotated[
        str, Meta(description="Collection to use where that tensor is absent.")
    ] = "predictions"
    min_diag: Annotated[
        float, Meta(ge=0, le=1, unit="fraction", description="A smaller share on the diagonal fires.")
    ] = 0.9
    max_off_diag: Annotated[
        float, Meta(ge=0, le=1, unit="fraction", description="A larger share off the diagonal fires.")
    ] = 0.1
    normalize: Annotated[
        Literal["column", "row"],
        Meta(description="Shares of all predictions of a class, or of all its labels.", local=True),
    ] = "column"

    window: Annotated[
        int,
        Meta(ge=1, unit="saved steps", description="Steps of a mode whose counts are added up.", local=True),
    ] = 1
    whole_labels: Annotated[
        bool,
        Meta(
            description="Whether labels that are no whole numbers, as of a regression, are skipped.",
            local=True,
        ),
    ] = False
    at_end: Annotated[
        bool,
        Meta(description="Whether to judge once, at the end: how training ended, not began.", local=True),
    ] = False
    min_samples: Annotated[
        int,
        Meta(ge=1, unit="samples", description="Classes with fewer in the matrix are left out.", local=True),
    ] = 1

    def reads(self) -> tuple[Reads, ...]:
        """Labels and predictions."""
        return (
            Reads(
                group="labels",
                collections=(self.labels_collection,),
                patterns=(_exactly(self.labels),),
                values=True,
            ),
            Reads(
                group="predictions",
                collections=(self.predictions_collection,),
                patterns=(_exactly(self.predictions),),
                values=True,
            ),
        )

    def start(self, run: RuleRun) -> None:
        """Forget all matrices."""
        self._recent: dict[str, deque[_Matrix]] = {}
        self._last: dict[str, AcrossWorkers] = {}

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge the matrix of this step, added to those of the steps before in the window."""
        labels = _chosen(step.tensors("labels"), self.labels)
        predictions = _chosen(step.tensors("predictions"), self.predictions)
        if not labels or not predictions:
            self.skip(None, "labels without predictions" if labels else "predictions without labels")
            return
        if self.whole_labels and not all(are_whole(view.values) for view in labels):
            self.skip(None, "labels are no whole numbers")
            return
        true = np.concatenate([class_labels(view.values)[0] for view in labels])
        guessed = np.concatenate(
            [
                predicted_classes(view.values, argmax=len(view.shape) > 1 and view.shape[-1] > 1)
                for view in predictions
            ]
        )
        if len(true) != len(guessed) or not len(true):
            self.skip(None, f"{len(true)} labels and {len(guessed)} predictions")
            return
        if self.category_no is None and not _are_classes(true, guessed):
            self.skip(None, "labels or predictions are no class numbers")
            return
        recent = self._recent.setdefault(step.mode, deque(maxlen=self.window))
        recent.append(self._matrix(true, guessed))
        subject = self._last[step.mode] = AcrossWorkers(predictions[:1])
        if self.at_end:
            return
        if len(recent) < self.window:
            self.skip(None, "too few saved steps", have=len(recent), need=self.window)
            return
        yield from self._judge_matrix(subject, _total(recent))

    def finish(self, run: RuleRun) -> Iterator[Finding]:
        """Judge the last steps of every mode."""
        if self.at_end:
            for mode, subject in self._last.items():
                yield from self._judge_matrix(subject, _total(self._recent[mode]))

    def _matrix(self, true: NDArray[np.int64], guessed: NDArray[np.int64]) -> _Matrix:
        """Counts by label and prediction."""
        classes = self.category_no or int(max(true.max(), guessed.max(), 0)) + 1
        for name, values in (("label", true), ("prediction", guessed)):
            if values.min() < 0 or values.max() >= classes:
                stray = values.min() if values.min() < 0 else values.max()
                message = f"a {name} of {stray} is none of {classes} classes"
                raise ConfigError(message)
        return np.bincount(true * classes + guessed, minlength=classes**2).reshape(classes, classes)

    def _judge_matrix(self, subject: AcrossWorkers, matrix: _Matrix) -> Iterator[Finding]:
        totals = matrix.sum(axis=0 if self.normalize == "column" else 1)
        for one in np.flatnonzero(totals >= self.min_samples).tolist():
            share = matrix[one, one] / totals[one]
            text = f"diag[{one}]={share:.4g} < {self.min_diag:g}"
            yield from self.judge(subject, f"diag[{one}]", share, "<", self.min_diag, message=text)
            line: Any = matrix[:, one] if self.normalize == "column" else matrix[one]
            others = np.delete(line, one) / totals[one]
            if not others.size:
                continue
            other = int(others.argmax())
            row = other + (other >= one)
            place = f"off[{row}][{one}]" if self.normalize == "column" else f"off[{one}][{row}]"
            text = f"{place}={others[other]:.4g} > {self.max_off_diag:g}"
            yield from self.judge(subject, place, others[other], ">", self.max_off_diag, message=text)


_MOST_CLASSES = 4096


def _total(matrices: Iterable[_Matrix]) -> _Matrix:
    """The sum of matrices, which may know different numbers of classes."""
    many = list(matrices)
    total = np.zeros((max(map(len, many)),) * 2, np.int64)
    for matrix in many:
        total[: len(matrix), : len(matrix)] += matrix
    return total


def _exactly(name: str) -> str:
    import re

    return f"^{re.escape(name)}$"


def _chosen(views: Sequence[TensorView], name: str) -> list[TensorView]:
    """The tensor of that name, else all of the collection."""
    return [view for view in views if view.name == name] or list(views)


def _are_classes(*numbers: NDArray[np.int64]) -> bool:
    """Whether these can be numbers of classes, of which there are not too many to tell apart."""
    return all(values.min() >= 0 and values.max() < _MOST_CLASSES for values in numbers)
