"""Parameters: the annotated fields of a rule or action, and everything that follows from them.

A declaration is the only source of validation, conversion, `inspect.signature`, JSON Schema, the
documentation tables and the strings of request JSON:

    class Flat(TensorRule):
        patience: Annotated[int, Meta(ge=1, description="Points in a row.")] = 3

Reading one annotation is in `declaration.py`, converting one value in `conversion.py`; this module
finds the fields, matches names, collects all problems of a call and raises them together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    NoReturn,
    TypeVar,
    dataclass_transform,
    get_origin,
    get_type_hints,
)

from smdbg_core.conversion import convert
from smdbg_core.declaration import Meta, Regex, RunURI, describe, read_annotation
from smdbg_core.errors import ParameterError, ParameterProblem
from smdbg_core.spelling import nearest

if TYPE_CHECKING:
    import inspect

__all__ = ["Meta", "Parameter", "Parameterized", "Regex", "RunURI", "constraint"]

REQUIRED: Final[Any] = object()
"""Default of a parameter that has none."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_Method = TypeVar("_Method", bound=Callable[[Any], str | None])


class Parameter:
    """One declared parameter: name, how to convert it, default, and what to say about it."""

    __slots__ = ("conversion", "default", "meta", "name")

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        self.name = name
        self.conversion, self.meta = read_annotation(annotation)
        self.default = default

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is REQUIRED

    @property
    def expected(self) -> str:
        """What a value must be, in words: `a number > 0`."""
        return describe(self.conversion)

    def accepts(self, spelling: str) -> bool:
        """Whether `spelling` names this parameter: without regard to case, or by an alias."""
        folded = spelling.casefold()
        if folded == self.name:
            return True
        for alias in self.meta.aliases:
            stem, _, counted = alias.partition("<n>")
            if folded == alias or (
                alias != stem + counted and re.fullmatch(re.escape(stem) + r"\d+", folded)
            ):
                return True
        return False

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the value."""
        schema = self.conversion.schema()
        if self.meta.description:
            schema["description"] = self.meta.description
        if not self.required:
            schema["default"] = list(self.default) if isinstance(self.default, tuple) else self.default
        if self.meta.unit:
            schema["x-unit"] = self.meta.unit
        if self.meta.local:
            schema["x-local"] = True
        return schema


def constraint(*names: str) -> Callable[[_Method], _Method]:
    """Mark a method as a check between the parameters `names`.

    The method runs once every single value is right; it returns what is wrong, or `None`.
    """

    def mark(method: _Method) -> _Method:
        method.__constraint__ = names  # type: ignore[attr-defined]
        return method

    return mark


class _Signature:
    """`inspect.signature` of a parameterized class, built when somebody asks."""

    def __get__(self, instance: object, owner: type[Parameterized]) -> inspect.Signature:
        import inspect  # costs more than the rest of the start-up

        empty = inspect.Parameter.empty
        return inspect.Signature(
            [
                inspect.Parameter(
                    parameter.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=empty if parameter.required else parameter.default,
                    annotation=owner.__parameter_hints__[parameter.name],
                )
                for parameter in owner.__parameters__.values()
            ]
        )


@dataclass_transform(kw_only_default=True)
class Parameterized:
    """A class whose annotated fields are its parameters; `ClassVar` fields and `_private` ones are not.

    Instances are made with keywords only. Values may be native or strings; they are converted, and
    all problems of a call are raised together.

    Raises:
        ParameterError: From the constructor; it lists every problem.
        TypeError: At class creation, for a declaration that cannot work.
    """

    __parameters__: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})
    __parameter_hints__: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    __constraints__: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ()
    __signature__: ClassVar[Any] = _Signature()

    _undeclared: dict[str, Any]

    requires: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groups of parameters of which at least one must be given for the object to do anything."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        own = _declared(cls)
        inherited = dict(cls.__parameters__)
        parameters: dict[str, Parameter] = {}
        for name, hint in own.items():
            if not _NAME.fullmatch(name):
                _refuse(cls, name, "names are lower-case words joined by underscores")
            if name not in inherited and any(hasattr(base, name) for base in cls.__bases__):
                _refuse(cls, name, "the base class already uses this name")
            try:
                parameters[name] = Parameter(name, hint, cls.__dict__.get(name, REQUIRED))
            except TypeError as error:
                _refuse(cls, name, str(error))
        # A class's own parameters come first: they are what it is about.
        parameters |= {name: parameter for name, parameter in inherited.items() if name not in parameters}
        cls.__parameters__ = MappingProxyType(parameters)
        cls.__parameter_hints__ = MappingProxyType({**cls.__parameter_hints__, **own})
        checks = dict(cls.__constraints__)
        checks |= {
            name: member.__constraint__
            for name, member in cls.__dict__.items()
            if hasattr(member, "__constraint__")
        }
        cls.__constraints__ = tuple(checks.items())
        for name in (name for group in (*cls.requires, *checks.values()) for name in group):
            if name not in parameters:
                _refuse(cls, name, "a check names it, but it is no parameter")
        for name in own:
            if not parameters[name].required:
                _check_default(cls, parameters[name])

    def __init__(self, **values: Any) -> None:
        converted, problems = _parse(type(self), values)
        if not problems:
            self.__dict__.update(converted)
            problems = [*self._conflicts()]
        if problems:
            raise ParameterError(type(self).__name__, problems)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__parameters__:
            message = f"{type(self).__name__}.{name} is a parameter: make a new object to change it"
            raise AttributeError(message)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        known = self.__parameters__
        given = [
            f"{name}={'***' if name in known and known[name].meta.secret else repr(value)}"
            for name, value in self.parameters.items()
            if not self.is_default(name)
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def parameters(self) -> dict[str, Any]:
        """Effective values by name, in the order of declaration; then what `take_undeclared` took."""
        return {name: self.__dict__[name] for name in self.__parameters__} | self._undeclared

    def is_default(self, name: str) -> bool:
        """Whether the parameter has its default value."""
        if name not in self.__parameters__:
            return False
        return bool(self.__dict__[name] == self.__parameters__[name].default)

    def patterns(self, name: str) -> tuple[str, ...]:
        """Patterns of a pattern parameter; a default brings those of the other frameworks along."""
        value = self.__dict__[name]
        given = (value,) if isinstance(value, str) else tuple(value or ())
        return given + self.__parameters__[name].meta.also if self.is_default(name) else given

    def missing(self) -> tuple[tuple[str, ...], ...]:
        """Groups of `requires` of which no parameter was given."""
        return tuple(group for group in self.requires if all(self.__dict__[n] in (None, ()) for n in group))

    @classmethod
    def take_undeclared(cls, values: Mapping[str, Any]) -> tuple[dict[str, Any], list[ParameterProblem]]:
        """Take values that no field declares; a class that is made of others may know them.

        Args:
            values: By name, as they were given.

        Returns:
            Values by canonical name, and problems. By default each name is a problem.
        """
        known = cls.__parameters__
        return {}, [
            ParameterProblem(name, "unknown", f"no parameter {name!r}{nearest(name, known)}")
            for name in values
        ]

    def _conflicts(self) -> Iterator[ParameterProblem]:
        for method, names in self.__constraints__:
            complaint = getattr(self, method)()
            if complaint:
                yield ParameterProblem(names[0], "conflict", complaint)

    @classmethod
    def find_parameter(cls, spelling: str) -> Parameter | None:
        """The parameter that `spelling` names, by name or alias, in any case."""
        exact = cls.__parameters__.get(spelling.casefold())
        return exact or next((p for p in cls.__parameters__.values() if p.accepts(spelling)), None)

    @classmethod
    def problems_of(cls, values: Mapping[str, Any]) -> list[ParameterProblem]:
        """What is wrong with some values, as far as it can be told without the others."""
        given = {parameter.name for name in values if (parameter := cls.find_parameter(name))}
        problems = _parse(cls, values)[1]
        unset = {p.name for p in cls.__parameters__.values() if p.required and p.name not in given}
        return [problem for problem in problems if problem.parameter not in unset]

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """JSON Schema (draft 2020-12) of the parameters as one object."""
        parameters = cls.__parameters__.values()
        schema: dict[str, Any] = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": cls.__name__,
            "type": "object",
            "properties": {parameter.name: parameter.schema() for parameter in parameters},
            "additionalProperties": False,
        }
        required = [parameter.name for parameter in parameters if parameter.required]
        return schema | ({"required": required} if required else {})


def _declared(cls: type) -> dict[str, Any]:
    """The annotations of the parameters that the class itself declares, resolved."""
    public = {name: hint for name, hint in cls.__annotations__.items() if not name.startswith("_")}
    carrier = type(cls.__name__, (), {"__annotations__": public, "__module__": cls.__module__})
    hints = get_type_hints(carrier, include_extras=True)
    return {
        name: hint
        for name, hint in hints.items()
        if hint is not ClassVar and get_origin(hint) is not ClassVar
    }


def _parse(
    owner: type[Parameterized], values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[ParameterProblem]]:
    """Match names and convert values; problems come in the order in which values were given."""
    problems: list[ParameterProblem] = []
    given: dict[str, tuple[str, Any]] = {}
    undeclared: dict[str, Any] = {}
    for spelling, value in values.items():
        parameter = owner.find_parameter(spelling)
        if parameter is None:
            undeclared[spelling] = value
        elif parameter.name not in given:
            given[parameter.name] = spelling, value
        elif _counted(parameter, spelling) and _counted(parameter, given[parameter.name][0]):
            given[parameter.name] = spelling, [*_items(given[parameter.name][1]), *_items(value)]
        else:
            message = f"{given[parameter.name][0]!r} and {spelling!r} are one parameter: give it once"
            problems.append(ParameterProblem(spelling, "conflict", message))
    converted: dict[str, Any] = {}
    for parameter in owner.__parameters__.values():
        if parameter.name in given:
            spelling, value = given[parameter.name]
            result = convert(parameter.conversion, value)
            if result.problem:
                if parameter.meta.secret:
                    message = f"{spelling}: expected {parameter.expected}"
                else:
                    message = f"{spelling}={_shorten(value)}: {result.problem}"
                problems.append(ParameterProblem(spelling, result.kind, message))
            converted[parameter.name] = result.value
        elif parameter.required:
            message = f"{parameter.name} needs a value: {parameter.expected}"
            problems.append(ParameterProblem(parameter.name, "value", message))
        else:
            converted[parameter.name] = parameter.default
    converted["_undeclared"], more = owner.take_undeclared(undeclared)
    places = {spelling: place for place, spelling in enumerate(values)}
    return converted, sorted([*problems, *more], key=lambda one: places.get(one.parameter, len(places)))


def _counted(parameter: Parameter, spelling: str) -> bool:
    """Whether the spelling is one item of a list, as in `other_trial_0`."""
    return parameter.conversion.many and spelling[-1:].isdigit() and spelling.casefold() != parameter.name


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _shorten(value: Any, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _check_default(owner: type[Parameterized], parameter: Parameter) -> None:
    result = convert(parameter.conversion, parameter.default)
    if result.problem or result.value != parameter.default:
        _refuse(
            owner,
            parameter.name,
            f"default {parameter.default!r}: {result.problem or 'not in its final form'}",
        )


def _refuse(owner: type, name: str, why: str) -> NoReturn:
    message = f"{owner.__qualname__}.{name}: {why}"
    raise TypeError(message)
