r"""Action objects: what is to be done when a rule fires, as configuration.

They are sent as the parameter `action_json` of a rule. Carrying actions out is the work of the
actions that `smdbg_core.action` describes; a value is checked by the declaration of the installed
action of the same name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from smdbg_core.discovery.registry import Registry
from smdbg_core.errors import ConfigError, ParameterError, ParameterProblem
from smdbg_core.sagemaker.limits import require_length
from smdbg_core.sagemaker.problems import RuleConfigError

__all__ = ["Action", "ActionList", "Email", "SMS", "StopTraining", "is_valid_action_object", "parse_actions"]


class Action:
    """Parameters of one action; unset ones are dropped.

    Args:
        parameters: By name, in the order in which they are sent.
    """

    def __init__(self, **parameters: str | None) -> None:
        self.action_parameters = {
            name: str(value) for name, value in parameters.items() if value is not None
        } | {"name": type(self).__name__.lower()}

    def serialize(self) -> str:
        r"""The string of `action_json`: JSON as it stands between the quotes of a literal, `\"` for `"`.

        Raises:
            ConfigError: It is longer than a parameter can be.
        """
        return _as_literal(self.action_parameters)

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Take the job's name as the prefix if none was given; only StopTraining has a prefix."""


class StopTraining(Action):
    """Stops training jobs whose name begins with a prefix.

    Args:
        training_job_prefix: The prefix; by default the name of the job that the rule is for.

    Raises:
        RuleConfigError: It cannot be the beginning of a job's name.
    """

    def __init__(self, training_job_prefix: str | None = None) -> None:
        self.use_default_training_job_prefix = training_job_prefix is None
        if training_job_prefix is not None:
            _check("StopTraining", "training_job_prefix", training_job_prefix)
        super().__init__(training_job_prefix=training_job_prefix)

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Take the job's name as the prefix if none was given; an object follows the last job it is told.

        Raises:
            RuleConfigError: It is no name of a job.
        """
        if self.use_default_training_job_prefix:
            _check("StopTraining", "training_job_prefix", training_job_name)
            self.action_parameters["training_job_prefix"] = training_job_name


class Email(Action):
    """Sends an e-mail.

    Args:
        email_address: Address of the recipient.

    Raises:
        RuleConfigError: It is no address.
    """

    def __init__(self, email_address: str) -> None:
        _check("Email", "email_address", email_address)
        super().__init__(endpoint=email_address)


class SMS(Action):
    """Sends a text message.

    Args:
        phone_number: Number of the recipient in E.164 form.

    Raises:
        RuleConfigError: It is no number.
    """

    def __init__(self, phone_number: str) -> None:
        _check("SMS", "phone_number", phone_number)
        super().__init__(endpoint=phone_number)


class ActionList:
    """Several actions, in order.

    Raises:
        RuleConfigError: One of them is no action.
    """

    def __init__(self, *actions: Action) -> None:
        given: tuple[object, ...] = actions
        strangers = [one for one in given if not isinstance(one, Action)]
        if strangers:
            problems = [
                ParameterProblem("actions", "type", f"{one!r} is no action; make one, as in StopTraining()")
                for one in strangers
            ]
            raise RuleConfigError("ActionList", problems)
        self.actions = actions

    def serialize(self) -> str:
        """The string of `action_json`.

        Raises:
            ConfigError: It is longer than a parameter can be.
        """
        return _as_literal([action.action_parameters for action in self.actions])

    def update_training_job_prefix_if_not_specified(self, training_job_name: str) -> None:
        """Fill the job's name into those StopTraining actions where no prefix was given."""
        for action in self.actions:
            action.update_training_job_prefix_if_not_specified(training_job_name)


def is_valid_action_object(actions: Any) -> bool:
    """Whether something is an action or an ActionList."""
    return isinstance(actions, Action | ActionList)


def parse_actions(text: str) -> list[dict[str, Any]]:
    r"""The members of an `action_json`, plain or with its quotes escaped.

    Raises:
        ConfigError: It is neither.
    """
    for read in (json.loads, _from_literal):
        try:
            value = read(text)
        except (ValueError, RecursionError):
            continue
        members = [value] if isinstance(value, dict) else value
        if isinstance(members, list) and all(isinstance(member, dict) for member in members):
            return members
        break
    message = f"action_json {text[:60]!r} is not JSON of an action or a list of actions"
    raise ConfigError(message)


def _from_literal(text: str) -> Any:
    return json.loads(json.loads(f'"{text}"'))


def _as_literal(value: Mapping[str, str] | list[dict[str, str]]) -> str:
    return require_length(json.dumps(json.dumps(value))[1:-1], "action_json")


def _check(action: str, parameter: str, value: object) -> None:
    """Hold a value against the declaration of the installed action, which would trim and skip."""
    problems: tuple[ParameterProblem, ...] = ()
    try:
        made = Registry.current().resolve(action, ("action",)).object(**{parameter: value})
    except ParameterError as error:
        problems = error.problems
    else:
        if made.parameters[parameter] != value:
            text = (
                f"{parameter}={value!r}: expected {made.__parameters__[parameter].expected}, without blanks"
            )
            problems = (ParameterProblem(parameter, "value", text),)
    if problems:
        raise RuleConfigError(action, problems)
