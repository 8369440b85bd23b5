"""Overfit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from smdbg_builtin_rules.phases import Phase, first_scale, splits
from smdbg_core import AcrossWorkers, Finding, Meta, Reads, Regex, RuleRun, StepView, TensorRule


class Overfit(TensorRule):
    """Fires when the validation loss exceeds the training loss by too much.

    Why it matters: the model learns the training set by heart, and does worse on everything else.
    What to do: stop earlier, regularise, use a smaller model, more data or augmentation.
    """

    group: ClassVar = "universal"
    presets: ClassVar = {"recommended": {"relative_to": "first", "ratio_threshold": 0.4, "patience": 3}}

    tensor_regex: Annotated[
        tuple[Regex, ...], Meta(description="Losses; the collection `losses` without.")
    ] = ()
    patience: Annotated[
        int, Meta(ge=1, unit="judgements", description="Bad judgements in a row that fire.")
    ] = 1
    ratio_threshold: Annotated[
        float, Meta(ge=0, unit="ratio", description="A larger gap, relative to the training loss, is bad.")
    ] = 0.1

    relative_to: Annotated[
        Literal["training", "first"],
        Meta(
            description="What the gap is measured by: the training loss of now, or the first one saved, "
            "which does not go to zero.",
            local=True,
        ),
    ] = "training"

    def reads(self) -> Reads:
        """The losses."""
        return Reads(
            collections=() if self.tensor_regex else ("losses",),
            patterns=self.tensor_regex,
            statistics=("mean",),
        )

    def start(self, run: RuleRun) -> None:
        """Forget all phases."""
        self._training: dict[str, Phase] = {}
        self._validation: dict[str, Phase] = {}
        self._streaks: dict[str, int] = {}
        self._last: dict[str, AcrossWorkers] = {}
        self._first: dict[str, float] = {}

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge when an evaluation phase is over; where there are no modes, at every step."""
        losses = {name: AcrossWorkers(views) for name, views in step.by_tensor()}
        if step.mode == "GLOBAL":
            pairs = splits(list(losses))
            if not pairs:
                self.skip(None, "no modes, and no train-... beside validation-...")
            for train, validation in pairs.values():
                subject = losses[validation]
                self._first.setdefault(validation, _loss(losses[train]))
                yield from self._judge_gap(subject, _loss(losses[train]), _loss(subject))
            return
        for name, loss in losses.items():
            training = self._training.setdefault(name, Phase())
            validation_phase = self._validation.setdefault(name, Phase())
            if step.mode == "EVAL":
                validation_phase.add(_loss(loss))
                self._last[name] = loss
            elif step.mode == "TRAIN":
                yield from self._close(loss, training, validation_phase)
                training.add(_loss(loss))
                self._first.setdefault(name, _loss(loss))

    def finish(self, run: RuleRun) -> Iterator[Finding]:
        """Judge the last evaluation phase, which no training step has closed."""
        if not self._last and self._training:
            self.skip(None, "no evaluation steps")
        for name, loss in self._last.items():
            yield from self._close(loss, self._training[name], self._validation[name])

    def _close(self, loss: AcrossWorkers, training: Phase, validation: Phase) -> Iterator[Finding]:
        """Judge two finished phases; an evaluation before any training is dropped."""
        if validation and training:
            yield from self._judge_gap(loss, training.mean, validation.mean)
            training.clear()
        validation.clear()

    def _judge_gap(self, loss: AcrossWorkers, training: float, validation: float) -> Iterator[Finding]:
        name = loss.name
        scale = training
        if self.relative_to == "first":
            scale = first_scale(name, self._first.get(name, training))
        gap = _gap(training, validation, scale)
        bad = gap > self.ratio_threshold
        streak = self._streaks[name] = self._streaks.get(name, 0) + 1 if bad else 0
        if bad and streak < self.patience:
            yield from self.judge(loss, "bad_judgements", streak, ">=", self.patience, non_finite=0)
            return
        losses = f"training {training:.4g}, validation {validation:.4g}, {streak} in a row"
        text = f"gap {gap:.4g} > {self.ratio_threshold:g} ({losses})"
        yield from self.judge(loss, "gap", gap, ">", self.ratio_threshold, message=text, non_finite=0)


def _loss(loss: AcrossWorkers) -> float:
    return math.nan if loss.non_finite else loss.mean


def _gap(training: float, validation: float, scale: float) -> float:
    """How far validation lies above training, in units of `scale`; what is not a number is no good news."""
    if not (math.isfinite(training) and math.isfinite(validation) and math.isfinite(scale)):
        return math.inf
    if scale == 0:
        return math.inf if validation > training else 0.0
    return (validation - training) / abs(scale)
