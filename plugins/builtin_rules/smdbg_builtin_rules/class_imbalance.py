"""ClassImbalance."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator
from itertools import zip_longest
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from smdbg_builtin_rules.classes import are_whole, class_labels, predicted_classes
from smdbg_core import Finding, Meta, Reads, Regex, RuleRun, StepView, TensorRule, TensorView


class _Guesses(NamedTuple):
    """Of the labels at one step: how many were judged, and mispredicted, by class."""

    judged: Counter[int]
    wrong: Counter[int]


class ClassImbalance(TensorRule):
    """Fires when classes are seen in very different numbers, or one is nearly always mispredicted.

    Why it matters: a model learns the frequent classes and ignores the rare ones.
    What to do: collect or resample the rare classes, or weigh them in the loss.
    """

    group: ClassVar = "universal"
    presets: ClassVar = {
        "recommended": {
            "confidence": 2.0,
            "recent": 4,
            "threshold_misprediction": 0.8,
            "whole_labels": True,
            "at_end": True,
        }
    }

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

    confidence: Annotated[
        float,
        Meta(
            ge=0,
            unit="standard errors",
            description="How far the imbalance must lie above the limit for its sample size.",
            local=True,
        ),
    ] = 0.0
    recent: Annotated[
        int | None,
        Meta(
            ge=1,
            unit="saved steps",
            description="Mispredictions count in the last so many steps of a mode; in all without.",
            local=True,
        ),
    ] = None
    whole_labels: Annotated[
        bool,
        Meta(
            description="Whether labels that are no whole numbers, as of a regression, are skipped.",
            local=True,
        ),
    ] = False
    at_end: Annotated[
        bool,
        Meta(description="Whether mispredictions are judged once, at the end.", local=True),
    ] = False

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
        self._steps: dict[str, deque[_Guesses]] = {}
        self._judged: Counter[int] = Counter()
        self._wrong: Counter[int] = Counter()
        self._last: TensorView | None = None

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Add the labels of the step to those before, in all modes, and judge once there are enough."""
        labels = step.tensors("labels")
        for label, prediction in zip_longest(labels, step.tensors("predictions")):
            if label is not None:
                self._count(label, prediction)
        total = sum(self._seen.values())
        if not labels or (self.whole_labels and not total):
            return
        if total < self.samples:
            self.skip(labels[0], "too few labels", have=total, need=self.samples)
            return
        self._last = labels[0]
        yield from self._judge_imbalance(labels[0])
        if not self.at_end:
            yield from self._judge_mispredictions(labels[0])

    def finish(self, run: RuleRun) -> Iterator[Finding]:
        """Judge mispredictions once, where that is asked for."""
        if self.at_end and self._last is not None:
            yield from self._judge_mispredictions(self._last)

    def _count(self, label: TensorView, prediction: TensorView | None) -> None:
        if self.whole_labels and not are_whole(label.values):
            self.skip(label, "labels are no whole numbers")
            return
        true, dropped = class_labels(label.values)
        self._seen.update(true.tolist())
        if prediction is None or dropped:
            return
        guessed = predicted_classes(prediction.values, argmax=self.argmax)
        if len(guessed) != len(true):
            self.skip(prediction, "as many predictions as labels are needed; scores need `argmax`")
            return
        guesses = _Guesses(Counter(true.tolist()), Counter(true[np.not_equal(guessed, true)].tolist()))
        self._judged += guesses.judged
        self._wrong += guesses.wrong
        if self.recent is None:
            return
        steps = self._steps.setdefault(label.mode, deque())
        steps.append(guesses)
        if len(steps) > self.recent:
            oldest = steps.popleft()
            self._judged -= oldest.judged
            self._wrong -= oldest.wrong

    def _judge_imbalance(self, subject: TensorView) -> Iterator[Finding]:
        ranked = self._seen.most_common()
        (largest, most), (smallest, fewest) = ranked[0], ranked[-1]
        ratio = most / fewest * math.exp(-self.confidence * math.sqrt(1 / most + 1 / fewest))
        extremes = f"class {largest}: {most}, class {smallest}: {fewest}"
        text = f"imbalance {ratio:.4g} > {self.threshold_imbalance:g} ({extremes})"
        yield from self.judge(
            subject, "imbalance", ratio, ">", self.threshold_imbalance, message=text, non_finite=0
        )

    def _judge_mispredictions(self, subject: TensorView) -> Iterator[Finding]:
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
