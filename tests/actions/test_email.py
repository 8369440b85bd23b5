"""Email: subscription, filter and message, and what is an address."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smdbg_actions import Email
from smdbg_core import ActionError, Event, ParameterError, UnknownOutcomeError
from smdbg_core.errors import SmdbgError
from tests.actions.cloud import ACCOUNT, Cloud, Lost, Refusal

ADDRESS = "On.Call+ml@Example.com"
POLICY = json.dumps({"email": [ADDRESS]})
ARN = f"arn:aws:sns:eu-west-1:{ACCOUNT}:SMDebugRules"


def send(event: Event, **parameters: Any) -> str:
    return Email(email_address=ADDRESS, **parameters).dispatch(event).detail


def test_a_subscriber_is_sent_the_message_alone(cloud: Cloud, event: Event) -> None:
    cloud.subscribe(ADDRESS, POLICY)
    assert send(event) == f"published to {ADDRESS} as message m-1"
    assert cloud.operations() == [
        "CreateTopic",
        "ListSubscriptionsByTopic",
        "GetSubscriptionAttributes",
        "Publish",
    ]
    (published,) = cloud.published
    assert published["TopicArn"] == ARN
    assert published["Subject"] == "SMDebugRule:VanishingGradient fired on demo-1"
    assert published["Message"].startswith("SMDebugRule:VanishingGradient fired on demo-1. ")
    for part in (
        "job: demo-1",
        "run: /data/run",
        "gradient/a: mean_abs 3e-09 < 1e-07",
        "step 12, TRAIN",
        event.id,
    ):
        assert part in published["Message"]
    attribute = {k.rpartition("entry.1.")[2]: v for k, v in published.items() if "MessageAttributes" in k}
    assert attribute == {"Name": "email", "Value.DataType": "String", "Value.StringValue": ADDRESS}


def test_a_new_recipient_is_subscribed_and_not_counted_as_reached(cloud: Cloud, event: Event) -> None:
    for _ in range(2):
        with pytest.raises(ActionError, match=r"nothing was sent: .* is pending confirmation"):
            send(event)
    (subscribed,) = cloud.arguments("Subscribe")
    assert {k: v for k, v in subscribed.items() if not k.startswith("Attributes")} == {
        "TopicArn": ARN,
        "Protocol": "email",
        "Endpoint": ADDRESS,
        "ReturnSubscriptionArn": "false",
    }
    assert subscribed["Attributes.entry.1.key"] == "FilterPolicy"
    assert json.loads(subscribed["Attributes.entry.1.value"]) == {"email": [ADDRESS]}
    assert cloud.published == []
    cloud.subscriptions[0]["SubscriptionArn"] = f"{ARN}:confirmed"
    assert send(event).startswith("published")


def test_subscribing_ahead_of_time(cloud: Cloud, event: Event) -> None:
    cloud.confirmed_at_once = True
    email = Email(email_address=ADDRESS)
    assert "the subscription is new" in email.subscribe()
    assert email.subscribe() == f"{ADDRESS} is subscribed"
    assert cloud.published == []


def test_a_subscription_on_a_later_page_is_found(cloud: Cloud, event: Event) -> None:
    for number in range(5):
        cloud.subscribe(f"u{number}@example.com", "{}")
    cloud.subscribe(ADDRESS, POLICY)
    cloud.page_size = 2
    assert send(event).startswith("published")
    assert cloud.operations().count("ListSubscriptionsByTopic") == 3
    assert "Subscribe" not in cloud.operations()


@pytest.mark.parametrize(
    "policy", [None, "{}", '{"email": ["other@example.com"]}', '{"phone_num": ["+15550100"]}', "not JSON"]
)
def test_a_filter_that_is_missing_or_another_is_set_right(
    cloud: Cloud, event: Event, policy: str | None
) -> None:
    cloud.subscribe(ADDRESS, policy, FilterPolicyScope="MessageBody")
    assert "which was set right" in send(event)
    assert json.loads(cloud.subscriptions[0]["FilterPolicy"]) == {"email": [ADDRESS]}
    assert cloud.subscriptions[0]["FilterPolicyScope"] == "MessageAttributes"


def test_a_wider_filter_and_a_deleted_subscription(cloud: Cloud, event: Event) -> None:
    wider = json.dumps({"email": ["b@example.com", ADDRESS]})
    cloud.subscribe(ADDRESS, wider, SubscriptionArn="Deleted")
    cloud.subscribe(ADDRESS, wider)
    assert send(event) == f"published to {ADDRESS} as message m-1"
    assert cloud.subscriptions[1]["FilterPolicy"] == wider


def test_a_configured_topic(cloud: Cloud, event: Event) -> None:
    cloud.subscribe(ADDRESS, POLICY, topic="alerts")
    send(event, topic="alerts")
    assert cloud.arguments("CreateTopic") == [{"Name": "alerts"}]
    send(event, topic=f"arn:aws:sns:eu-west-1:{ACCOUNT}:alerts")
    assert cloud.operations().count("CreateTopic") == 1
    with pytest.raises(ParameterError, match="the name of a topic, or its ARN"):
        Email(email_address=ADDRESS, topic="no spaces")


@pytest.mark.parametrize(
    ("operation", "code", "says"),
    [
        ("Publish", "AuthorizationError", "permission sns:Publish is missing"),
        (
            "ListSubscriptionsByTopic",
            "AuthorizationError",
            "permission sns:ListSubscriptionsByTopic is missing",
        ),
        ("Subscribe", "FilterPolicyLimitExceeded", "SNS Subscribe: FilterPolicyLimitExceeded"),
        ("CreateTopic", "InvalidParameter", "SNS CreateTopic: InvalidParameter"),
    ],
)
def test_refusals_are_named(cloud: Cloud, event: Event, operation: str, code: str, says: str) -> None:
    if operation == "Publish":
        cloud.subscribe(ADDRESS, POLICY)
    cloud.faults = {operation: [Refusal(code, "no")]}
    with pytest.raises(ActionError, match=says) as caught:
        send(event)
    assert not isinstance(caught.value, UnknownOutcomeError)
    assert cloud.operations().count(operation) == 1


def test_throttling_is_repeated_but_a_lost_answer_is_not(cloud: Cloud, event: Event) -> None:
    cloud.subscribe(ADDRESS, POLICY)
    cloud.faults = {"Publish": [Refusal("Throttling"), Refusal("InternalError", status=503)]}
    assert send(event).startswith("published")
    assert len(cloud.published) == 1
    cloud.faults = {"Publish": [Lost()]}
    with pytest.raises(UnknownOutcomeError, match="no answer came"):
        send(event)
    assert len(cloud.published) == 2


def test_settings_come_from_the_chain(cloud: Cloud, event: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(ActionError, match=r"You must specify a region.*AWS_DEFAULT_REGION"):
        send(event)
    monkeypatch.setenv("AWS_PROFILE", "nope")
    with pytest.raises(ActionError, match="nope"):
        send(event)
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(ActionError, match="credentials"):
        send(event)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(ActionError, match=r"AWS cannot be reached \(5 attempts\)"):
        send(event)
    assert cloud.calls == []


def test_subjects_are_what_sns_takes(cloud: Cloud, event: Event) -> None:
    cloud.subscribe(ADDRESS, POLICY)
    hostile = Event(
        id="1",
        run="r",
        rule="R",
        name="n\u00e4me\n\x07\ud800" + "x" * 200,
        plugin="p",
        state="fired",
        time=0.0,
    )
    send(hostile)
    subject = cloud.published[0]["Subject"]
    assert subject.startswith("SMDebugRule:n?me ??xxx")
    assert len(subject) < 100


def test_a_dry_run_shows_the_calls_and_makes_none(cloud: Cloud, event: Event) -> None:
    shown = Email(email_address=ADDRESS).dispatch(event, dry_run=True).requests
    assert [one["operation"] for one in shown] == [
        "CreateTopic",
        "ListSubscriptionsByTopic",
        "Subscribe",
        "Publish",
    ]
    assert shown[2]["if"] == "the recipient is not subscribed"
    assert shown[3]["arguments"]["MessageAttributes"]["email"]["StringValue"] == ADDRESS
    assert cloud.calls == []


@pytest.mark.parametrize(
    "address",
    [
        "abc@example.com",
        "first.last@example.com",
        "User@Example.COM",
        "a+b@example.com",
        "a@sub.example.com",
        "a@a.b.c.d.example.co.uk",
        "a@my-host.example.com",
        "a@example.info",
        "a@example.international",
        "o'brien_x@example.com",
        "1@example.com",
    ],
)
def test_addresses_pass_as_they_are(address: str) -> None:
    assert Email(email_address=address).email_address == address
    assert Email(endpoint=address).email_address == address  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "address",
    [
        "", "a", "@example.com", "a@", "a@b.d_", "a@example", "a@@example.com", "a b@example.com", "a@exa mple.com",
        "a@example..com", ".a@example.com", "a.@example.com", "a..b@example.com", "a@-example.com", "a@example.com,b@example.com",
        "A <a@example.com>", "mailto:a@example.com", "a@example.com\n", "a@example.com\r\nBcc: b@example.com", "a@[127.0.0.1",
        "a@" + "x" * 250 + ".com", "x" * 65 + "@example.com",
    ],
)  # fmt: skip
def test_what_is_no_address_is_a_plain_error(address: str) -> None:
    with pytest.raises(ParameterError, match="expected an e-mail address") as caught:
        Email(email_address=address)
    assert isinstance(caught.value, SmdbgError)
    assert len(caught.value.problems) == 1
