"""`smdbg demo`: two small networks, trained, recorded and judged."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from smdbg_core.cli.table import render_table
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.evaluate import evaluate
from smdbg_core.outcomes import Report
from smdbg_core.runs.trial import TrialWriter

__all__ = ["command", "train"]

Array = NDArray[np.float32]

_CLASSES = 4
_EPOCHS = 6
_STEPS_PER_EPOCH = 20


class _Network(NamedTuple):
    """What distinguishes the two networks."""

    widths: tuple[int, ...]
    activation: str
    scale: float
    """Standard deviation of initial weights, as a multiple of `1 / sqrt(inputs)`."""

    learning_rate: float


HEALTHY = _Network((16, 32, 16, _CLASSES), "relu", 1.4, 0.05)
SICK = _Network((16, *[8] * 10, _CLASSES), "sigmoid", 0.5, 0.05)


@click.command("demo")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Keep the two trials there.")
def command(output: Path | None) -> int:
    """Train a healthy and a sick network in NumPy, record both, and judge them.

    The exit status is 0 if the healthy run is clean and the sick one is not.
    """
    if output is not None:
        return _show(output)
    with tempfile.TemporaryDirectory(prefix="smdbg-demo-") as folder:
        return _show(Path(folder))


def _show(folder: Path) -> int:
    click.echo("A network of three layers with ReLU, which learns:\n")
    healthy = _judge(folder / "healthy", HEALTHY)
    click.echo("\nEleven layers with sigmoid and small initial weights, which cannot:\n")
    sick = _judge(folder / "sick", SICK)
    as_expected = not healthy.fired and "VanishingGradient" in {outcome.rule for outcome in sick.fired}
    names = ", ".join(outcome.name for outcome in sick.fired)
    if as_expected:
        click.echo(f"\nThe healthy run is clean; the sick one fires {names}.")
    else:
        click.echo("\nThis is not what the demonstration should show; are the built-in rules installed?")
    return 0 if as_expected else 1


def _judge(folder: Path, network: _Network) -> Report:
    train(folder, network)
    registry = Registry()
    report = evaluate(folder, registry=registry)
    click.echo(f"$ smdbg run {folder}")
    click.echo(render_table(report, registry), nl=False)
    return report


def train(folder: Path, network: _Network, seed: int = 4) -> None:
    """Train a network on clusters of points, and record weights, gradients, activations and losses.

    Every batch is new, so that a network which learns does not learn by heart.

    Args:
        folder: Where the trial is written.
        network: Shape and settings.
        seed: Of data, initial weights and batches.
    """
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((_CLASSES, network.widths[0])).astype(np.float32)
    model = _Model(network, rng)
    validation = _points(centres, 1024, rng)
    with TrialWriter(folder) as writer:
        number = 0
        for _ in range(_EPOCHS):
            for _ in range(_STEPS_PER_EPOCH):
                with writer.step(number, mode="TRAIN") as step:
                    for name, value in model.learn(*_points(centres, 64, rng)).items():
                        step.add(name, value)
                number += 1
            with writer.step(number, mode="EVAL") as step:
                step.add("CrossEntropyLoss_output_0", model.loss(*validation))
            number += 1


def _points(centres: Array, count: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
    labels = rng.integers(0, _CLASSES, count)
    points = centres[labels] + rng.standard_normal((count, centres.shape[1])) * 1.6
    return points.astype(np.float32), labels


class _Model:
    """A stack of dense layers with a softmax cross-entropy loss, trained by gradient descent."""

    def __init__(self, network: _Network, rng: np.random.Generator) -> None:
        self._network = network
        shapes = list(zip(network.widths, network.widths[1:], strict=False))
        self._weights = [
            (rng.standard_normal(shape) * network.scale / np.sqrt(shape[0])).astype(np.float32)
            for shape in shapes
        ]
        self._biases = [np.zeros(outputs, np.float32) for _, outputs in shapes]

    def learn(self, inputs: Array, labels: NDArray[np.int64]) -> dict[str, Any]:
        """One step of training; what a hook would have saved of it."""
        activations = self._forward(inputs)
        probabilities = _softmax(activations[-1])
        saved: dict[str, Any] = {"CrossEntropyLoss_output_0": _cross_entropy(probabilities, labels)}
        for layer, activation in enumerate(activations[1:-1], start=1):
            saved[f"{self._network.activation}{layer}_output_0"] = activation
        error = (probabilities - np.eye(_CLASSES, dtype=np.float32)[labels]) / np.float32(len(labels))
        for layer in reversed(range(len(self._weights))):
            gradient, bias_gradient = activations[layer].T @ error, error.sum(axis=0)
            saved[f"Net_fc{layer + 1}.weight"] = self._weights[layer].copy()
            saved[f"Net_fc{layer + 1}.bias"] = self._biases[layer].copy()
            saved[f"gradient/Net_fc{layer + 1}.weight"] = gradient
            saved[f"gradient/Net_fc{layer + 1}.bias"] = bias_gradient
            if layer:
                error = (error @ self._weights[layer].T) * self._slope(activations[layer])
            self._weights[layer] -= np.float32(self._network.learning_rate) * gradient
            self._biases[layer] -= np.float32(self._network.learning_rate) * bias_gradient
        return saved

    def loss(self, inputs: Array, labels: NDArray[np.int64]) -> np.float32:
        """Mean cross-entropy without learning."""
        return _cross_entropy(_softmax(self._forward(inputs)[-1]), labels)

    def _forward(self, inputs: Array) -> list[Array]:
        activations = [inputs]
        for layer, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True), start=1):
            values = activations[-1] @ weight + bias
            if layer < len(self._weights):
                values = (
                    np.maximum(values, 0) if self._network.activation == "relu" else 1 / (1 + np.exp(-values))
                )
            activations.append(values.astype(np.float32))
        return activations

    def _slope(self, activation: NDArray[Any]) -> NDArray[Any]:
        if self._network.activation == "relu":
            return (activation > 0).astype(np.float32)
        slope: NDArray[Any] = activation * (1 - activation)
        return slope


def _softmax(scores: Array) -> Array:
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: Array = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probabilities


def _cross_entropy(probabilities: Array, labels: NDArray[np.int64]) -> np.float32:
    chosen = probabilities[np.arange(len(labels)), labels]
    return np.float32(-np.log(chosen + 1e-9).mean())
