"""What a page is made of: sections of texts, tables and charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

__all__ = [
    "MALFORMED",
    "Chart",
    "Link",
    "Links",
    "Section",
    "Table",
    "Text",
    "clock",
    "clock_range",
    "count",
    "duration",
    "number",
    "readable",
    "sentence",
    "unreadable",
]


class Text(NamedTuple):
    """A paragraph."""

    text: str
    tone: str = ""
    """`note` for what limits what the page says; empty for the rest."""

    kind: str = "text"


class Link(NamedTuple):
    """A text that leads to another place of the page."""

    text: str
    target: str


class Table(NamedTuple):
    """Rows under headings; cells are texts or links."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | Link]]
    numeric: Sequence[bool] = ()
    """For each column, whether it holds numbers."""

    folded: bool = False
    """Whether it is shown only when asked for."""

    stacked: bool = False
    """Whether each row becomes a list on a narrow screen: for rows with sentences in them."""

    kind: str = "table"


class Links(NamedTuple):
    """A text, and places of the page that it leads to."""

    text: str
    links: Sequence[Link]
    kind: str = "links"


class Chart(NamedTuple):
    """A plot that answers a question."""

    question: str
    answer: str
    """What the plot shows, in words: for those who do not see it, too."""

    item: str
    """The plot as JSON."""

    height: int
    kind: str = "chart"


class Section(NamedTuple):
    """A part of the page with a heading."""

    key: str
    """Its anchor."""

    title: str
    blocks: Sequence[Text | Table | Links | Chart]
    lead: str = ""
    level: int = 2


MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError)
"""What reading a document of another layout raises: documents come from rules, and from files of the service."""


def unreadable(what: str, error: Exception) -> Text:
    """Stands for what has another layout than it should."""
    return Text(f"{readable(what)} cannot be shown: {type(error).__name__}: {readable(error)}", "note")


def readable(text: object) -> str:
    """A text with what HTML or UTF-8 cannot carry made visible: names in data can hold anything."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(text)
    )


def number(value: object) -> str:
    """A number as people write it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else readable(value)
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e6):
        return f"{int(value):,}"
    if not math.isfinite(value):
        return str(value)
    if 10 <= abs(value) < 1e6:
        return f"{value:,.2f}"
    return f"{value:,.0f}" if 1e6 <= abs(value) < 1e12 else f"{value:.3g}"


def count(found: int, noun: str, plural: str = "") -> str:
    """How many of what."""
    return f"{found:,} {noun if found == 1 else plural or noun + 's'}"


def clock(us: float) -> str:
    """A time, UTC."""
    try:
        return f"{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return number(us)


def clock_range(start: float, end: float) -> str:
    """A stretch of time, UTC."""
    begin, stop = clock(start), clock(end)
    return f"{begin} to {stop[11:] if begin[:10] == stop[:10] else stop} UTC"


def duration(seconds: float) -> str:
    """A length of time in its two largest units."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    parts: list[str] = []
    rest = round(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if rest >= size or parts:
            parts.append(f"{rest // size} {unit}")
            rest %= size
    return " ".join(parts[:2])


def sentence(text: str) -> str:
    """A text with a capital at its beginning."""
    return readable(text[:1].upper() + text[1:])
