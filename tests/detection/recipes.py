"""Recipes: everything that one training is made of, and the families of healthy ones.

The two splits share no seed, no architecture (depth with widths), no input dimension and no number of
units, so that what is tuned on one cannot have been fitted to the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

__all__ = ["FAMILIES", "SPLITS", "Recipe", "Split", "healthy_recipes", "recipe_of"]

Split = Literal["tuning", "reporting"]
SPLITS: tuple[Split, ...] = ("tuning", "reporting")

_SEEDS = {"tuning": 100_000, "reporting": 900_000}
_WIDTHS: dict[str, tuple[int, ...]] = {"tuning": (16, 24, 40), "reporting": (20, 32, 48, 64)}
_DEPTHS: dict[str, tuple[int, ...]] = {"tuning": (1, 3), "reporting": (2, 4)}
_INPUTS = {"tuning": (12, 20), "reporting": (10, 16, 28)}
_SIZES = {"tuning": (8,), "reporting": (9, 10)}
_CLASSES: dict[str, tuple[int, ...]] = {"tuning": (2, 4, 8), "reporting": (2, 3, 5, 10)}


@dataclass(frozen=True)
class Recipe:
    """A training: data, network, optimiser, and what of it is recorded."""

    split: Split
    seed: int
    family: str
    task: str
    classes: int
    inputs: int
    """Dimensions of a point, side of an image, or length of a sequence."""

    samples: int
    widths: tuple[int, ...]
    activation: str
    init: str
    norm: str | None
    optimiser: str
    rate: float
    batch: int
    epochs: int
    convolution: bool = False
    residual: bool = False
    dropout: float = 0.0
    decay: float = 0.0
    warmup: int = 0
    schedule: str = "constant"
    frozen: int = 0
    """First layers frozen by intent: they have no gradients."""

    imbalance: float = 1.0
    """The most frequent class over the rarest."""

    padding: float = 0.3
    """Mean share of padding in sequences."""

    unit_range: bool = False
    """Images scaled to 0..1 instead of standardised."""

    saved_steps: int = 50
    """About how many training steps are recorded."""

    evaluated: int = 500
    """Samples of the validation set that an epoch evaluates."""

    records: str = "labels"
    """`labels`: class numbers of labels and predictions. `inputs`: what goes into the loss module."""


def _base(split: Split, number: int) -> tuple[Recipe, np.random.Generator]:
    seed = _SEEDS[split] + number
    rng = np.random.default_rng(seed)
    task = ("points", "images", "sequences", "spirals", "regression")[number % 5]
    depth = int(rng.choice(_DEPTHS[split]))
    widths = tuple(int(w) for w in rng.choice(_WIDTHS[split], depth))
    activation = str(rng.choice(("relu", "relu", "relu", "tanh", "leaky_relu", "sigmoid")))
    optimiser = str(rng.choice(("sgd", "momentum", "adam")))
    if activation == "sigmoid":
        widths, optimiser = widths[:2], "adam"
    if task == "spirals":
        widths = tuple(max(one, 36 if split == "tuning" else 33) for one in (*widths, *widths)[:3])
        activation, optimiser = ("tanh" if activation == "tanh" else "relu"), "adam"
    init = {"tanh": "glorot", "sigmoid": "glorot"}.get(activation, str(rng.choice(("he", "torch"))))
    inputs = {
        "points": int(rng.choice(_INPUTS[split])),
        "images": int(rng.choice(_SIZES[split])),
        "sequences": 16 if split == "tuning" else 22,
        "spirals": 2,
        "regression": int(rng.choice(_INPUTS[split])),
    }[task]
    rate = {"sgd": 0.1, "momentum": 0.02, "adam": 0.005}[optimiser] * float(rng.choice((0.6, 1.0, 1.5)))
    if task == "regression" and optimiser != "adam":
        rate *= 0.3
    classes = int(rng.choice(_CLASSES[split]))
    if task == "spirals":
        classes = 2 + number % 2
    recipe = Recipe(
        split=split,
        seed=seed,
        family="plain",
        task=task,
        classes=classes,
        inputs=inputs,
        samples=int(rng.choice((1200, 2000))),
        widths=widths,
        activation=activation,
        init=init,
        norm=[None, None, "batch", "layer"][int(rng.integers(4))] if len(widths) > 1 else None,
        optimiser=optimiser,
        rate=rate,
        batch=int(rng.choice((32, 64, 100))),
        epochs=40 if task == "spirals" else int(rng.choice((10, 14))),
        convolution=task == "images" and bool(rng.integers(2)),
        saved_steps=int(rng.choice((40, 60, 90))),
        records=str(rng.choice(("labels", "labels", "inputs"))),
    )
    return recipe, rng


def _frozen_backbone(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    backbone = 96 if recipe.split == "tuning" else 112
    widths = (backbone, *(recipe.widths[1:] or recipe.widths))
    return replace(recipe, task="points", inputs=_INPUTS[recipe.split][0], widths=widths, frozen=1, norm=None)


def _sparse_relu(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    return replace(recipe, activation="relu", init="he_sparse", norm=None, optimiser="adam", rate=0.004)


def _small_batches(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    return replace(
        recipe, batch=8, epochs=max(4, recipe.epochs // 3), rate=recipe.rate * 0.4, norm=None, saved_steps=80
    )


def _dropout(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    factor = 2.5 if recipe.split == "tuning" else 3.5
    return replace(recipe, dropout=0.25, widths=tuple(int(factor * one) for one in recipe.widths))


def _warmup(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    norm = recipe.norm or ("layer" if len(recipe.widths) > 1 else None)
    return replace(
        recipe, warmup=2, schedule="cosine", rate=recipe.rate * 1.5, norm=norm, epochs=2 * recipe.epochs
    )


def _mild_imbalance(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    task = "points" if recipe.task in ("spirals", "regression") else recipe.task
    inputs = _INPUTS[recipe.split][0] if task == "points" else recipe.inputs
    return replace(recipe, task=task, inputs=inputs, imbalance=float(rng.choice((2.0, 4.0))))


def _first_epoch(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    """Batch statistics that lag: the loss in evaluation lies above that in training at first."""
    widths = recipe.widths if len(recipe.widths) > 1 else recipe.widths * 2
    activation = "relu" if recipe.activation == "sigmoid" else recipe.activation
    return replace(recipe, norm="batch", batch=100, widths=widths, activation=activation)


def _unit_range(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    return replace(recipe, task="images", inputs=_SIZES[recipe.split][0], unit_range=True, epochs=14)


def _residual(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    width = recipe.widths[0]
    depth = 5 if recipe.split == "tuning" else 7
    activation = "relu" if recipe.activation == "sigmoid" else recipe.activation
    return replace(
        recipe,
        widths=(width,) * depth,
        residual=True,
        norm="layer",
        activation=activation,
        optimiser="adam",
        rate=0.003,
    )


def _long(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    """Trained well past the point where the loss is flat, without harm."""
    task = "points" if recipe.task == "spirals" else recipe.task
    inputs = _INPUTS[recipe.split][0] if task == "points" else recipe.inputs
    return replace(recipe, task=task, inputs=inputs, epochs=24, samples=3000, decay=0.002, schedule="cosine")


def _rarely_saved(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    return replace(recipe, saved_steps=10)


def _small_evaluations(recipe: Recipe, rng: np.random.Generator) -> Recipe:
    return replace(recipe, evaluated=16 if recipe.split == "tuning" else 10, epochs=int(1.5 * recipe.epochs))


FAMILIES = {
    "plain": lambda recipe, rng: recipe,
    "frozen backbone by intent": _frozen_backbone,
    "sparse ReLU": _sparse_relu,
    "noisy small batches": _small_batches,
    "dropout": _dropout,
    "warm-up and cosine": _warmup,
    "mild imbalance": _mild_imbalance,
    "batch normalisation lag": _first_epoch,
    "images in 0..1": _unit_range,
    "residual": _residual,
    "long training": _long,
    "rarely saved": _rarely_saved,
    "noisy small evaluations": _small_evaluations,
}
"""What a healthy recipe is varied by."""


def recipe_of(split: Split, number: int, family: str | None = None, **changes: Any) -> Recipe:
    """The healthy recipe of a number; the family goes round unless it is given."""
    recipe, rng = _base(split, number)
    names = ["plain", *FAMILIES]
    chosen = family or names[(number // 5) % len(names)]
    varied = FAMILIES[chosen](recipe, rng)
    convolution = varied.convolution and varied.task == "images"
    return replace(varied, family=chosen, convolution=convolution, **changes)


def healthy_recipes(split: Split, count: int) -> Iterator[Recipe]:
    """So many healthy recipes of a split."""
    return (recipe_of(split, number) for number in range(count))
