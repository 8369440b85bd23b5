"""Action objects as configuration: exact strings, the prefix, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdbg_core.errors import ConfigError
from smdbg_core.sagemaker.actions import (
    SMS,
    Action,
    ActionList,
    Email,
    StopTraining,
    is_valid_action_object,
    parse_actions,
)
from smdbg_core.sagemaker.problems import RuleConfigError

PREFIXES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,20}", fullmatch=True)
NUMBERS = st.from_regex(r"\+1555[0-9]{4}", fullmatch=True)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (StopTraining(), r"{\"name\": \"stoptraining\"}"),
        (StopTraining("team-a"), r"{\"training_job_prefix\": \"team-a\", \"name\": \"stoptraining\"}"),
        (Email("abc@example.com"), r"{\"endpoint\": \"abc@example.com\", \"name\": \"email\"}"),
        (SMS("+15550100"), r"{\"endpoint\": \"+15550100\", \"name\": \"sms\"}"),
        (ActionList(), "[]"),
    ],
)
def test_strings(action: Any, text: str) -> None:
    assert action.serialize() == text


def test_the_job_name_is_filled_in_where_no_prefix_was_given() -> None:
    stop, own = StopTraining(), StopTraining("own")
    actions = ActionList(stop, own, Email("abc@example.com"))
    actions.update_training_job_prefix_if_not_specified("job-1")
    assert actions.serialize() == (
        r"[{\"name\": \"stoptraining\", \"training_job_prefix\": \"job-1\"}, "
        r"{\"training_job_prefix\": \"own\", \"name\": \"stoptraining\"}, "
        r"{\"endpoint\": \"abc@example.com\", \"name\": \"email\"}]"
    )
    actions.update_training_job_prefix_if_not_specified("job-2")
    assert stop.action_parameters["training_job_prefix"] == "job-2"
    assert own.action_parameters["training_job_prefix"] == "own"


@pytest.mark.parametrize("bad", ["a_b", "a" * 70, "", "exp-7\n", " x", 'ab"c', 5])
def test_prefixes_and_job_names_that_are_refused(bad: Any) -> None:
    with pytest.raises(RuleConfigError):
        StopTraining(bad)
    with pytest.raises(ValueError):
        StopTraining().update_training_job_prefix_if_not_specified(bad)


@pytest.mark.parametrize(
    "good",
    ["first.last@example.com", "User@example.com", "a+b@example.com", "a@ml.example.org", "a@my-host.com"],
)
def test_addresses_that_the_original_refuses(good: str) -> None:
    assert Email(good).action_parameters == {"endpoint": good, "name": "email"}


@pytest.mark.parametrize("bad", ["x@nodot", "a@b.d_", "abc@example.com\n", "", None, 3])
def test_addresses_that_are_refused(bad: Any) -> None:
    with pytest.raises(RuleConfigError, match="email_address"):
        Email(bad)


@pytest.mark.parametrize(
    "bad", ["+0123456", "+1-555-555-0123", "+٣٣٣", "+0", "15550100", "+15550100\n", None]
)
def test_numbers_that_are_refused(bad: Any) -> None:
    with pytest.raises(RuleConfigError, match="phone_number"):
        SMS(bad)


def test_list_members_must_be_actions() -> None:
    for bad in ("stop", StopTraining, [StopTraining()]):
        with pytest.raises(TypeError, match="is no action"):
            ActionList(bad)  # type: ignore[arg-type]


def test_what_is_an_action_object() -> None:
    assert is_valid_action_object(StopTraining())
    assert is_valid_action_object(ActionList())
    for other in ([StopTraining()], StopTraining, None, "stop"):
        assert not is_valid_action_object(other)


def test_unset_values_are_dropped() -> None:
    assert Action(a=None, b="1").action_parameters == {"b": "1", "name": "action"}


def test_too_long_for_a_parameter() -> None:
    actions = ActionList(*(Email(f"somebody-number-{n}@example.com") for n in range(6)))
    with pytest.raises(
        ConfigError, match=r"action_json has \d+ characters; SageMaker takes 256: use shorter"
    ):
        actions.serialize()


@given(st.lists(st.one_of(st.none(), PREFIXES.map(StopTraining), NUMBERS.map(SMS)), max_size=3))
def test_round_trip(actions: list[Any]) -> None:
    actions = [action or StopTraining() for action in actions]
    text = ActionList(*actions).serialize()
    members = [action.action_parameters for action in actions]
    assert parse_actions(text) == members
    assert parse_actions(text.replace('\\"', '"')) == members
    assert json.loads(json.loads(f'"{text}"')) == members


@pytest.mark.parametrize("bad", ["", "[", "3", '"x"', "[1]", "__import__('os').system('touch x')"])
def test_what_is_no_action_string(bad: str) -> None:
    with pytest.raises(ConfigError, match="not JSON of an action"):
        parse_actions(bad)
