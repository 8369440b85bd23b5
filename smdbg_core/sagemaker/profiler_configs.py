"""Configuration classes of profiler rules, made from the declarations."""

from __future__ import annotations

import inspect
from typing import Any

from smdbg_core.errors import ParameterError, ParameterProblem
from smdbg_core.parameters import Parameter
from smdbg_core.rule import ProfilerRule
from smdbg_core.sagemaker.problems import RuleConfigError

__all__ = ["ProfilerRuleConfig", "make_config_class"]


class ProfilerRuleConfig:
    """Name and parameters of a profiler rule, as the SDK takes them.

    Subclasses are made by `make_config_class`. Arguments are those that the rule declares and the
    service has, positional in declared order. Values are native, and kept as given.

    Attributes:
        rule_name: Name of the rule.
        rule_parameters: A new dict per object: every argument, defaults included.

    Raises:
        RuleConfigError: Arguments that the rule does not take; it lists every problem.
    """

    rule_name: str
    rule_parameters: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        message = f"{type(self).__name__} stands for no rule; `make_config_class` makes classes that do"
        raise TypeError(message)


def make_config_class(name: str, rule_class: type[ProfilerRule]) -> type[ProfilerRuleConfig]:
    """The configuration class of a profiler rule.

    Args:
        name: Name of the rule.
        rule_class: The rule that evaluates; its declaration is what counts.
    """
    parameters = [one for one in rule_class.__parameters__.values() if not one.meta.local]
    # A rule that is made of others takes their parameters too, and sends only what is given.
    open_ended = rule_class.take_undeclared.__func__ is not ProfilerRule.take_undeclared.__func__  # type: ignore[attr-defined]
    signature = _signature(parameters, open_ended)

    def __init__(self: ProfilerRuleConfig, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise RuleConfigError(name, [ParameterProblem("", "unknown", str(error))]) from None
        given = dict(bound.arguments)
        given |= given.pop("parameters", {}) if open_ended else {}
        _check(name, rule_class, given)
        if not open_ended:
            bound.apply_defaults()
            given = dict(bound.arguments)
        self.rule_name = name
        self.rule_parameters = {**given, "rule_to_invoke": name}

    __init__.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY),
            *signature.parameters.values(),
        ]
    )
    doc = f"Configuration of {name}. {rule_class.documentation().summary}"
    members = {"__init__": __init__, "__doc__": doc, "__module__": "smdbg_core.sagemaker.rule_configs"}
    return type(name, (ProfilerRuleConfig,), members)


def _signature(parameters: list[Parameter], open_ended: bool) -> inspect.Signature:
    kind = inspect.Parameter.KEYWORD_ONLY if open_ended else inspect.Parameter.POSITIONAL_OR_KEYWORD
    arguments = [
        inspect.Parameter(
            one.name, kind, default=inspect.Parameter.empty if one.required else _native(one.default)
        )
        for one in parameters
    ]
    if open_ended:
        arguments.append(inspect.Parameter("parameters", inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(arguments)


def _native(default: Any) -> Any:
    """A default as a caller would write it: whole floats are integers."""
    return int(default) if isinstance(default, float) and default.is_integer() else default


def _check(name: str, rule_class: type[ProfilerRule], given: dict[str, Any]) -> None:
    """Hold values against the declaration, which also takes strings; here these are mistakes."""
    problems: list[ParameterProblem] = []
    try:
        made = rule_class(**given)
    except ParameterError as error:
        problems += error.problems
        effective: dict[str, Any] = {}
    else:
        effective = {key.casefold(): value for key, value in made.parameters.items()}
    complained = {problem.parameter for problem in problems}
    for key, value in given.items():
        taken = effective.get(key.casefold())
        if isinstance(value, str) and not isinstance(taken, str | tuple) and key not in complained:
            parameter = rule_class.find_parameter(key)
            if parameter is not None and parameter.conversion.kind is str:
                continue
            if taken is not None or parameter is not None:
                text = f"{key}={value!r}: text, where a value of its own type is needed"
                problems.append(ParameterProblem(key, "type", text))
    if problems:
        raise RuleConfigError(name, problems)
