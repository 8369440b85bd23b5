"""Layers with forward and backward passes written out, named as the PyTorch hook names them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Activation",
    "BatchNorm",
    "Convolution",
    "Dropout",
    "Embedding",
    "Layer",
    "LayerNorm",
    "Linear",
    "Parameter",
    "Skip",
]

Array = NDArray[Any]


class Parameter:
    """A trained array with its gradient and the state that an optimiser keeps for it."""

    def __init__(self, name: str, value: Array) -> None:
        self.name = name
        self.value = value.astype(np.float32)
        self.gradient: Array = np.zeros_like(self.value)
        self.state: dict[str, Array] = {}
        self.requires_gradient = True
        """False where a layer is frozen by intent: no gradient is computed, and none is saved."""
        self.optimised = True
        """False where the optimiser was not given the parameter: it has a gradient, but never moves."""


class Layer:
    """A layer; `seen` holds the inputs and outputs of the last forward pass under the hook's names."""

    def __init__(self) -> None:
        self.parameters: list[Parameter] = []
        self.seen: dict[str, Array] = {}

    def forward(self, values: Array, training: bool) -> Array:
        raise NotImplementedError

    def backward(self, error: Array) -> Array:
        raise NotImplementedError


class Linear(Layer):
    def __init__(self, name: str, weight: Array) -> None:
        super().__init__()
        self.weight = Parameter(f"Net_{name}.weight", weight)
        self.bias = Parameter(f"Net_{name}.bias", np.zeros(len(weight)))
        self.parameters = [self.weight, self.bias]

    def forward(self, values: Array, training: bool) -> Array:
        self._flat = values.reshape(len(values), -1)
        self._shape = values.shape
        return self._flat @ self.weight.value.T + self.bias.value

    def backward(self, error: Array) -> Array:
        self.weight.gradient, self.bias.gradient = error.T @ self._flat, error.sum(axis=0)
        return (error @ self.weight.value).reshape(self._shape)


class Convolution(Layer):
    """3 x 3, no padding, stride 2."""

    def __init__(self, name: str, weight: Array) -> None:
        super().__init__()
        self.weight = Parameter(f"Net_{name}.weight", weight)
        self.bias = Parameter(f"Net_{name}.bias", np.zeros(len(weight)))
        self.parameters = [self.weight, self.bias]

    def forward(self, values: Array, training: bool) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(values, (3, 3), (2, 3))[:, :, ::2, ::2]
        self._patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(
            *windows.shape[:1], *windows.shape[2:4], -1
        )
        out = self._patches @ self.weight.value.reshape(len(self.weight.value), -1).T + self.bias.value
        self._shape = values.shape
        return out.transpose(0, 3, 1, 2)

    def backward(self, error: Array) -> Array:
        flat = error.transpose(0, 2, 3, 1).reshape(-1, error.shape[1])
        patches = self._patches.reshape(len(flat), -1)
        self.weight.gradient = (flat.T @ patches).reshape(self.weight.value.shape)
        self.bias.gradient = flat.sum(axis=0)
        return np.zeros(self._shape, np.float32)  # only ever the first layer


class Embedding(Layer):
    """Token vectors, averaged over those that are no padding."""

    def __init__(self, weight: Array) -> None:
        super().__init__()
        self.weight = Parameter("Net_embedding.weight", weight)
        self.parameters = [self.weight]

    def forward(self, values: Array, training: bool) -> Array:
        self._tokens = values
        self.seen = {"embedding_input_0": values}
        self._mask = (values != 0)[..., None]
        self._count = np.maximum(self._mask.sum(axis=1), 1)
        return (self.weight.value[values] * self._mask).sum(axis=1) / self._count * np.float32(2)

    def backward(self, error: Array) -> Array:
        spread = (error / self._count * 2)[:, None] * self._mask
        self.weight.gradient = np.zeros_like(self.weight.value)
        np.add.at(self.weight.gradient, self._tokens, spread.astype(np.float32))
        return error


