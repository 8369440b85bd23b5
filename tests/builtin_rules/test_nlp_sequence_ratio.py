"""NLPSequenceRatio."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.nlp_sequence_ratio import NLPSequenceRatio
from tests.builtin_rules.conftest import Judge


def ids(*tokens: int) -> dict[int, dict[str, object]]:
    return {0: {"net0_embedding0_input_0": np.array([tokens])}}


@pytest.mark.parametrize(
    ("tokens", "parameters", "status"),
    [
        ((5, 7, 0, 0, 0, 0), {}, "fired"),
        ((5, 7, 0, 0), {}, "clean"),
        ((3, 3, 1, 2, 0, 9, 9, 9), {"token_values": "3, 0", "token_thresholds_percent": "20, 50"}, "fired"),
        ((3, 1, 1, 2, 0, 9, 9, 9), {"token_values": "3, 0", "token_thresholds_percent": "20, 50"}, "clean"),
        ((3, 3, 1, 2), {"token_values": [3, 9], "token_thresholds_percent": 40}, "fired"),
    ],
)
def test_share_of_tokens(
    judge: Judge, tokens: tuple[int, ...], parameters: dict[str, object], status: str
) -> None:
    assert judge(NLPSequenceRatio(**parameters), ids(*tokens)).status == status


def test_limits_must_fit_tokens() -> None:
    with pytest.raises(ValueError, match="3 limits for 2 token_values"):
        NLPSequenceRatio(token_values="1,2", token_thresholds_percent="1,2,3")


def test_not_evaluated(judge: Judge) -> None:
    assert judge(NLPSequenceRatio(), {0: {"other": np.zeros(3)}}).status == "not_evaluated"
    assert judge(NLPSequenceRatio(), ids()).reason == "empty tensor (1 point)"


@pytest.mark.parametrize(
    "name", ["embedding_input_0", "Embedding_input_0", "encoder.embedding_input_0", "embedding_1/inputs"]
)
def test_names_of_frameworks(judge: Judge, name: str) -> None:
    assert judge(NLPSequenceRatio(), {0: {name: np.zeros((2, 3))}}).status == "fired"


@pytest.mark.parametrize(("padded", "status"), [(3, "fired"), (2, "clean")])
def test_patience_waits_for_a_streak(judge: Judge, padded: int, status: str) -> None:
    steps = {n: ids(*((0, 0, 0, 5) if n < padded else (1, 2, 3, 0)))[0] for n in range(5)}
    assert judge(NLPSequenceRatio(patience=3), steps).status == status
