"""Values as strings: one encoding per type, and back without loss."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdbg_core.conversion import convert
from smdbg_core.errors import ConfigError
from smdbg_core.parameters import Meta, Parameter
from smdbg_core.sagemaker.encoding import decode_mapping, encode, encode_parameter, is_nothing

NUMBERS = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False))
TYPES = [
    (bool, st.booleans()),
    (int, st.integers()),
    (float, st.floats(allow_nan=False)),
    (str, st.text()),
    (str | None, st.none() | st.text()),
    (tuple[str, ...], st.lists(st.text(), max_size=4).map(tuple)),
    (tuple[int, ...], st.lists(st.integers(), max_size=4).map(tuple)),
    (tuple[float, ...], st.lists(st.floats(allow_nan=False), max_size=4).map(tuple)),
]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"),
        (500, "500"),
        (500.0, "500"),
        (1e-07, "1e-07"),
        (0.5, "0.5"),
        (float("inf"), "inf"),
        (np.float64(2.0), "2"),
        (np.array([1, 2]), "1,2"),
        ("a b", "a b"),
        (("weights", "bias"), "weights,bias"),
        (("a,b", "c"), r"a\,b,c"),
        ({"b": 1.0, "a": [1, None]}, '{"b":1,"a":[1,null]}'),
    ],
)
def test_strings(value: Any, text: str) -> None:
    assert encode(value) == text


@pytest.mark.parametrize("bad", [float("nan"), object(), b"x", {"a": float("nan")}])
def test_what_cannot_be_sent(bad: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be sent"):
        encode(bad)


@pytest.mark.parametrize(("annotation", "values"), TYPES, ids=[str(a) for a, _ in TYPES])
def test_round_trip(annotation: Any, values: st.SearchStrategy[Any]) -> None:
    parameter = Parameter("p", Annotated[annotation, Meta()], None)

    @given(values)
    def check(given_value: Any) -> None:
        value = convert(parameter.conversion, given_value).value  # as a rule would have it
        try:
            text = encode_parameter(parameter, value)
        except ConfigError:
            assert isinstance(value, tuple)  # a list of what reads as something else, such as "none"
            return
        if text is None:
            assert value is None
        else:
            assert convert(parameter.conversion, text).value == value

    check()


def test_regular_expressions_with_commas_survive() -> None:
    parameter = Parameter("p", tuple[str, ...], ())
    for value in (("a{1,2}", "b"), ("a,b",), ("[", "x"), ("\\",)):
        text = encode_parameter(parameter, value)
        assert convert(parameter.conversion, text).value == value


def test_none_is_left_out_unless_the_default_is_something_else() -> None:
    assert encode_parameter(Parameter("p", int | None, None), None) is None
    assert encode_parameter(Parameter("p", int | None, 5), None) == "None"


@given(st.dictionaries(st.text(), st.one_of(NUMBERS, st.text(), st.booleans(), st.none()), max_size=4))
def test_mappings_in_both_spellings(value: dict[str, Any]) -> None:
    if not any(isinstance(v, float) and v in (float("inf"), float("-inf")) for v in value.values()):
        assert decode_mapping(encode(value)) == value
        assert decode_mapping(str(value)) == value


@pytest.mark.parametrize(
    "bad", ["[1]", "{1: 2}", "__import__('os').getcwd()", "{'a': open('x')}", "(" * 5000, ""]
)
def test_mappings_are_parsed_and_never_run(bad: str) -> None:
    with pytest.raises(ConfigError, match="neither a JSON object nor"):
        decode_mapping(bad)


def test_nothing() -> None:
    assert all(map(is_nothing, (None, "", "None", "null", " NULL ")))
    assert not any(map(is_nothing, ("0", "False", 0, "nil")))
