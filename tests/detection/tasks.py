"""Tasks: synthetic data that small networks learn in a second."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.detection.recipes import Recipe

__all__ = ["PAD", "VOCABULARY", "Data", "make_data"]

VOCABULARY = 60
PAD = 0

Array = NDArray[Any]


class Data(NamedTuple):
    """Inputs and labels for training and for validation."""

    inputs: Array
    labels: Array
    validation_inputs: Array
    validation_labels: Array


def make_data(recipe: Recipe, samples: int | None = None) -> Data:
    """The data of a recipe: always the same for the same recipe."""
    rng = np.random.default_rng(recipe.seed + 17)
    train, held_out = samples or recipe.samples, 500
    labels = _labels(recipe, train + held_out, rng)
    maker = {
        "points": _points,
        "images": _images,
        "sequences": _sequences,
        "spirals": _spirals,
        "regression": _regression,
    }[recipe.task]
    inputs, labels = maker(recipe, labels, rng)
    return Data(inputs[:train], labels[:train], inputs[train:], labels[train:])


def _labels(recipe: Recipe, count: int, rng: np.random.Generator) -> Array:
    shares = np.geomspace(recipe.imbalance, 1.0, recipe.classes)
    return rng.choice(recipe.classes, count, p=shares / shares.sum())


def _points(recipe: Recipe, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    centres = rng.standard_normal((recipe.classes, recipe.inputs))
    centres *= 3.2 / np.linalg.norm(centres, axis=1, keepdims=True) * np.sqrt(1 + recipe.classes / 20)
    noise = rng.standard_normal((len(labels), recipe.inputs))
    return _standardised(centres[labels] + 0.9 * noise), labels


def _images(recipe: Recipe, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Smooth patterns, one or two for each class, moved by up to a pixel and under noise."""
    side = recipe.inputs
    rough = rng.standard_normal((recipe.classes, side, side))
    smooth = sum(np.roll(rough, (dx, dy), (1, 2)) for dx in (-1, 0, 1) for dy in (-1, 0, 1)) / 3
    moves = rng.integers(0, 2, (len(labels), 2))
    images = np.stack(
        [np.roll(smooth[label], tuple(move), (0, 1)) for label, move in zip(labels, moves, strict=True)]
    )
    images = images + 0.6 * rng.standard_normal(images.shape)
    pixels = np.clip(60 + 45 * images, 0, 255)[:, None]
    return pixels.astype(np.float32), labels


def _sequences(recipe: Recipe, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Tokens of which a third speak of the class; the rest of a row is padding."""
    length = recipe.inputs
    topics = np.array_split(np.arange(1, VOCABULARY), recipe.classes)
    lengths = np.clip(rng.normal(length * (1 - recipe.padding), length * 0.1, len(labels)), 2, length)
    rows = rng.integers(1, VOCABULARY, (len(labels), length))
    spoken = rng.random(rows.shape) < 0.45
    for label, topic in enumerate(topics):
        mine = np.flatnonzero(labels == label)
        chosen = rng.choice(topic, (len(mine), length))
        rows[mine] = np.where(spoken[mine], chosen, rows[mine])
    rows[np.arange(length) >= lengths[:, None]] = PAD
    return rows, labels


def _spirals(recipe: Recipe, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    radius = rng.uniform(0.15, 1, len(labels))
    angle = radius * 6.5 + labels * 2 * np.pi / recipe.classes + 0.12 * rng.standard_normal(len(labels))
    return _standardised(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)), labels


def _regression(recipe: Recipe, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    inputs = rng.standard_normal((len(labels), recipe.inputs))
    weight = rng.standard_normal((recipe.inputs, 3)) / np.sqrt(recipe.inputs)
    hidden = inputs @ weight
    target = np.tanh(1.5 * hidden[:, 0]) + hidden[:, 1] + 0.5 * np.abs(hidden[:, 2])
    target = (target - target.mean()) / target.std() + 0.25 * rng.standard_normal(len(labels))
    return inputs.astype(np.float32), target[:, None].astype(np.float32)


def _standardised(points: Array) -> Array:
    return ((points - points.mean(axis=0)) / points.std(axis=0)).astype(np.float32)
