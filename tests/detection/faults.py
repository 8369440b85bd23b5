"""Faults: what is injected, how the oracle confirms it, and which rules should find it.

The map from fault to rules says what a maintainer of the rules expects from their descriptions; it was
written down before the first run, and is not fitted to what fires. An empty entry is a fault that no rule
of the 21 is made for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tests.detection.boosting import BoostedInjection, BoostedRecipe, boosted_recipe
from tests.detection.recipes import Recipe, Split, recipe_of
from tests.detection.training import Injection

__all__ = ["FAULTS", "Fault", "FaultyRun"]


class FaultyRun(NamedTuple):
    """A healthy recipe, how it is changed beforehand, and what goes wrong in training."""

    twin: Recipe | BoostedRecipe
    """What the outcome is compared with."""

    recipe: Recipe | BoostedRecipe
    injection: Injection | BoostedInjection


class Fault(NamedTuple):
    """A kind of fault."""

    name: str
    rules: tuple[str, ...]
    """Rules that should find it."""

    make: Callable[[Split, int], FaultyRun]
    harms: bool = True
    """Whether a lower score than the twin's confirms it; otherwise the injection itself does."""


def _network(
    injection: Injection, base: Mapping[str, Any] | None = None, **changes: Any
) -> Callable[[Split, int], FaultyRun]:
    """A fault of a network: `base` makes it fit for the fault, `changes` are part of the fault."""

    def make(split: Split, number: int) -> FaultyRun:
        twin = recipe_of(split, 5000 + number, "plain")
        given = dict(base or {})
        if given.get("task") not in (None, twin.task):
            number = number * 5 + _TASKS.index(given["task"])
            twin = recipe_of(split, 5000 + number, "plain")
        width = given.pop("depth", None)
        if width is not None:
            given["widths"] = (twin.widths * width)[: width + (split == "reporting")]
        twin = replace(twin, **given)
        return FaultyRun(twin, replace(twin, **changes), injection)

    return make


_TASKS = ("points", "images", "sequences", "spirals", "regression")


