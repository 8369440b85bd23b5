"""What the annotation of a parameter declares: its type, its bounds and its description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

__all__ = ["Conversion", "Meta", "Regex", "RunURI", "describe", "read_annotation"]

_SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_SCHEMA_SIGNS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_SCHEMA_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


class Meta:
    """What a parameter's type does not say; goes into `Annotated[...]`.

    Args:
        description: One sentence for people.
        gt: Exclusive lower bound.
        ge: Inclusive lower bound.
        lt: Exclusive upper bound.
        le: Inclusive upper bound.
        unit: Unit of the value, such as `"percent"` or `"seconds"`.
        local: The service has no such parameter: it never enters a request.
        aliases: Other spellings; `<n>` at the end stands for a number, each item of a list.
        also: Patterns that the default value matches too, because other frameworks write other
            names; requests keep the documented default.
        format: `"regex"`: must compile. `"run-uri"`: a run that the engine opens. Other words only
            describe the value in the JSON Schema.
        pattern: What the whole of a text must match, ASCII only.
        check: Says what is wrong with a text, or `None`. Where there is a pattern or a check, blanks
            around a text are trimmed but line breaks are not: they are the value's mistake.
        takes: What a value must be, in words, where the type does not say it.
        secret: Values may hold credentials: complaints never repeat them.
    """

    __slots__ = (
        "aliases",
        "also",
        "check",
        "description",
        "format",
        "ge",
        "gt",
        "le",
        "local",
        "lt",
        "pattern",
        "secret",
        "takes",
        "unit",
    )

    def __init__(
        self,
        *,
        description: str = "",
        gt: float | None = None,
        ge: float | None = None,
        lt: float | None = None,
        le: float | None = None,
        unit: str | None = None,
        local: bool = False,
        aliases: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
        format: str | None = None,  # noqa: A002 - JSON Schema's word
        pattern: str | None = None,
        check: Callable[[str], str | None] | None = None,
        takes: str = "",
        secret: bool = False,
    ) -> None:
        self.description = description
        self.gt, self.ge, self.lt, self.le = gt, ge, lt, le
        self.unit = unit
        self.local = local
        self.aliases = aliases
        self.also = also
        self.format = format
        self.pattern = pattern
        self.check = check
        self.takes = takes
        self.secret = secret


Regex: TypeAlias = Annotated[str, Meta(format="regex")]
"""A regular expression; it matches anywhere in a name (`re.search`)."""

RunURI: TypeAlias = Annotated[str, Meta(format="run-uri")]
"""The place of another run; the engine opens it, the rule reaches it as `run.other(name)`."""


class Conversion(NamedTuple):
    """What a value has to become: a type, or a tuple of it, with bounds, choices and a format."""

    kind: type
    bounds: Mapping[str, float]
    choices: tuple[str, ...]
    format: str | None
    optional: bool = False
    many: bool = False
    pattern: str | None = None
    check: Callable[[str], str | None] | None = None
    takes: str = ""

    def as_optional(self) -> Conversion:
        """The same, but `None` is allowed."""
        return self._replace(optional=True)

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the converted value."""
        schema: dict[str, Any] = {"type": _SCHEMA_TYPES[self.kind]}
        schema |= {_SCHEMA_SIGNS[sign]: bound for sign, bound in self.bounds.items()}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.format:
            schema["format"] = self.format
        if self.pattern:
            schema["pattern"] = f"^(?:{self.pattern})$"
        if self.many:
            schema = {"type": "array", "items": schema}
        if self.optional:
            schema = {"anyOf": [schema, {"type": "null"}]}
        return schema


def describe(conversion: Conversion) -> str:
    """What a value must be, in words."""
    if conversion.takes:
        words = conversion.takes
    elif conversion.choices:
        words = "one of " + ", ".join(conversion.choices)
    elif conversion.format == "regex":
        words = "a regular expression"
    elif conversion.format == "run-uri":
        words = "the path or URI of a run"
    else:
        words = _WORDS[conversion.kind]
    bounds = " and ".join(f"{_SIGNS[sign]} {bound:g}" for sign, bound in conversion.bounds.items())
    if bounds:
        words = f"{words} {bounds}"
    if conversion.many:
        words = f"a list (or comma-separated text), each item {words}"
    return f"{words}, or none" if conversion.optional else words


def read_annotation(annotation: Any) -> tuple[Conversion, Meta]:
    """The conversion and the outermost description of an annotation."""
    meta = Meta()
    if get_origin(annotation) is Annotated:
        annotation, *extras = get_args(annotation)
        metas = [extra for extra in extras if isinstance(extra, Meta)]
        if metas:
            meta = metas[-1]
            form = next((m.format for m in reversed(metas) if m.format), None)
            if form and not meta.format:
                meta = _with_format(meta, form)
    optional = False
    if get_origin(annotation) in (Union, UnionType):
        alternatives = [a for a in get_args(annotation) if a is not type(None)]
        if len(alternatives) != 1:
            message = "only `X | None` is understood of the unions"
            raise TypeError(message)
        optional, annotation = True, alternatives[0]
        if get_origin(annotation) is Annotated:
            inner, inner_meta = read_annotation(annotation)
            return inner.as_optional(), meta if meta.description else inner_meta
    if get_origin(annotation) is tuple:
        arguments = get_args(annotation)
        if len(arguments) != 2 or arguments[1] is not ...:
            message = "only `tuple[X, ...]` is understood of the tuples"
            raise TypeError(message)
        item, item_meta = read_annotation(arguments[0])
        if item_meta.format and not meta.format:
            meta = _with_format(meta, item_meta.format)
        return item._replace(optional=optional, many=True), meta
    choices: tuple[str, ...] = ()
    if get_origin(annotation) is Literal:
        choices, annotation = get_args(annotation), str
    if annotation not in (bool, int, float, str):
        message = f"{annotation!r} is not bool, int, float, str, Literal of strings, or tuple[...] of these"
        raise TypeError(message)
    bounds = {
        sign: getattr(meta, sign) for sign in ("gt", "ge", "lt", "le") if getattr(meta, sign) is not None
    }
    text = {"pattern": meta.pattern, "check": meta.check, "takes": meta.takes}
    return Conversion(annotation, bounds, choices, meta.format, optional, **text), meta  # type: ignore[arg-type]


def _with_format(meta: Meta, form: str) -> Meta:
    copied = {slot: getattr(meta, slot) for slot in Meta.__slots__}
    return Meta(**{**copied, "format": form})
