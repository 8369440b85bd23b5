"""TreeDepth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from smdbg_builtin_rules.tree_depth import TreeDepth
from smdbg_core import evaluate
from tests.builtin_rules.conftest import Judge


def tree(*nodes: int) -> dict[int, dict[str, object]]:
    return {0: {"trees/Node": np.array(nodes)}}


@pytest.mark.parametrize(
    ("largest", "depth", "status"),
    [(30, 4, "clean"), (62, 4, "fired"), (0, 0, "clean"), (2, "0", "fired"), (31, 4, "fired")],
)
def test_depth_from_the_largest_id(judge: Judge, largest: int, depth: object, status: str) -> None:
    assert judge(TreeDepth(depth=depth), tree(*range(largest + 1))).status == status


def test_links_give_the_exact_depth(judge: Judge) -> None:
    # A chain with ids given in the order of growth: depth 3, which the largest id 6 hides.
    chain = {
        "trees/Node": np.arange(7),
        "trees/ID": [f"0-{n}" for n in range(7)],
        "trees/Yes": ["0-1", "nan", "0-3", "nan", "0-5", "nan", "nan"],
        "trees/No": ["0-2", "nan", "0-4", "nan", "0-6", "nan", "nan"],
    }
    assert judge(TreeDepth(depth=2), {0: chain}).status == "clean"
    outcome = judge(TreeDepth(depth=2, exact_depth=True), {0: chain})
    assert outcome.findings[0].value == 3
    assert judge(TreeDepth(exact_depth=True), tree(0, 1, 2)).status == "not_evaluated"


def test_no_trees(judge: Judge) -> None:
    assert judge(TreeDepth(), {0: {"train-rmse": 1.0}}).status == "not_evaluated"


def test_several_classes_are_warned_of(write: Callable[..., str]) -> None:
    steps = tree(0, 1, 2)
    steps[0]["hyperparameters/num_class"] = np.array([3])
    (warning,) = evaluate(write(steps), [TreeDepth()]).warnings
    assert warning.startswith("TreeDepth: a model of several classes")
