"""Training a network, and recording it as the PyTorch hook would."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdbg_core import TrialWriter
from smdbg_core.runs.trial import Collection
from tests.detection.networks import Network, cross_entropy, optimise, squared_error
from tests.detection.recipes import Recipe
from tests.detection.tasks import Data, make_data

__all__ = ["Injection", "Result", "train"]

Array = NDArray[Any]

_COLLECTIONS = (
    Collection("relu_output", ["relu.*_output"]),
    Collection("relu_input", ["relu.*_input"]),
)


@dataclass(frozen=True)
class Injection:
    """What is done wrong in a training; by default nothing."""

    rate_factor: float = 1.0
    init: str | None = None
    gain: float = 1.0
    shift: float = 0.0
    inputs: str | None = None
    """`raw`, `double` or `blank`."""

    not_optimised: int = 0
    skipped_step: bool = False
    ascent: bool = False
    gradients_kept: bool = False
    nan_share: float = 0.0
    shuffled_labels: bool = False
    label_noise: float = 0.0
    samples: int | None = None
    validation_in_training: bool = False
    sorted_data: bool = False
    dropout_in_evaluation: bool = False


class Result:
    """How a training ended."""

    def __init__(self, recipe: Recipe, predictions: Array, labels: Array) -> None:
        self._recipe, self._predictions, self._labels = recipe, predictions, labels

    @property
    def score(self) -> float:
        """Mean accuracy over the classes, or share of explained variance: 0 is chance, 1 is perfect."""
        guessed, labels = self._predictions, self._labels
        if self._recipe.task == "regression":
            error = np.square(guessed - labels).mean() / labels.var()
            return float(1 - error) if np.isfinite(error) else 0.0
        recalls = [(guessed[labels == one] == one).mean() for one in np.unique(labels)]
        chance = 1 / self._recipe.classes
        return float((np.mean(recalls) - chance) / (1 - chance))


def train(recipe: Recipe, injection: Injection, folder: Path | None = None) -> Result:
    """Train a network; with a folder, record the training there."""
    with np.errstate(all="ignore"):
        return _Training(recipe, injection).run(folder)


class _Training:
    def __init__(self, recipe: Recipe, injection: Injection) -> None:
        self._recipe, self._injection = recipe, injection
        self._rng = np.random.default_rng(recipe.seed + 41)
        self._data = self._prepared(make_data(recipe, injection.samples))
        self._network = Network(recipe, injection.init, injection.gain, injection.shift)
        self._network.forget_first(injection.not_optimised)
        self._loss = squared_error if recipe.task == "regression" else cross_entropy
        self._loss_name = "MSELoss" if recipe.task == "regression" else "CrossEntropyLoss"

    def _prepared(self, data: Data) -> Data:
        injection = self._injection
        inputs, labels, held_out, held_out_labels = data
        if self._recipe.task == "images":
            inputs, held_out = self._scaled(inputs, inputs), self._scaled(held_out, inputs)
        if injection.inputs == "blank":
            inputs = np.zeros_like(inputs)
        if injection.shuffled_labels:
            labels = self._rng.permutation(labels)
        noisy = self._rng.random(len(labels)) < injection.label_noise
        labels = np.where(noisy, self._rng.permutation(labels), labels) if noisy.any() else labels
        if injection.nan_share:
            inputs = inputs.astype(np.float32)
            inputs[self._rng.random(len(inputs)) < injection.nan_share, ..., 0] = np.nan
        if injection.validation_in_training:
            inputs, labels = np.concatenate([inputs, held_out]), np.concatenate([labels, held_out_labels])
        if injection.sorted_data:
            order = np.argsort(labels, kind="stable")
            inputs, labels = inputs[order], labels[order]
        return Data(inputs, labels, held_out, held_out_labels)

    def _scaled(self, pixels: Array, reference: Array) -> Array:
        if self._injection.inputs == "raw":
            return pixels
        if self._recipe.unit_range:
            return pixels / np.float32(255)
        mean, deviation = reference.mean(), reference.std()
        scaled = (pixels - mean) / deviation
        return (scaled - mean) / deviation if self._injection.inputs == "double" else scaled

    def run(self, folder: Path | None) -> Result:
        if folder is None:
            return self._run(None)
        with TrialWriter(folder, collections=_COLLECTIONS) as writer:
            return self._run(writer)

    def _run(self, writer: TrialWriter | None) -> Result:
        recipe = self._recipe
        per_epoch = max(1, len(self._data.labels) // recipe.batch)
        total = per_epoch * recipe.epochs
        every = max(1, total // recipe.saved_steps)
        number = 0
        for epoch in range(recipe.epochs):
            order = np.arange(len(self._data.labels))
            if not self._injection.sorted_data:
                self._rng.shuffle(order)
            for batch in range(per_epoch):
                step = epoch * per_epoch + batch
                chosen = order[batch * recipe.batch : (batch + 1) * recipe.batch]
                saved = self._learn(chosen, step, total, per_epoch)
                if writer is not None and step % every == 0:
                    with writer.step(number, mode="TRAIN", mode_step=step) as saving:
                        for name, value in saved.items():
                            saving.add(name, value)
                number += 1
            if writer is not None:
                held_out = self._rng.permutation(len(self._data.validation_labels))[: recipe.evaluated]
                for half in np.array_split(held_out, 2):
                    with writer.step(number, mode="EVAL") as saving:
                        for name, value in self._evaluated(half).items():
                            saving.add(name, value)
                    number += 1
        scores = self._network.forward(self._data.validation_inputs, training=False)
        guessed = scores if recipe.task == "regression" else scores.argmax(axis=1)
        return Result(recipe, guessed, self._data.validation_labels)

    def _learn(self, chosen: Array, step: int, total: int, per_epoch: int) -> dict[str, Any]:
        """One training step; what a hook would have saved of it."""
        injection, network = self._injection, self._network
        inputs, labels = self._data.inputs[chosen], self._data.labels[chosen]
        kept = {one.name: one.gradient for one in network.parameters}
        scores = network.forward(inputs, training=True)
        loss, error = self._loss(scores, labels)
        network.backward(-error if injection.ascent else error)
        saved = self._forward_tensors(inputs, labels, scores, loss)
        moved = []
        for one in network.parameters:
            if not one.requires_gradient:
                continue
            if injection.gradients_kept:
                one.gradient = one.gradient + kept[one.name]
            saved[f"gradient/{one.name}"] = one.gradient.astype(np.float32)
            if one.optimised:
                moved.append(one)
        if not injection.skipped_step:
            rate = self._rate(step, total, per_epoch) * injection.rate_factor
            optimise(self._recipe, moved, rate, step + 1)
        return saved

    def _rate(self, step: int, total: int, per_epoch: int) -> float:
        recipe = self._recipe
        warm = recipe.warmup * per_epoch
        if step < warm:
            return recipe.rate * (step + 1) / warm
        if recipe.schedule == "cosine":
            return recipe.rate * 0.5 * (1 + float(np.cos(np.pi * (step - warm) / (total - warm))))
        return recipe.rate

    def _evaluated(self, chosen: Array) -> dict[str, Any]:
        inputs, labels = self._data.validation_inputs[chosen], self._data.validation_labels[chosen]
        scores = self._network.forward(inputs, training=self._injection.dropout_in_evaluation)
        loss, _ = self._loss(scores, labels)
        return self._forward_tensors(inputs, labels, scores, loss)

    def _forward_tensors(
        self, inputs: Array, labels: Array, scores: Array, loss: np.float32
    ) -> dict[str, Any]:
        """What the hook saves in a forward pass: parameters, activations, the loss."""
        saved: dict[str, Any] = {one.name: one.value for one in self._network.parameters}
        saved |= {name: np.asarray(value[:128]) for name, value in self._network.seen().items()}
        saved[f"{self._loss_name}_output_0"] = loss
        if self._recipe.task == "images":
            saved["Net_input_0"] = inputs[:64]
        if self._recipe.task == "regression":
            return saved
        if self._recipe.records == "labels":
            saved |= {"labels": labels, "predictions": scores.argmax(axis=1)}
        else:
            saved |= {"CrossEntropyLoss_input_0": scores, "CrossEntropyLoss_input_1": labels}
        return saved
