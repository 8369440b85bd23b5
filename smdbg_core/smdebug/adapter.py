"""The adapter: a class written for smdebug becomes a rule of ours."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from smdbg_core.declaration import Meta, RunURI
from smdbg_core.errors import ConfigError
from smdbg_core.findings import Finding
from smdbg_core.reads import Reads
from smdbg_core.rule import TensorRule
from smdbg_core.rule_run import RuleRun
from smdbg_core.runs.views import StepView
from smdbg_core.smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet
from smdbg_core.smdebug.modules import standing_in
from smdbg_core.smdebug.rule import NOT_AT_THIS_STEP, CustomRule
from smdbg_core.smdebug.trial import CustomTrial

__all__ = ["adapted", "is_custom_rule"]

_TRIALS: Final = ("other_trials", "other_trial")
_ACTION: Final = "action_str"
_KINDS: Final[tuple[type, ...]] = (bool, int, float, str)


def is_custom_rule(target: Any) -> bool:
    """Whether a class is a rule as smdebug has them: one that is invoked at a step."""
    return (
        isinstance(target, type)
        and not issubclass(target, TensorRule)
        and callable(getattr(target, "invoke_at_step", None))
    )


def adapted(target: type[Any]) -> type[AdaptedRule]:
    """A rule class of ours that runs `target`.

    Its parameters are those of the constructor, but for the trials and the action; a text that is given for
    one whose default is a number or truth becomes one.

    Raises:
        ConfigError: The class asks for something that cannot be given.
    """
    if getattr(target, "invoke", CustomRule.invoke) is not CustomRule.invoke:
        message = (
            f"{target.__name__} overrides `invoke`, as profiler rules of smdebug do; those are not "
            "supported: write a ProfilerRule"
        )
        raise ConfigError(message)
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    arguments: dict[str, _Argument] = {}
    after_the_trial = list(inspect.signature(target).parameters.values())[1:]
    for parameter in after_the_trial:
        name = parameter.name.lower()
        if parameter.name in _TRIALS:
            annotations["other_trials"] = Annotated[
                tuple[RunURI, ...], Meta(description="Trials to compare with.")
            ]
            defaults["other_trials"] = ()
        elif parameter.name == _ACTION or parameter.kind in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        ):
            continue
        elif name in TensorRule.__parameters__:
            arguments[name] = _Argument(parameter.name, None)
        else:
            default = parameter.default
            kind = type(default) if type(default) in _KINDS else None
            if kind is None and default is not None and default is not inspect.Parameter.empty:
                continue  # a list or object: it keeps its default
            described = Meta(description=f"As the constructor of {target.__name__} takes it.")
            annotated = {bool: bool, int: float, float: float}.get(kind or str, str)
            optional = default is None
            annotations[name] = Annotated[annotated | None if optional else annotated, described]
            if default is not inspect.Parameter.empty:
                defaults[name] = default
            arguments[name] = _Argument(parameter.name, kind)
    namespace: dict[str, Any] = {
        "__annotations__": annotations,
        "__doc__": _documentation(target),
        "__module__": target.__module__,
        "_target": target,
        "_arguments": arguments,
        **defaults,
    }
    try:
        return type(target.__name__, (AdaptedRule,), namespace)
    except TypeError as error:
        message = f"{target.__name__}: {error}"
        raise ConfigError(message) from error


class _Argument(NamedTuple):
    """An argument of the constructor."""

    name: str
    kind: type | None
    """Type of the default."""


class AdaptedRule(TensorRule):
    """Fires at each step at which the condition of a rule written for smdebug is met."""

    _target: ClassVar[type[Any]]
    _arguments: ClassVar[dict[str, _Argument]]

    def __init__(self, **parameters: Any) -> None:
        # The service gives every parameter as text, and that is what such constructors are written for.
        texts = {name for name, argument in self._arguments.items() if argument.kind in (None, str)}
        for name, value in parameters.items():
            if name.lower() in texts and isinstance(value, int | float):
                parameters[name] = str(value)
        super().__init__(**parameters)

    def reads(self) -> Reads:
        """Nothing that is measured beforehand: the rule reads what it asks for."""
        return Reads(everything=True, strings=True)

    def start(self, run: RuleRun) -> None:
        """Make the rule, over trials that show no step beyond the one that is judged."""
        self._trial = CustomTrial(run.trial, horizon=-1)
        given: dict[str, Any] = {}
        for name, argument in self._arguments.items():
            value = getattr(self, name)
            inherited = TensorRule.__parameters__.get(name)
            if inherited is not None and value == inherited.default:
                continue  # not given: what the constructor says counts
            whole = argument.kind is int and isinstance(value, float) and value.is_integer()
            given[argument.name] = int(value) if whole else value
        accepted = inspect.signature(self._target).parameters
        if _ACTION in accepted:
            given[_ACTION] = None  # what is done when it fires is for the actions of smdbg
        if any(name in accepted for name in _TRIALS):
            others = [
                CustomTrial(other.trial) for other in run.other("other_trials") if other.trial is not None
            ]
            for name in _TRIALS:
                if name in accepted:
                    given[name] = (others or None) if name == "other_trials" else next(iter(others), None)
        with standing_in():
            self._rule = self._target(self._trial, **given)
        self._ended = False

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Ask the rule whether its condition is met."""
        if self._ended:
            return
        trial = self._trial
        trial.move_on(step.step)

        try:
            with standing_in():
                met = self._is_met(step.step)
        except NOT_AT_THIS_STEP as missing:
            self.skip(None, f"not saved: {type(missing).__name__}")
            return
        except NoMoreData:
            self.skip(None, "the rule ended itself: NoMoreData")
            self._ended = True
            return
        seen = f"; the tensor that it looked at last is {trial.last_tensor}" if trial.last_tensor else ""
        text = f"the condition of {self._target.__name__} is met{seen}"
        yield from self.judge(_Place(step), "condition_met", float(met), ">", 0, message=text)

    def _is_met(self, step: int) -> bool:
        rule = self._rule
        try:
            required = getattr(rule, "req_tensors", None)
            if required is not None:
                required.clear()
                rule.set_required_tensors(step)
                required.fetch()
            return bool(rule.invoke_at_step(step))
        except RuleEvaluationConditionMet as met:
            self._ended = bool(met.end_of_rule)
            return True


class _Place:
    """A step as a whole."""

    name = "(step)"
    worker = None
    node = None
    non_finite = 0

    def __init__(self, step: StepView) -> None:
        self.location: dict[str, Any] = {
            "step": step.step,
            "last_step": step.step,
            "mode": step.mode,
            "mode_step": step.mode_step,
        }


def _documentation(target: type[Any]) -> str:
    """What the class says of itself, else what can be said of any."""
    own = inspect.cleandoc(target.__doc__ or "").strip()
    return own or f"Fires at each step at which the condition of {target.__name__} is met."
