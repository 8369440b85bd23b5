"""ClassImbalance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import Annotated, ClassVar

import numpy as np

from smdbg_builtin_rules.classes import class_labels, predicted_classes
from smdbg_core import Finding, Meta, Reads, Regex, RuleRun, StepView, TensorRule, TensorView


class ClassImbalance(TensorRule):
    """Fires when classes are seen in very different numbers, or one is nearly always mispredicted.

    Why it matters: a model learns the frequent classes and ignores the rare ones.
    What to do: collect or resample the rare classes, or weigh them in the loss.
    """

    group: ClassVar = "universal"

    threshold_imbalance: Annotated[
        float,
        Meta(ge=1, unit="ratio", description="A larger ratio of the largest to the smallest class fires."),
    ] = 10.0
    threshold_misprediction: Annotated[
        float, Meta(ge=0, le=1, unit="fraction", description="A larger share of wrong predictions fires.")
    ] = 0.7
    samples: Annotated[int, Meta(ge=1, unit="labels", description="Labels needed before judging.")] = 500
    argmax: Annotated[
        bool, Meta(description="Whether predictions are scores, the largest of which counts.")
    ] = False
    labels_regex: Annotated[
        tuple[Regex, ...],
        Meta(description="Tensors with labels.", also=(r"(CrossEntropy|NLL)Loss_input_1$",)),
    ] = (".*labels",)
    predictions_regex: Annotated[
        tuple[Regex, ...],
        Meta(description="Tensors with predictions.", also=(r"(CrossEntropy|NLL)Loss_input_0$",)),
    ] = (".*predictions",)

    def reads(self) -> tuple[Reads, ...]:
        """Labels and predictions."""
        return (
            Reads(group="labels", patterns=self.patterns("labels_regex"), values=True),
            Reads(
                group="predictions", patterns=self.patterns("predictions_regex"), values=True, optional=True
            ),
        )

    def start(self, run: RuleRun) -> None:
        """Forget all counts."""
        self._seen: Counter[int] = Counter()
        self._judged: Counter[int] = Counter()
        self._wrong: Counter[int] = Counter()

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Add the labels of the step to those before, in all modes, and judge once there are enough."""
        labels = step.tensors("labels")
        for label, prediction in zip_longest(labels, step.tensors("predictions")):
            if label is not None:
                self._count(label, prediction)
        total = sum(self._seen.values())
        if not labels:
            return
        if total < self.samples:
            self.skip(labels[0], "too few labels", have=total, need=self.samples)
            return
        yield from self._judge_counts(labels[0])

    def _count(self, label: TensorView, prediction: TensorView | None) -> None:
        true, dropped = class_labels(label.values)
        self._seen.update(true.tolist())
        if prediction is None or dropped:
            return
        guessed = predicted_classes(prediction.values, argmax=self.argmax)
        if len(guessed) != len(true):
            self.skip(prediction, "as many predictions as labels are needed; scores need `argmax`")
            return
        self._judged.update(true.tolist())
        self._wrong.update(true[np.not_equal(guessed, true)].tolist())

    def _judge_counts(self, subject: TensorView) -> Iterator[Finding]:
        ranked = self._seen.most_common()
        (largest, most), (smallest, fewest) = ranked[0], ranked[-1]
        ratio = most / fewest
        extremes = f"class {largest}: {most}, class {smallest}: {fewest}"
        text = f"imbalance {ratio:.4g} > {self.threshold_imbalance:g} ({extremes})"
        yield from self.judge(
            subject, "imbalance", ratio, ">", self.threshold_imbalance, message=text, non_finite=0
        )
        for one in sorted(self._judged):
            share = self._wrong[one] / self._judged[one]
            text = f"class {one}: mispredicted {share:.4g} > {self.threshold_misprediction:g}"
            yield from self.judge(
                subject,
                f"mispredicted_class_{one}",
                share,
                ">",
                self.threshold_misprediction,
                message=text,
                non_finite=0,
            )
