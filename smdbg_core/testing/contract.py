"""The contract of parameters and documentation, which rules and actions share."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from smdbg_core.errors import ParameterError
from smdbg_core.parameters import Parameter, Parameterized

__all__ = ["Check", "ContractError", "common_checks", "run_checks"]

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_UNREADABLE: Final = object()


class ContractError(AssertionError):
    """A plugin does not keep the contract; the message says which part, and what to do."""


class Check(NamedTuple):
    """One property of the contract; call it."""

    name: str
    run: Callable[[], None]

    def __call__(self) -> None:
        """Run it.

        Raises:
            ContractError: The property does not hold.
        """
        self.run()

    def __str__(self) -> str:
        return self.name


def run_checks(owner: type[Parameterized], checks: list[Check]) -> None:
    """Run all checks, and raise what failed, together.

    Raises:
        ContractError: At least one property does not hold.
    """
    failures = []
    for check in checks:
        try:
            check()
        except ContractError as error:
            failures.append(f"{check.name}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever the plugin raises is the answer
            failures.append(f"{check.name}: {type(error).__name__}: {error}")
    if failures:
        raise ContractError(f"{owner.__name__} fails {len(failures)} checks:\n  " + "\n  ".join(failures))


def common_checks(owner: type[Parameterized], make: Callable[[], Parameterized]) -> Iterator[Check]:
    """Checks of what every rule and action declares.

    Args:
        owner: The class.
        make: Makes a configured object.
    """
    yield Check("name", lambda: _check_name(owner))
    yield Check("documentation", lambda: _check_documentation(owner))
    yield Check("schema", lambda: _check_schema(owner))
    yield Check("parameters-from-text", lambda: _check_text(make()))
    yield Check("bad-values-are-refused", lambda: _check_bad_values(owner, make()))
    yield Check("pickles", lambda: _check_pickle(make()))


def require(holds: bool, message: str) -> None:
    """Complain unless something holds; unlike `assert`, also under `python -O`."""
    if not holds:
        raise ContractError(message)


def _check_name(owner: type[Parameterized]) -> None:
    require(
        bool(_NAME.fullmatch(owner.__name__)),
        f"the name {owner.__name__!r} is not letters and digits that begin with a capital",
    )


def _check_documentation(owner: type[Parameterized]) -> None:
    documentation = getattr(owner, "documentation", None)
    if documentation is not None:
        said = documentation()
        require(bool(said.summary), "the docstring has no first paragraph that says what it does")
        require(bool(said.matters), "the docstring has no paragraph `Why it matters:`")
        require(bool(said.remedy), "the docstring has no paragraph `What to do:`")
    else:
        require(bool((owner.__doc__ or "").strip()), "there is no docstring")
    for parameter in owner.__parameters__.values():
        require(bool(parameter.meta.description), f"parameter {parameter.name} has no description")


def _check_schema(owner: type[Parameterized]) -> None:
    schema = owner.schema()
    json.dumps(schema, allow_nan=False)
    missing = owner.__parameters__.keys() - schema["properties"].keys()
    require(not missing, f"the schema lacks {', '.join(sorted(missing))}")


def _check_text(made: Parameterized) -> None:
    for name, value in made.parameters.items():
        if value is None or name not in made.__parameters__:
            continue
        text = json.dumps(list(value)) if isinstance(value, tuple) else str(value)
        again = _with(made, name, text)
        require(
            again.parameters[name] == value,
            f"{name}={text!r} as text gives {again.parameters[name]!r}, not {value!r}",
        )


def _check_bad_values(owner: type[Parameterized], made: Parameterized) -> None:
    for parameter in owner.__parameters__.values():
        for bad in _bad_values(parameter):
            try:
                _with(made, parameter.name, bad)
            except ParameterError as error:
                named = {problem.parameter for problem in error.problems}
                require(parameter.name in named, f"the error for {parameter.name}={bad!r} does not name it")
            else:
                raise ContractError(f"{parameter.name}={bad!r} is accepted")
    try:
        owner(no_such_parameter_at_all=1)
    except ParameterError:
        return
    raise ContractError("an unknown parameter is accepted")


def _bad_values(parameter: Parameter) -> Iterator[Any]:
    yield _UNREADABLE
    conversion = parameter.conversion
    if conversion.kind in (int, float, bool) and not conversion.many:
        yield "neither a number nor a truth"
    if conversion.kind in (int, float) and not conversion.many:
        yield float("nan")
        yield True
    if "gt" in conversion.bounds:
        yield conversion.bounds["gt"]
    if "ge" in conversion.bounds:
        yield conversion.bounds["ge"] - 1
    if "lt" in conversion.bounds:
        yield conversion.bounds["lt"]
    if "le" in conversion.bounds:
        yield conversion.bounds["le"] + 1


def _with(made: Parameterized, name: str, value: Any) -> Parameterized:
    given = {key: one for key, one in made.parameters.items() if key in made.__parameters__}
    return type(made)(**{**given, name: value})


def _check_pickle(made: Parameterized) -> None:
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - what was pickled a moment ago
    require(again.parameters == made.parameters, "parameters change when the object is pickled")
