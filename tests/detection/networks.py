"""Networks: what a recipe describes, built from layers, with loss and optimisers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.detection.layers import (
    Activation,
    BatchNorm,
    Convolution,
    Dropout,
    Embedding,
    Layer,
    LayerNorm,
    Linear,
    Parameter,
    Skip,
)
from tests.detection.recipes import Recipe
from tests.detection.tasks import VOCABULARY

__all__ = ["Network", "cross_entropy", "optimise", "squared_error"]

Array = NDArray[Any]

_GAINS = {"he": 2.0**0.5, "he_sparse": 2.0**0.5, "glorot": 1.0, "torch": 3.0**-0.5}
"""Standard deviation of initial weights as a multiple of `1 / sqrt(inputs)`; `torch` is PyTorch's default."""


class Network:
    """A stack of layers.

    Args:
        recipe: What it is made of.
        init: `zero`, `constant`, `huge` or `tiny` initial weights instead of the recipe's.
        gain: Factor on the weights before each activation.
        shift: Added to the biases before each activation.
    """

    def __init__(
        self, recipe: Recipe, init: str | None = None, gain: float = 1.0, shift: float = 0.0
    ) -> None:
        self.recipe = recipe
        self._rng = np.random.default_rng(recipe.seed + 29)
        self._init, self._gain, self._shift = init or recipe.init, gain, shift
        self.layers: list[Layer] = []
        self._build()
        self.parameters = [parameter for layer in self.layers for parameter in layer.parameters]
        for parameter in self._first(recipe.frozen):
            parameter.requires_gradient = False

    def _first(self, count: int) -> list[Parameter]:
        weighted = [layer for layer in self.layers if layer.parameters]
        return [parameter for layer in weighted[:count] for parameter in layer.parameters]

    def forget_first(self, count: int) -> None:
        """Leave the parameters of the first layers out of what the optimiser moves."""
        for parameter in self._first(count):
            parameter.optimised = False

    def _build(self) -> None:
        recipe = self.recipe
        width = recipe.inputs
        if recipe.task == "images":
            width = recipe.inputs**2
        elif recipe.task == "sequences":
            width = 24
            self.layers.append(Embedding(self._rng.standard_normal((VOCABULARY, width))))
        if recipe.convolution:
            channels = 8
            self.layers += [
                Convolution("conv1", self._weights((channels, 1, 3, 3), 9)),
                Activation(recipe.activation, 0),
            ]
            width = channels * ((recipe.inputs - 3) // 2 + 1) ** 2
        for number, units in enumerate(recipe.widths, start=1):
            block = self._block(number, units, width)
            skips = recipe.residual and units == width
            self.layers += [Skip(block)] if skips else block
            width = units
        outputs = 1 if recipe.task == "regression" else recipe.classes
        head = Linear(f"fc{len(recipe.widths) + 1}", self._weights((outputs, width), width))
        if self._init not in ("zero", "constant", "huge", "tiny"):
            head.weight.value *= np.float32(0.5)
        self.layers.append(head)

    def _block(self, number: int, units: int, width: int) -> list[Layer]:
        recipe = self.recipe
        linear = Linear(f"fc{number}", self._weights((units, width), width) * self._gain)
        linear.bias.value += np.float32(self._shift)
        if recipe.init == "he_sparse":
            linear.bias.value -= np.float32(0.7)
        block: list[Layer] = [linear]
        if recipe.norm == "batch":
            block.append(BatchNorm(f"bn{number}", units))
        elif recipe.norm == "layer":
            block.append(LayerNorm(f"ln{number}", units))
        block.append(Activation(recipe.activation, number))
        if recipe.dropout:
            block.append(Dropout(recipe.dropout, self._rng))
        return block

    def _weights(self, shape: tuple[int, ...], inputs: int) -> Array:
        drawn = self._rng.standard_normal(shape) / np.sqrt(inputs)
        if self._init == "zero":
            return np.zeros(shape)
        if self._init == "constant":
            return np.full(shape, 0.05)
        if self._init == "huge":
            return drawn * 40
        if self._init == "tiny":
            return drawn * 1e-3
        return drawn * _GAINS[self._init]

    def forward(self, values: Array, training: bool) -> Array:
        for layer in self.layers:
            values = layer.forward(values, training)
        return values

    def backward(self, error: Array) -> None:
        for layer in reversed(self.layers):
            error = layer.backward(error)

    def seen(self) -> dict[str, Array]:
        """Inputs and outputs of activations and embeddings in the last forward pass."""
        return {name: value for layer in self.layers for name, value in layer.seen.items()}


def cross_entropy(scores: Array, labels: Array) -> tuple[np.float32, Array]:
    """The mean loss, and its gradient by the scores."""
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(np.maximum(probabilities[rows, labels], 1e-30)).mean()
    if np.isnan(scores).any():
        loss = np.nan
    probabilities[rows, labels] -= 1
    return np.float32(loss), (probabilities / len(labels)).astype(np.float32)


def squared_error(scores: Array, labels: Array) -> tuple[np.float32, Array]:
    """The mean loss, and its gradient by the scores."""
    difference = scores - labels
    return np.float32((difference**2).mean()), (2 * difference / len(labels)).astype(np.float32)


def optimise(recipe: Recipe, parameters: list[Parameter], rate: float, step: int) -> None:
    """Move the parameters once."""
    for one in parameters:
        gradient = one.gradient + recipe.decay * one.value
        if recipe.optimiser == "sgd":
            change = gradient
        elif recipe.optimiser == "momentum":
            change = one.state["velocity"] = 0.9 * one.state.get("velocity", 0) + gradient
        else:
            one.state["mean"] = 0.9 * one.state.get("mean", 0) + 0.1 * gradient
            one.state["square"] = 0.999 * one.state.get("square", 0) + 0.001 * gradient**2
            mean = one.state["mean"] / (1 - 0.9**step)
            change = mean / (np.sqrt(one.state["square"] / (1 - 0.999**step)) + 1e-8)
        one.value = (one.value - rate * change).astype(np.float32)
