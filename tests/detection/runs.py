"""Labelled runs: training, recording, the oracle's label, and what the rules say, one after the other."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from concurrent.futures import Executor
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from tests.detection.boosting import BoostedInjection, BoostedRecipe, boost, boosted_recipes
from tests.detection.faults import FAULTS, Fault
from tests.detection.judging import SETTINGS, judge
from tests.detection.metrics import Verdict
from tests.detection.oracle import is_faulty, is_healthy
from tests.detection.recipes import Recipe, Split, healthy_recipes
from tests.detection.training import Injection, train

__all__ = ["Judged", "judge_all", "judge_faulty", "judge_healthy"]

_ATTEMPTS = 3
"""How many times as many runs as are wanted are tried, where the oracle cannot label all of them."""


class Judged(NamedTuple):
    """Verdicts by preset, in step with `SETTINGS`, and how many runs the oracle could not label."""

    verdicts: tuple[list[Verdict], ...]
    dropped: Counter[str]


def judge_all(split: Split, healthy: int, boosted: int, faulty: int, executor: Executor | None) -> Judged:
    """Train, label and judge every run.

    Args:
        split: Whose seeds and architectures.
        healthy: Healthy networks to train.
        boosted: Healthy boosted models to train.
        faulty: Labelled runs of every fault.
        executor: Where the work is done; by default in this process.
    """
    jobs: list[tuple[object, ...]] = [
        (judge_healthy, recipe)
        for recipe in (*healthy_recipes(split, healthy), *boosted_recipes(split, boosted))
    ]
    jobs += [(judge_fault, fault.name, split, faulty) for fault in FAULTS]
    verdicts: tuple[list[Verdict], ...] = tuple([] for _ in SETTINGS)
    dropped: Counter[str] = Counter()
    results = map(_call, jobs) if executor is None else executor.map(_call, jobs)
    for number, (found, left_out) in enumerate(results, start=1):
        print(f"\r{number} of {len(jobs)}", end="", file=sys.stderr, flush=True)
        dropped.update(left_out)
        for all_of_them, one in zip(verdicts, zip(*found, strict=True), strict=False):
            all_of_them.extend(one)
    return Judged(verdicts, dropped)


_Found = tuple[list[tuple[Verdict, ...]], Counter[str]]


def _call(job: tuple[object, ...]) -> _Found:
    function, *arguments = job
    return function(*arguments)  # type: ignore[operator,no-any-return]


def judge_healthy(recipe: Recipe | BoostedRecipe) -> _Found:
    """One run without a fault."""
    with tempfile.TemporaryDirectory(prefix="smdbg-detection-") as folder:
        injection = BoostedInjection() if isinstance(recipe, BoostedRecipe) else Injection()
        if not is_healthy(_score(recipe, injection, Path(folder, "run"))):
            return [], Counter({f"healthy: {recipe.family}": 1})
        return [_verdicts(None, recipe.family, Path(folder, "run"))], Counter()


def judge_fault(name: str, split: Split, wanted: int) -> _Found:
    """So many runs with a fault."""
    fault = next(one for one in FAULTS if one.name == name)
    found: list[tuple[Verdict, ...]] = []
    dropped: Counter[str] = Counter()
    for number in islice(count(), wanted * _ATTEMPTS):
        if len(found) == wanted:
            break
        verdicts = judge_faulty(fault, split, number)
        if verdicts is None:
            dropped[name] += 1
        else:
            found.append(verdicts)
    return found, dropped


def judge_faulty(fault: Fault, split: Split, number: int) -> tuple[Verdict, ...] | None:
    """One run with a fault; `None` if the oracle cannot label it."""
    run = fault.make(split, number)
    twin = _score(run.twin, type(run.injection)(), None)
    if not is_healthy(twin):
        return None
    with tempfile.TemporaryDirectory(prefix="smdbg-detection-") as folder:
        score = _score(run.recipe, run.injection, Path(folder, "run"))
        if not is_faulty(score, twin, harms=fault.harms):
            return None
        return _verdicts(fault.name, run.recipe.family, Path(folder, "run"))


def _score(
    recipe: Recipe | BoostedRecipe, injection: Injection | BoostedInjection, folder: Path | None
) -> float:
    if isinstance(recipe, BoostedRecipe):
        assert isinstance(injection, BoostedInjection)
        return boost(recipe, injection, folder)
    assert isinstance(injection, Injection)
    return train(recipe, injection, folder).score


def _verdicts(fault: str | None, family: str, folder: Path) -> tuple[Verdict, ...]:
    return tuple(Verdict(fault, family, judge(folder, preset)) for preset in SETTINGS)
