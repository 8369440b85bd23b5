"""Gradient boosting with XGBoost, recorded as its hook would."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smdbg_core import TrialWriter
from smdbg_core.runs.trial import Collection
from tests.detection.recipes import Split

__all__ = ["BoostedInjection", "BoostedRecipe", "boost", "boosted_recipe", "boosted_recipes"]

_COLLECTIONS = (
    Collection("weights", ["^$"]),
    Collection("metrics", ["^(train|validation)-"]),
    Collection("losses", ["^(train|validation)-(?!auc)"]),
    Collection("feature_importance", ["^feature_importance/"]),
    Collection("labels", ["^labels$"]),
    Collection("predictions", ["^predictions$"]),
    Collection("trees", ["^trees/"]),
    Collection("hyperparameters", ["^hyperparameters/"]),
)
_IMPORTANCES = ("weight", "gain", "cover", "total_gain", "total_cover")


@dataclass(frozen=True)
class BoostedRecipe:
    """A boosted model: data and parameters."""

    split: Split
    seed: int
    family: str
    objective: str
    features: int
    informative: int
    samples: int
    depth: int
    eta: float
    rounds: int
    every: int
    imbalance: float = 1.0


@dataclass(frozen=True)
class BoostedInjection:
    """What is done wrong; by default nothing."""

    leak: float | None = None
    """A feature that is the label, wrong in this share of the samples."""

    depth: int | None = None
    eta: float | None = None
    samples: int | None = None
    label_noise: float = 0.0
    shuffled_labels: bool = False


def boosted_recipe(split: Split, number: int) -> BoostedRecipe:
    """The healthy recipe of a number."""
    seed = {"tuning": 300_000, "reporting": 700_000}[split] + number
    rng = np.random.default_rng(seed)
    features = int(rng.choice((4, 8, 14) if split == "tuning" else (5, 10, 20)))
    return BoostedRecipe(
        split=split,
        seed=seed,
        family="boosting",
        objective="reg:squarederror" if number % 4 == 3 else "binary:logistic",
        features=features,
        informative=int(rng.integers(3, max(4, features // 2 + 1))),
        samples=int(rng.choice((900, 1500))),
        depth=int(rng.choice((2, 4, 6) if split == "tuning" else (3, 5, 6))),
        eta=float(rng.choice((0.1, 0.2, 0.3))),
        rounds=int(rng.choice((30, 50))),
        every=int(rng.choice((1, 3))),
        imbalance=float(rng.choice((1.0, 1.0, 3.0))),
    )


def boosted_recipes(split: Split, count: int) -> list[BoostedRecipe]:
    """So many healthy recipes."""
    return [boosted_recipe(split, number) for number in range(count)]


def boost(recipe: BoostedRecipe, injection: BoostedInjection, folder: Path | None = None) -> float:
    """Train a model, with a folder record it, and return its score: 0 is chance, 1 is perfect."""
    import xgboost

    inputs, labels, held_out, held_out_labels = _data(recipe, injection)
    names = [f"f{number}" for number in range(inputs.shape[1])]
    train = xgboost.DMatrix(inputs, labels, feature_names=names)
    validation = xgboost.DMatrix(held_out, held_out_labels, feature_names=names)
    classifies = recipe.objective == "binary:logistic"
    settings: dict[str, Any] = {
        "objective": recipe.objective,
        "max_depth": injection.depth or recipe.depth,
        "eta": injection.eta or recipe.eta,
        "subsample": 0.8,
        "seed": recipe.seed,
        "nthread": 1,
        "verbosity": 0,
        "eval_metric": ["logloss", "error", "auc"] if classifies else ["rmse"],
    }
    if injection.depth is not None and injection.depth > 6:
        settings |= {"min_child_weight": 0, "lambda": 0}
    model = xgboost.Booster(settings, [train, validation])
    writer = None if folder is None else TrialWriter(folder, collections=_COLLECTIONS)
    for number in range(recipe.rounds):
        model.update(train, number)
        if writer is not None and number % recipe.every == 0:
            with writer.step(number) as step:
                for name, value in _tensors(model, train, validation, number, settings).items():
                    step.add(name, value)
    if writer is not None:
        writer.__exit__(None, None, None)
    predicted = model.predict(validation)
    if not classifies:
        return float(1 - np.square(predicted - held_out_labels).mean() / held_out_labels.var())
    recalls = [((predicted > 0.5) == one)[held_out_labels == one].mean() for one in (0, 1)]
    return float(2 * np.mean(recalls) - 1)


def _data(recipe: BoostedRecipe, injection: BoostedInjection) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(recipe.seed + 17)
    train, held_out = injection.samples or recipe.samples, 500
    inputs = rng.standard_normal((train + held_out, recipe.features))
    weight = np.zeros(recipe.features)
    weight[: recipe.informative] = rng.uniform(0.5, 1.5, recipe.informative) * rng.choice(
        (-1, 1), recipe.informative
    )
    signal = inputs @ weight + 0.6 * np.abs(inputs[:, 0]) + 0.5 * inputs[:, 1] * inputs[:, 2]
    signal = (signal - signal.mean()) / signal.std()
    if recipe.objective == "binary:logistic":
        cut = np.quantile(signal, recipe.imbalance / (1 + recipe.imbalance))
        labels = (signal + 0.15 * rng.standard_normal(len(signal)) > cut).astype(np.float64)
    else:
        labels = signal + 0.2 * rng.standard_normal(len(signal)) + 3
    if injection.leak is not None:
        wrong = rng.random(len(labels)) < injection.leak
        inputs = np.column_stack([inputs, np.where(wrong, rng.permutation(labels), labels)])
    shuffled = rng.permutation(train)
    if injection.shuffled_labels:
        labels[:train] = labels[shuffled]
    noisy = np.flatnonzero(rng.random(train) < injection.label_noise)
    labels[noisy] = labels[rng.permutation(noisy)]
    return inputs[:train], labels[:train], inputs[train:], labels[train:]


def _tensors(
    model: Any, train: Any, validation: Any, number: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """What the hook saves after a round."""
    saved: dict[str, Any] = {}
    for part in model.eval_set([(train, "train"), (validation, "validation")], number).split("\t")[1:]:
        name, _, value = part.rpartition(":")
        saved[name] = np.array([float(value)])
    for kind in _IMPORTANCES:
        scores = model.get_score(importance_type=kind)
        total = sum(scores.values())
        for feature, score in scores.items():
            saved[f"feature_importance/{kind}/{feature}"] = np.array([score / total])
    saved["labels"], saved["predictions"] = validation.get_label(), model.predict(validation)
    rows = _nodes(model.get_dump(with_stats=True)[-1], number)
    saved["trees/Node"] = np.array([node for node, _, _ in rows], np.int64)
    saved["trees/ID"] = np.array([f"{number}-{node}" for node, _, _ in rows])
    saved["trees/Yes"] = np.array([f"{number}-{yes}" if yes else "nan" for _, yes, _ in rows])
    saved["trees/No"] = np.array([f"{number}-{no}" if no else "nan" for _, _, no in rows])
    if number == 0:
        saved |= {f"hyperparameters/{name}": np.array([str(settings[name])]) for name in ("objective", "eta")}
    return saved


def _nodes(dump: str, number: int) -> list[tuple[int, str, str]]:
    """Node, and the nodes that follow it, of every line of a dumped tree."""
    rows = []
    for line in dump.splitlines():
        node, _, rest = line.strip().partition(":")
        links = dict(part.split("=") for part in rest.rpartition("]")[2].strip().split(",") if "=" in part)
        rows.append((int(node), links.get("yes", ""), links.get("no", "")))
    return rows
