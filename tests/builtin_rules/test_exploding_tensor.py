"""ExplodingTensor."""

from __future__ import annotations

import numpy as np

from smdbg_builtin_rules.exploding_tensor import ExplodingTensor
from tests.builtin_rules.conftest import Judge, fired_at


def test_fires_on_nan_and_infinity(judge: Judge) -> None:
    steps = {
        n: {"foo": np.array([1.0 if n == 1 else np.nan]), "bar": np.array([np.inf, 1.0])} for n in range(3)
    }
    outcome = judge(ExplodingTensor(), steps)
    assert {(f.subject, f.step, f.last_step) for f in outcome.findings} == {
        ("foo", 0, 0),
        ("foo", 2, 2),
        ("bar", 0, 2),
    }
    assert outcome.severity == "critical"


def test_only_nan_leaves_infinities_alone(judge: Judge) -> None:
    assert judge(ExplodingTensor(only_nan="true"), {0: {"a": np.array([np.inf, 1])}}).status == "clean"
    assert judge(ExplodingTensor(only_nan="false"), {0: {"a": np.array([np.inf, 1])}}).status == "fired"


def test_integers_cannot_explode(judge: Judge) -> None:
    assert judge(ExplodingTensor(), {0: {"a": np.array([1, 2], np.int32)}}).status == "clean"


def test_half_overflow_counts(judge: Judge) -> None:
    with np.errstate(over="ignore"):
        value = np.array([70000.0]).astype(np.float16)
    assert judge(ExplodingTensor(), {0: {"a": value}}).status == "fired"


def test_selectors(judge: Judge) -> None:
    steps = {0: {"gradient/a": np.array([np.nan]), "b": np.array([1.0])}}
    assert judge(ExplodingTensor(collection_names="gradients,weights"), steps).status == "fired"
    assert judge(ExplodingTensor(tensor_regex="^b"), steps).status == "clean"
    nothing = judge(ExplodingTensor(tensor_regex="zzz"), steps)
    assert (nothing.status, "nothing matched pattern zzz" in str(nothing.reason)) == ("not_evaluated", True)


def test_reductions_prove_some_of_it(judge: Judge) -> None:
    steps = {0: {"a": np.array([np.nan, 1.0])}}
    assert judge(ExplodingTensor(), steps, raw=False, reductions=("mean",)).status == "fired"
    fine = {0: {"a": np.array([2.0, 1.0])}}
    assert judge(ExplodingTensor(), fine, raw=False, reductions=("mean",)).status == "not_evaluated"
    assert judge(ExplodingTensor(), fine, raw=False, reductions=("min", "max")).status == "clean"


def test_starts_where_it_is_told(judge: Judge) -> None:
    steps = {n: {"foo": np.array([1.0 if n == 1 else np.nan])} for n in range(3)}
    assert fired_at(judge(ExplodingTensor(start_step=1), steps)) == [2]
    assert fired_at(judge(ExplodingTensor(end_step=2), steps)) == [0]
