"""The saving plan: which steps are saved, and whether they are enough."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from smdbg_core.reads import Compare, Reads
from smdbg_core.sagemaker.saving import SavingPlan, glob_hint


@pytest.mark.parametrize(
    ("parameters", "steps"),
    [
        ({}, [0, 500, 1000]),
        ({"save_interval": "5"}, [0, 5, 10]),
        ({"save_interval": "5", "start_step": "7"}, [10, 15, 20]),
        ({"save_interval": "5", "end_step": "10"}, [0, 5]),
        ({"save_steps": "0,3", "save_interval": "100"}, [0, 3, 100]),
        ({"save_steps": "7", "end_step": "0"}, [7]),
        ({"train.save_interval": "3"}, [0, 500, 1000]),
    ],
)
def test_steps(parameters: dict[str, str], steps: list[int]) -> None:
    assert list(islice(SavingPlan({"x": parameters}).steps("x"), 3)) == steps


def test_steps_of_a_mode_and_of_the_hook() -> None:
    plan = SavingPlan({"x": {"train.save_interval": "3"}}, {"save_interval": "50"}, total_steps=120)
    assert list(plan.steps("x")) == [0, 50, 100]
    assert list(islice(plan.steps("x", "train"), 3)) == [0, 3, 6]


PLAN = SavingPlan({"gradients": {"save_interval": "500"}, "relu": {"include_regex": ".*relu_output"}})


@pytest.mark.parametrize(
    ("groups", "answer", "step"),
    [
        ([Reads(collections=("gradients",))], "yes", 0),
        ([Reads(collections=("gradients",), min_points=3)], "yes", 1000),
        ([Reads(collections=("gradients",), compare=(Compare("x", last=1),))], "yes", 500),
        ([Reads(collections=("gradients",), compare=(Compare("x", within=500),))], "yes", 500),
        ([Reads(collections=("gradients",), compare=(Compare("x", within=499),))], "no", None),
        ([Reads(collections=("gradients",), first=1, min_points=2)], "no", None),
        ([Reads(collections=("biases",))], "no", None),
        ([Reads(collections=("losses",))], "yes", 0),
        ([Reads(everything=True)], "yes", 0),
        ([Reads(patterns=("relu_output",))], "yes", 0),
        ([Reads(patterns=("tanh|relu_output",))], "yes", 0),
        ([Reads(patterns=("conv",))], "unknown", None),
        ([Reads(collections=("biases",)), Reads(collections=("gradients",), fallback=True)], "yes", 0),
        ([Reads(collections=("gradients",)), Reads(collections=("biases",), optional=True)], "yes", 0),
        ([Reads(collections=("gradients",)), Reads(collections=("biases",))], "no", None),
        ([Reads(collections=("biases",), optional=True)], "no", None),
        ([], "yes", 0),
    ],
)
def test_decisions(groups: list[Reads], answer: str, step: int | None) -> None:
    decision = PLAN.decide(groups)
    assert (decision.answer, decision.from_step) == (answer, step)
    assert bool(decision.why) == (answer != "yes")


def test_training_that_is_too_short() -> None:
    plan = SavingPlan({"gradients": {}}, total_steps=400)
    decision = plan.decide([Reads(collections=("gradients",), min_points=2)])
    assert decision.why == "collection gradients is saved 1 times in 400 steps; 2 are needed"


@pytest.mark.parametrize(
    ("parameters", "complaints"),
    [
        ({}, ["collection mine saves nothing: no hook fills it, and it has no include_regex"]),
        ({"include_regex": "conv"}, []),
        (
            {"include_regex": "conv", "start_step": "9", "end_step": "5"},
            ["collection mine saves nothing: no step of the training is one that it saves"],
        ),
        (
            {"include_regex": "conv,relu*"},
            [
                "collection mine: include_regex 'relu*' looks like a glob; as a regular expression, what is meant is 'relu.*'"
            ],
        ),
    ],
)
def test_complaints(parameters: dict[str, str], complaints: list[str]) -> None:
    assert SavingPlan({"mine": parameters}).complaints("mine") == complaints


@pytest.mark.parametrize("pattern", ["flat*", "*loss", "layer1/*", "a-*"])
def test_globs(pattern: str) -> None:
    hint: Any = glob_hint(pattern)
    assert "looks like a glob" in hint


@pytest.mark.parametrize("pattern", [".*relu", "flat.*", r"a\*", "[ab]*", "(x)*", "plain", ""])
def test_regular_expressions(pattern: str) -> None:
    assert glob_hint(pattern) is None
