"""The splits have nothing in common, and the map speaks of rules that there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smdbg_core import Registry
from tests.detection.boosting import boosted_recipes
from tests.detection.faults import FAULTS
from tests.detection.judging import PARAMETERS, UNMEASURED
from tests.detection.layers import (
    Activation,
    BatchNorm,
    Convolution,
    Embedding,
    Layer,
    LayerNorm,
    Linear,
    Skip,
)
from tests.detection.oracle import is_faulty, is_healthy
from tests.detection.recipes import FAMILIES, Recipe, healthy_recipes, recipe_of

RULES = {spec.name for spec in Registry().rules() if spec.distribution == "smdbg-builtin-rules"}


def test_the_map_names_real_rules() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    mapped = {rule for fault in FAULTS for rule in fault.rules}
    assert mapped | UNMEASURED.keys() == RULES
    assert not mapped & UNMEASURED.keys()
    assert PARAMETERS.keys() <= RULES


def test_the_splits_are_disjoint() -> None:
    def traits(recipes: list[Recipe], trait: Callable[[Recipe], Any]) -> set[Any]:
        return {trait(recipe) for recipe in recipes}

    tuning, reporting = list(healthy_recipes("tuning", 300)), list(healthy_recipes("reporting", 300))
    assert not traits(tuning, lambda r: r.seed) & traits(reporting, lambda r: r.seed)
    assert not traits(tuning, lambda r: r.widths) & traits(reporting, lambda r: r.widths)
    assert traits(tuning, lambda r: r.family) == traits(reporting, lambda r: r.family) == set(FAMILIES)
    seeds = [{recipe.seed for recipe in boosted_recipes(split, 50)} for split in ("tuning", "reporting")]
    assert not seeds[0] & seeds[1]


def test_recipes_are_reproducible() -> None:
    assert recipe_of("tuning", 7) == recipe_of("tuning", 7)
    for fault in FAULTS:
        assert fault.make("tuning", 3) == fault.make("tuning", 3)
        assert fault.make("tuning", 3).twin != fault.make("tuning", 4).twin


def test_the_oracle() -> None:
    assert is_healthy(0.7)
    assert not is_healthy(0.3)
    assert is_faulty(0.5, 0.9, harms=True)
    assert not is_faulty(0.85, 0.9, harms=True), "the outcome does not confirm it"
    assert is_faulty(0.9, 0.9, harms=False), "the injection is the fault"
    assert not is_faulty(0.1, 0.3, harms=True), "its twin is not healthy"
    assert is_faulty(float("nan"), 0.9, harms=True)


def _draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape)


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [
        (Linear("fc1", _draw(4, 5)), _draw(3, 5)),
        (Convolution("conv1", _draw(2, 1, 3, 3)), _draw(2, 1, 8, 8)),
        (Embedding(_draw(60, 3)), np.array([[1, 2, 0], [3, 3, 4]])),
        (BatchNorm("bn1", 5), _draw(6, 5)),
        (LayerNorm("ln1", 5), _draw(6, 5)),
        (Activation("tanh", 1), _draw(3, 4)),
        (Activation("sigmoid", 1), _draw(3, 4)),
        (Activation("leaky_relu", 1), _draw(3, 4)),
        (Skip([Linear("fc1", _draw(4, 4)), Activation("relu", 1)]), _draw(3, 4)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Layer) else "",
)
def test_backward_passes_are_right(layer: Layer, inputs: np.ndarray) -> None:
    """Against numerical derivatives: a wrong gradient would be a fault that nobody injected."""
    for parameter in layer.parameters:
        parameter.value = parameter.value.astype(np.float64)
    towards = _draw(*layer.forward(inputs, True).shape)
    by_input = layer.backward(towards)

    def loss() -> float:
        return float((layer.forward(inputs, True) * towards).sum())

    checked = [(one.value, one.gradient.copy()) for one in layer.parameters]
    if inputs.dtype.kind == "f" and not isinstance(layer, Convolution):
        checked.append((inputs, np.asarray(by_input)))
    for values, gradient in checked:
        for place in list(np.ndindex(values.shape))[::7]:
            kept = values[place]
            values[place] = kept + 1e-5
            above = loss()
            values[place] = kept - 1e-5
            below = loss()
            values[place] = kept
            assert (above - below) / 2e-5 == pytest.approx(gradient[place], rel=1e-3, abs=1e-5)
