"""Rules are not made nervous: a patience is at least 5, or the rule's default if that is less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smdbg_core import ParameterProblem, Rule, hookimpl

MINIMUM = 5


@hookimpl
def smdbg_validate_parameters(rule_class: type[Rule], parameters: dict[str, Any]) -> list[ParameterProblem]:
    """Object to every patience that is too short; nothing is judged then."""
    return list(_problems(rule_class().parameters, parameters))


def _problems(defaults: dict[str, Any], parameters: dict[str, Any]) -> Iterator[ParameterProblem]:
    for name, value in parameters.items():
        if name == "patience" or name.startswith("patience_"):
            least = min(MINIMUM, defaults[name])
            if value < least:
                text = f"{name}={value} is too short: ACME's policy asks for at least {least}"
                yield ParameterProblem(name, "value", text)