def _classification(
    injection: Injection, base: Mapping[str, Any] | None = None, **changes: Any
) -> Callable[[Split, int], FaultyRun]:
    """As `_network`, but on tasks with classes only."""

    def make(split: Split, number: int) -> FaultyRun:
        task = ("points", "images", "sequences")[number % 3]
        return _network(injection, {**(base or {}), "task": task}, **changes)(split, number // 3)

    return make


def _images(injection: Injection) -> Callable[[Split, int], FaultyRun]:
    return _network(injection, {"task": "images"})


def _activation(kind: str, injection: Injection, **base: Any) -> Callable[[Split, int], FaultyRun]:
    init = "glorot" if kind in ("tanh", "sigmoid") else "he"
    return _network(injection, {"activation": kind, "init": init, "norm": None, **base})


def _boosted(
    injection: BoostedInjection, objective: str | None = None, **changes: Any
) -> Callable[[Split, int], FaultyRun]:
    def make(split: Split, number: int) -> FaultyRun:
        twin = boosted_recipe(split, 5000 + number)
        twin = replace(twin, objective=objective or twin.objective)
        return FaultyRun(twin, replace(twin, **changes), injection)

    return make


def _various(*makers: Callable[[Split, int], FaultyRun]) -> Callable[[Split, int], FaultyRun]:
    """The makers in turn, for faults that come in several strengths."""
    return lambda split, number: makers[number % len(makers)](split, number)


_NOT_LEARNING = ("LossNotDecreasing", "PoorWeightInitialization")
_NOT_MOVING = ("UnchangedTensor", "WeightUpdateRatio")

FAULTS: tuple[Fault, ...] = (
    Fault(
        "learning rate far too high",
        ("ExplodingTensor", "LossNotDecreasing", "WeightUpdateRatio", "DeadRelu", "SaturatedActivation"),
        _various(*(_network(Injection(rate_factor=factor)) for factor in (50, 150, 400))),
    ),
    Fault(
        "learning rate far too low",
        ("LossNotDecreasing", *_NOT_MOVING),
        _various(*(_network(Injection(rate_factor=factor)) for factor in (1e-2, 1e-3, 1e-5))),
    ),
    Fault(
        "gradient ascent",
        ("LossNotDecreasing", "ExplodingTensor"),
        _network(Injection(ascent=True)),
    ),
    Fault(
        "gradients not cleared",
        ("LossNotDecreasing", "ExplodingTensor", "WeightUpdateRatio", "DeadRelu", "SaturatedActivation"),
        _network(Injection(gradients_kept=True)),
    ),
    Fault(
        "zero initialisation",
        ("AllZero", "VanishingGradient", "TensorVariance", *_NOT_LEARNING, *_NOT_MOVING),
        _network(Injection(init="zero"), {"depth": 2, "norm": None}),
    ),
    Fault(
        "constant initialisation",
        ("TensorVariance", *_NOT_LEARNING),
        _network(Injection(init="constant"), {"depth": 2, "norm": None}),
    ),
    Fault(
        "huge initialisation",
        ("TensorVariance", "ExplodingTensor", "DeadRelu", "SaturatedActivation", *_NOT_LEARNING),
        _network(Injection(init="huge"), {"norm": None}),
    ),
    Fault(
        "initialisation far too small",
        ("VanishingGradient", "TensorVariance", *_NOT_LEARNING),
        _network(Injection(init="tiny"), {"depth": 4, "norm": None}),
    ),
    Fault(
        "vanishing depth",
        ("VanishingGradient", *_NOT_LEARNING),
        _network(
            Injection(),
            {"activation": "relu", "norm": None, "task": "points"},
            widths=(12,) * 10,
            activation="sigmoid",
            init="torch",
        ),
    ),
    Fault(
        "missing input normalisation", ("CheckInputImages",), _images(Injection(inputs="raw")), harms=False
    ),
    Fault(
        "double input normalisation", ("CheckInputImages",), _images(Injection(inputs="double")), harms=False
    ),
    Fault(
        "blank inputs",
        ("AllZero", "VanishingGradient", "LossNotDecreasing"),
        _network(Injection(inputs="blank"), {"norm": None}),
    ),
    Fault(
        "dead ReLUs",
        ("DeadRelu", "AllZero", "VanishingGradient"),
        _various(*(_activation("relu", Injection(shift=shift)) for shift in (-5.0, -8.0, -12.0))),
        harms=False,
    ),
    Fault(
        "saturated tanh",
        ("SaturatedActivation", "VanishingGradient", "PoorWeightInitialization"),
        _various(*(_activation("tanh", Injection(gain=gain)) for gain in (15, 30, 80))),
    ),
    Fault(
        "saturated sigmoid",
        ("SaturatedActivation", "VanishingGradient", "PoorWeightInitialization"),
        _various(*(_activation("sigmoid", Injection(gain=gain), optimiser="adam") for gain in (40, 80, 160))),
    ),
    Fault(
        "layers frozen by mistake",
        _NOT_MOVING,
        _network(Injection(not_optimised=1), {"depth": 2}),
        harms=False,
    ),
    Fault(
        "optimiser step skipped",
        ("LossNotDecreasing", *_NOT_MOVING),
        _network(Injection(skipped_step=True)),
    ),
    Fault(
        "NaN in the data",
        ("ExplodingTensor", "LossNotDecreasing"),
        _various(
            *(
                _network(Injection(nan_share=s), {"task": t})
                for s in (0.002, 0.02)
                for t in ("points", "images")
            )
        ),
    ),
    Fault(
        "unbalanced labels",
        ("ClassImbalance", "Confusion"),
        _various(*(_classification(Injection(), imbalance=float(one)) for one in (30, 60, 120))),
        harms=False,
    ),
    Fault(
        "shuffled labels",
        ("LossNotDecreasing", "Overfit", "Confusion", "ClassImbalance"),
        _classification(Injection(shuffled_labels=True)),
    ),
    Fault(
        "overfit",
        ("Overfit", "Overtraining"),
        _various(
            *(
                _classification(Injection(samples=count), epochs=150, widths=(96, 64), batch=16)
                for count in (40, 60, 90)
            )
        ),
    ),
    Fault(
        "overtrained",
        ("Overtraining", "Overfit"),
        _classification(
            Injection(label_noise=0.25, samples=500),
            epochs=70,
            widths=(128, 64),
            optimiser="adam",
            rate=0.003,
        ),
    ),
    Fault(
        "padded batches",
        ("NLPSequenceRatio",),
        _various(*(_network(Injection(), {"task": "sequences"}, padding=share) for share in (0.65, 0.8))),
        harms=False,
    ),
    Fault(
        "leaking feature",
        ("FeatureImportanceOverweight",),
        _various(_boosted(BoostedInjection(leak=0.02)), _boosted(BoostedInjection(leak=0.0))),
        harms=False,
    ),
    Fault("deep trees", ("TreeDepth",), _boosted(BoostedInjection(depth=14, label_noise=0.1)), harms=False),
    Fault(
        "boosting: overfit",
        ("Overfit", "Overtraining"),
        _boosted(BoostedInjection(samples=80, depth=6, eta=0.5, label_noise=0.15), rounds=120),
    ),
    Fault(
        "boosting: learning rate far too low",
        ("LossNotDecreasing",),
        _various(_boosted(BoostedInjection(eta=1e-4)), _boosted(BoostedInjection(eta=1e-3))),
        harms=False,
    ),
    Fault(
        "boosting: unbalanced labels",
        ("ClassImbalance", "Confusion"),
        _boosted(BoostedInjection(), "binary:logistic", imbalance=40.0),
        harms=False,
    ),
    Fault(
        "boosting: shuffled labels",
        ("Overfit", "Overtraining", "Confusion", "ClassImbalance", "LossNotDecreasing"),
        _boosted(BoostedInjection(shuffled_labels=True)),
    ),
    Fault(
        "validation data inside the training data",
        (),
        _classification(Injection(validation_in_training=True)),
        harms=False,
    ),
    Fault("a third of the labels wrong", (), _classification(Injection(label_noise=0.35)), harms=False),
    Fault("data sorted by class", (), _classification(Injection(sorted_data=True)), harms=False),
    Fault(
        "dropout left on in evaluation",
        (),
        _network(Injection(dropout_in_evaluation=True), {"dropout": 0.4}),
        harms=False,
    ),
)
