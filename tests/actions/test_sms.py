"""SMS: one short part, opted-out numbers, and what is a number."""

from __future__ import annotations

import json

import pytest

from smdbg_actions import SMS
from smdbg_core import ActionError, Event, ParameterError
from tests.actions.cloud import Cloud

NUMBER = "+15550100"


def test_a_new_number_is_subscribed_and_told_what_that_means(cloud: Cloud, event: Event) -> None:
    detail = SMS(phone_number=NUMBER).dispatch(event).detail
    assert detail.startswith(
        f"published to {NUMBER} as message m-1; the subscription is new: messages may be lost"
    )
    (subscribed,) = cloud.arguments("Subscribe")
    assert (subscribed["Protocol"], subscribed["Endpoint"]) == ("sms", NUMBER)
    assert json.loads(subscribed["Attributes.entry.1.value"]) == {"phone_num": [NUMBER]}
    (published,) = cloud.published
    assert "Subject" not in published
    assert len(published["Message"].encode()) <= 140
    assert published["Message"].startswith(
        "SMDebugRule:VanishingGradient fired on demo-1: gradient/a mean_abs"
    )
    assert published["MessageAttributes.entry.1.Name"] == "phone_num"
    assert SMS(phone_number=NUMBER).dispatch(event).detail == f"published to {NUMBER} as message m-2"


def test_a_number_that_has_opted_out_is_not_counted_as_reached(cloud: Cloud, event: Event) -> None:
    cloud.opted_out = {NUMBER}
    with pytest.raises(ActionError, match="has opted out"):
        SMS(phone_number=NUMBER).dispatch(event)
    assert cloud.published == []


def test_without_permission_to_ask_the_message_goes_out_with_a_remark(cloud: Cloud, event: Event) -> None:
    cloud.denied = {"CheckIfPhoneNumberIsOptedOut"}
    detail = SMS(phone_number=NUMBER).dispatch(event).detail
    assert "sns:CheckIfPhoneNumberIsOptedOut is missing" in detail
    assert len(cloud.published) == 1


@pytest.mark.parametrize("number", ["+15550100", "+12223334444", "+442079460018", "+123456789012345", "+12"])
def test_numbers(number: str) -> None:
    assert SMS(endpoint=number).phone_number == number  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "number",
    [
        "15550100", "+0", "+015550100", "+", "+1", "+1234567890123456", "+1 555 0100", "+1-555-0100", "(555) 0100",
        "+15550100\n", "+1555010a", "\uff0b15550100", "+\u0661\u0662\u0663", "", "++15550100",
    ],
)  # fmt: skip
def test_what_is_no_number_is_a_plain_error(number: str) -> None:
    with pytest.raises(ParameterError, match="a phone number"):
        SMS(phone_number=number)
