"""Parameters: declaration, conversion, complaints."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from typing import Annotated, Any, ClassVar, Literal, Optional

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdbg_core import Meta, ParameterError, Regex, RunURI, constraint
from smdbg_core.parameters import Parameterized


class Sample(Parameterized):
    """A parameter of every kind."""

    noise: ClassVar[int] = 3
    _state: dict[str, int]

    threshold: Annotated[float, Meta(gt=0, le=10, description="Limit.", unit="volts")] = 1e-7
    count: Annotated[int | None, Meta(ge=1, local=True)] = None
    regexes: Annotated[tuple[Regex, ...], Meta(also=("extra",))] = ("a.*",)
    others: Annotated[tuple[RunURI, ...], Meta(aliases=("other", "other_<n>"))] = ()
    mode: Literal["TRAIN", "EVAL"] | None = None
    flag: bool = False
    name: str = "x"
    shares: tuple[Annotated[float, Meta(ge=0, le=100)], ...] = (50.0,)

    @constraint("count", "threshold")
    def _in_order(self) -> str | None:
        return "count must be above threshold" if self.count and self.count < self.threshold else None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"threshold": " 1e-3 "}, 0.001),
        ({"threshold": "5"}, 5.0),
        ({"threshold": 5}, 5.0),
        ({"threshold": np.float32(2)}, 2.0),
        ({"count": "5.0"}, 5),
        ({"count": 5.0}, 5),
        ({"count": np.int64(7)}, 7),
        ({"count": ""}, None),
        ({"count": "None"}, None),
        ({"count": " null "}, None),
        ({"count": str(10**30)}, 10**30),
        ({"regexes": "a, b,,c"}, ("a", "b", "c")),
        ({"regexes": r"a\,b"}, ("a,b",)),
        ({"regexes": "a{1,2},[x,y](p|q,r)"}, ("a{1,2}", "[x,y](p|q,r)")),
        ({"regexes": '["a{1,2}", "b"]'}, ("a{1,2}", "b")),
        ({"regexes": ["a{1,2}", "b"]}, ("a{1,2}", "b")),
        ({"regexes": None}, ()),
        ({"regexes": "[ab]c"}, ("[ab]c",)),
        ({"regexes": r"relu\d+"}, (r"relu\d+",)),
        ({"mode": "train"}, "TRAIN"),
        ({"mode": "none"}, None),
        ({"flag": "Yes"}, True),
        ({"flag": "0"}, False),
        ({"flag": "false"}, False),
        ({"flag": np.bool_(True)}, True),
        ({"flag": 1}, True),
        ({"name": "  text "}, "text"),
        ({"shares": "3, 0"}, (3.0, 0.0)),
        ({"shares": np.array([1, 2])}, (1.0, 2.0)),
        ({"shares": 7}, (7.0,)),
        ({"other": "p"}, ("p",)),
        ({"other_0": "p", "OTHER_1": "q"}, ("p", "q")),
        ({"THRESHOLD": 1}, 1.0),
    ],
)
def test_values_are_converted(given: dict[str, Any], expected: Any) -> None:
    sample = Sample(**given)
    (changed,) = [name for name in sample.parameters if not sample.is_default(name)] or [
        next(iter(given)).lower()
    ]
    value = sample.parameters[changed]
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({"treshold": 1}, "unknown", "no parameter 'treshold'; did you mean 'threshold'?"),
        ({"zzz": 1}, "unknown", "there are count, flag"),
        ({"threshold": True}, "type", "a boolean, not a number; expected a number > 0 and <= 10"),
        ({"threshold": "abc"}, "type", "threshold='abc': not a number"),
        ({"threshold": "50%"}, "type", "not a number"),
        ({"threshold": "1_0"}, "type", "not a number"),
        ({"threshold": b"1"}, "type", "a bytes, not a number"),
        ({"threshold": float("nan")}, "value", "NaN compares with nothing"),
        ({"threshold": "nan"}, "value", "NaN compares with nothing"),
        ({"threshold": 0}, "value", "out of range"),
        ({"threshold": "inf"}, "value", "out of range"),
        ({"threshold": ""}, "value", "needs a value"),
        ({"threshold": 10**400}, "value", "too large"),
        ({"count": 2.5}, "type", "not a whole number"),
        ({"count": False}, "type", "a boolean"),
        ({"count": "٣"}, "type", "not a number"),
        ({"flag": 2}, "type", "neither true nor false"),
        ({"flag": "maybe"}, "type", "neither true nor false"),
        ({"mode": "JUMP"}, "value", "expected one of TRAIN, EVAL, or none"),
        ({"regexes": "("}, "value", "not a regular expression"),
        ({"regexes": [3]}, "type", "a int, not text"),
        ({"shares": "101"}, "value", "out of range"),
        ({"name": 5}, "type", "not text"),
        ({"count": 1, "COUNT": 2}, "conflict", "'count' and 'COUNT' are one parameter"),
        ({"others": "a", "other_1": "b"}, "conflict", "are one parameter"),
        ({"count": 1, "threshold": 5}, "conflict", "count must be above threshold"),
    ],
)
def test_mistakes_are_named(given: dict[str, Any], kind: str, says: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Sample(**given)
    (problem,) = caught.value.problems
    assert problem.kind == kind
    assert says in problem.message


def test_all_mistakes_come_together_and_survive_pickling() -> None:
    with pytest.raises(ParameterError) as caught:
        Sample(treshold=1, threshold=True, count=2.5, mode="x")
    error = caught.value
    assert [problem.parameter for problem in error.problems] == ["treshold", "threshold", "count", "mode"]
    assert isinstance(error, ValueError)
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert str(same) == str(error)
        assert same.problems == error.problems


def test_the_same_without_assertions() -> None:
    code = (
        "from smdbg_builtin_rules.all_zero import AllZero\n"
        "from smdbg_core import ParameterError\n"
        "try:\n AllZero(threshold=900, tresh=1)\n"
        "except ParameterError as e: print(len(e.problems))"
    )
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"


def test_constraints_wait_for_every_field() -> None:
    with pytest.raises(ParameterError) as caught:
        Sample(count=1, threshold="x")
    assert [problem.kind for problem in caught.value.problems] == ["type"]


def test_signature_and_schema_follow_the_declaration() -> None:
    signature = inspect.signature(Sample)
    assert list(signature.parameters) == list(Sample.__parameters__)
    assert signature.parameters["threshold"].default == 1e-7
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in signature.parameters.values())
    properties = Sample.schema()["properties"]
    assert properties["threshold"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 10,
        "description": "Limit.",
        "default": 1e-7,
        "x-unit": "volts",
    }
    assert properties["count"]["anyOf"] == [{"type": "integer", "minimum": 1}, {"type": "null"}]
    assert properties["count"]["x-local"] is True
    assert properties["mode"]["anyOf"][0]["enum"] == ["TRAIN", "EVAL"]
    assert properties["regexes"]["items"]["format"] == "regex"
    assert Sample.schema()["additionalProperties"] is False


def test_defaults_bring_the_patterns_of_other_frameworks() -> None:
    assert Sample().patterns("regexes") == ("a.*", "extra")
    assert Sample(regexes="a.*").patterns("regexes") == ("a.*", "extra")
    assert Sample(regexes="b").patterns("regexes") == ("b",)


def test_parameters_are_read_only_and_state_is_not() -> None:
    sample = Sample()
    with pytest.raises(AttributeError, match="make a new object"):
        sample.flag = True
    sample._state = {}
    assert repr(Sample(flag=True)) == "Sample(flag=True)"


def test_required_parameters() -> None:
    class Needy(Parameterized):
        path: RunURI

    with pytest.raises(ParameterError, match="path needs a value: the path or URI of a run"):
        Needy()
    assert Needy.schema()["required"] == ["path"]


def test_inheritance() -> None:
    class Child(Sample):
        """Redeclares one, adds one."""

        flag: bool = True
        more: Optional[int] = 3  # noqa: UP045 - that spelling counts too

    assert list(Child.__parameters__)[:2] == ["flag", "more"]
    assert Child().flag is True
    assert Child().threshold == 1e-7
    with pytest.raises(ParameterError, match="count must be above"):
        Child(count=1, threshold=5)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"__annotations__": {"missing": int}, "missing": 1}, "the base class already uses this name"),
        ({"__annotations__": {"Upper": int}, "Upper": 1}, "lower-case words"),
        ({"__annotations__": {"a": dict}, "a": {}}, "is not bool, int, float, str"),
        ({"__annotations__": {"a": int | str}, "a": 1}, "only `X | None`"),
        ({"__annotations__": {"a": tuple[int, int]}, "a": (1, 2)}, "only `tuple"),
        ({"__annotations__": {"a": Annotated[int, Meta(ge=5)]}, "a": 1}, "out of range"),
        ({"__annotations__": {"a": int}, "a": "5"}, "not in its final form"),
        ({"requires": (("nope",),)}, "a check names it, but it is no parameter"),
    ],
)
def test_declarations_that_cannot_work_are_refused(body: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        type("Bad", (Parameterized,), {"__module__": __name__, **body})


@given(st.floats(min_value=1e-300, max_value=10, exclude_min=True))
def test_numbers_survive_text(value: float) -> None:
    assert Sample(threshold=str(value)).threshold == value


@given(st.lists(st.text(alphabet="ab.*,", max_size=4).map(lambda text: text.replace("*", "")), max_size=4))
def test_lists_survive_json(values: list[str]) -> None:
    import json

    stripped = tuple(value.strip() for value in values)
    assert Sample(regexes=json.dumps(values)).patterns("regexes")[: len(stripped)] == stripped or not values


class Exact(Parameterized):
    """Texts of a form."""

    number: Annotated[str, Meta(pattern="[0-9]{2}", takes="two digits", format="digits")]
    word: Annotated[str | None, Meta(check=lambda text: None if text.islower() else "not lower-case")] = None
    words: tuple[Annotated[str, Meta(pattern="[a-z]+")], ...] = ()


def test_texts_of_a_form() -> None:
    exact = Exact(number=" 12\t", word="a", words="a, b")
    assert (exact.number, exact.word, exact.words) == ("12", "a", ("a", "b"))
    assert Exact(number="12", word="none").word is None
    properties = Exact.schema()["properties"]
    assert properties["number"] == {"type": "string", "format": "digits", "pattern": "^(?:[0-9]{2})$"}
    assert properties["words"]["items"] == {"type": "string", "pattern": "^(?:[a-z]+)$"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"number": "123"}, "number='123': not of that form; expected two digits"),
        ({"number": ""}, "number='': not of that form"),
        ({"number": "none"}, "number='none': not of that form"),
        ({"number": "\u0661\u0662"}, "not of that form"),
        ({"number": "12\n"}, r"number='12\\n': it has a line break"),
        ({"number": "12\u2028"}, "it has a line break"),
        ({"number": 12}, "a int, not text"),
        ({"number": "12", "word": "A"}, "word='A': not lower-case; expected text, or none"),
        ({"number": "12", "words": ["a", "b\n"]}, "it has a line break"),
    ],
)
def test_texts_of_another_form_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Exact(**given)
