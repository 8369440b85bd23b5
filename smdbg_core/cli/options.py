"""Options that several commands share, and what they are made into."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import click

__all__ = ["parse_parameters", "parse_period", "parse_steps"]


def parse_parameters(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Values by rule from `RULE.PARAMETER=VALUE`.

    Raises:
        click.BadParameter: A text of another form, or one parameter twice.
    """
    values: dict[str, dict[str, Any]] = {}
    for text in texts:
        target, equals, value = text.partition("=")
        rule, dot, parameter = target.rpartition(".")
        if not (equals and dot and rule.strip() and parameter.strip()):
            raise click.BadParameter(f"{text!r} is not RULE.PARAMETER=VALUE", param_hint="--param")
        given = values.setdefault(rule.strip(), {})
        if parameter.strip() in given:
            raise click.BadParameter(f"{target.strip()} is given twice", param_hint="--param")
        given[parameter.strip()] = value
    return values


def parse_steps(text: str | None) -> tuple[int | None, int | None]:
    """A range of global steps from `A:B`, `A:`, `:B`; the end is not included.

    Raises:
        click.BadParameter: A text of another form, or an empty range.
    """
    if text is None:
        return None, None
    first, colon, last = text.partition(":")
    try:
        begin = int(first) if first.strip() else None
        end = int(last) if last.strip() else None
    except ValueError:
        colon = ""
    if not colon:
        raise click.BadParameter(f"{text!r} is not A:B, A: or :B", param_hint="--steps")
    if begin is not None and end is not None and begin >= end:
        raise click.BadParameter(
            f"{text!r} has no steps: the end must be above the beginning", param_hint="--steps"
        )
    return begin, end


def parse_period(begin: str | None, end: str | None) -> tuple[float | None, float | None]:
    """A stretch of time, in seconds since the epoch.

    Each time is seconds since the epoch or ISO 8601, `2026-03-01T12:00`; without a zone it is UTC.

    Raises:
        click.BadParameter: A text of another form, or an empty stretch.
    """
    first, last = _time(begin, "--from"), _time(end, "--to")
    if first is not None and last is not None and first >= last:
        raise click.BadParameter(f"{end} is not after {begin}", param_hint="--to")
    return first, last


def _time(text: str | None, option: str) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            hint = "seconds since the epoch or a time such as 2026-03-01T12:00"
            raise click.BadParameter(f"{text!r} is not {hint}", param_hint=option) from None
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds):
        raise click.BadParameter(f"{text!r} is no time", param_hint=option)
    return seconds