class _Norm(Layer):
    def __init__(self, name: str, width: int) -> None:
        super().__init__()
        self.weight = Parameter(f"Net_{name}.weight", np.ones(width))
        self.bias = Parameter(f"Net_{name}.bias", np.zeros(width))
        self.parameters = [self.weight, self.bias]
        self._axis = 1

    def _normalise(self, values: Array, mean: Array, variance: Array) -> Array:
        self._scale = 1 / np.sqrt(variance + 1e-5)
        self._hat = (values - mean) * self._scale
        return self._hat * self.weight.value + self.bias.value

    def backward(self, error: Array) -> Array:
        self.weight.gradient, self.bias.gradient = (error * self._hat).sum(axis=0), error.sum(axis=0)
        inner = error * self.weight.value
        return self._scale * (
            inner
            - inner.mean(axis=self._axis, keepdims=True)
            - self._hat * (inner * self._hat).mean(axis=self._axis, keepdims=True)
        )


class BatchNorm(_Norm):
    def __init__(self, name: str, width: int) -> None:
        super().__init__(name, width)
        self._axis = 0
        self._mean, self._variance = np.zeros(width, np.float32), np.ones(width, np.float32)

    def forward(self, values: Array, training: bool) -> Array:
        if not training:
            return self._normalise(values, self._mean, self._variance)
        mean, variance = values.mean(axis=0), values.var(axis=0)
        self._mean = 0.9 * self._mean + 0.1 * mean
        self._variance = 0.9 * self._variance + 0.1 * variance
        return self._normalise(values, mean, variance)


class LayerNorm(_Norm):
    def forward(self, values: Array, training: bool) -> Array:
        mean = values.mean(axis=1, keepdims=True)
        return self._normalise(values, mean, values.var(axis=1, keepdims=True))


class Activation(Layer):
    def __init__(self, kind: str, number: int) -> None:
        super().__init__()
        self.kind = kind
        self._name = f"{kind}{number}"

    def forward(self, values: Array, training: bool) -> Array:
        self._in = values
        if self.kind == "relu":
            out = np.maximum(values, 0)
        elif self.kind == "leaky_relu":
            out = np.where(values > 0, values, np.float32(0.05) * values)
        elif self.kind == "tanh":
            out = np.tanh(values)
        else:
            out = 1 / (1 + np.exp(-np.clip(values, -80, 80)))
        self._out = out
        self.seen = {f"{self._name}_input_0": values, f"{self._name}_output_0": out}
        return out

    def backward(self, error: Array) -> Array:
        if self.kind == "relu":
            return error * (self._in > 0)
        if self.kind == "leaky_relu":
            return error * np.where(self._in > 0, np.float32(1), np.float32(0.05))
        slope = 1 - self._out**2 if self.kind == "tanh" else self._out * (1 - self._out)
        return error * slope


class Dropout(Layer):
    def __init__(self, share: float, rng: np.random.Generator) -> None:
        super().__init__()
        self._share, self._rng = share, rng

    def forward(self, values: Array, training: bool) -> Array:
        self._mask = np.ones_like(values)
        if training:
            self._mask = ((self._rng.random(values.shape) >= self._share) / (1 - self._share)).astype(
                np.float32
            )
        return values * self._mask

    def backward(self, error: Array) -> Array:
        return error * self._mask


class Skip(Layer):
    """Layers beside which their input passes by."""

    def __init__(self, inner: list[Layer]) -> None:
        super().__init__()
        self._inner = inner
        self.parameters = [parameter for layer in inner for parameter in layer.parameters]

    def forward(self, values: Array, training: bool) -> Array:
        out = values
        self.seen = {}
        for layer in self._inner:
            out = layer.forward(out, training)
            self.seen |= layer.seen
        return values + out

    def backward(self, error: Array) -> Array:
        through = error
        for layer in reversed(self._inner):
            through = layer.backward(through)
        return error + through
