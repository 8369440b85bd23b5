"""Webhook: delivery, repetition, redirects, signature, and secrets that stay secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest

from smdbg_actions import Webhook
from smdbg_core import ActionError, Event, Finding, ParameterError
from tests.actions.cloud import serve
from tests.actions.receiver import Handler, Receiver


def test_the_event_is_posted_once(receiver: Receiver, event: Event) -> None:
    assert Webhook(url=f"{receiver.url}/ml?x=1").dispatch(event).detail.endswith(": 204")
    (received,) = receiver.received
    assert received.path == "/ml?x=1"
    assert received.headers["content-type"] == "application/json"
    assert received.headers["idempotency-key"] == event.id
    assert received.headers["user-agent"].startswith("smdbg/")
    assert json.loads(received.body) == event.document()


def test_numbers_that_json_lacks_are_texts(receiver: Receiver) -> None:
    finding = Finding(subject="a", message="m", value=float("nan"))
    event = Event(id="1", run="r", rule="R", name="R", plugin="p", state="fired", finding=finding, time=0.0)
    Webhook(url=receiver.url).dispatch(event)
    assert json.loads(receiver.received[0].body, parse_constant=pytest.fail)["finding"]["value"] == "nan"


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_passing_faults_are_repeated_with_the_same_key(receiver: Receiver, event: Event, status: int) -> None:
    receiver.answers = [(status, {}), (status, {})]
    assert Webhook(url=receiver.url).dispatch(event).detail.endswith(": 204 (3 attempts)")
    assert receiver.keys == {event.id}
    assert len({one.body for one in receiver.received}) == 1


def test_what_does_not_pass_is_not_repeated(receiver: Receiver, event: Event) -> None:
    receiver.answers = [(403, {})]
    with pytest.raises(ActionError, match=r"nothing was delivered: 127\.0\.0\.1:[0-9]+ answered 403$"):
        Webhook(url=receiver.url).dispatch(event)
    assert len(receiver.received) == 1


def test_repetition_has_an_end(receiver: Receiver, event: Event) -> None:
    receiver.answers = [(500, {})] * 9
    with pytest.raises(ActionError, match=r"answered 500 \(3 attempts\)"):
        Webhook(url=receiver.url, retries=2).dispatch(event)
    assert len(receiver.received) == 3


def test_a_receiver_may_ask_for_patience(receiver: Receiver, event: Event) -> None:
    receiver.answers = [(503, {"Retry-After": "1"})]
    begun = time.monotonic()
    Webhook(url=receiver.url).dispatch(event)
    assert time.monotonic() - begun >= 1


def test_nobody_there_and_nobody_answering(receiver: Receiver, event: Event) -> None:
    with pytest.raises(ActionError, match=r"cannot be reached: .*refused.* \(2 attempts\)"):
        Webhook(url="http://127.0.0.1:9/", retries=1).dispatch(event)
    receiver.delay = 0.5
    with pytest.raises(ActionError, match=r"cannot be reached: timed out"):
        Webhook(url=receiver.url, timeout=0.1, retries=0).dispatch(event)


@pytest.mark.parametrize("code", [307, 308])
def test_redirects_on_the_same_host_keep_method_and_body(receiver: Receiver, event: Event, code: int) -> None:
    receiver.answers = [(code, {"Location": "/moved"})]
    Webhook(url=receiver.url, headers="X-Team: ml").dispatch(event)
    first, second = receiver.received
    assert (second.path, second.body) == ("/moved", first.body)
    assert second.headers["idempotency-key"] == event.id
    assert second.headers["x-team"] == "ml"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_to_another_host_are_not_followed(receiver: Receiver, event: Event, code: int) -> None:
    other = Receiver()
    with serve(Handler, receiver=other) as other.url:
        receiver.answers = [(code, {"Location": f"{other.url}/steal?k=hidden"})]
        with pytest.raises(ActionError, match="a redirect that is not followed") as caught:
            Webhook(url=receiver.url).dispatch(event)
    assert other.received == []
    assert "hidden" not in str(caught.value)
    assert len(receiver.received) == 1


def test_a_redirect_that_would_change_the_method_is_not_followed(receiver: Receiver, event: Event) -> None:
    receiver.answers = [(302, {"Location": "/moved"})]
    with pytest.raises(ActionError, match="answered 302, a redirect"):
        Webhook(url=receiver.url).dispatch(event)


def test_the_signature_is_that_of_the_body(
    receiver: Receiver, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_KEY", "s3cret")
    action = Webhook(url=receiver.url, secret_env="HOOK_KEY")
    action.dispatch(event)
    (received,) = receiver.received
    expected = hmac.new(b"s3cret", received.body, hashlib.sha256).hexdigest()
    assert received.headers["x-smdbg-signature"] == f"sha256={expected}"
    monkeypatch.delenv("HOOK_KEY")
    for dry_run in (False, True):
        with pytest.raises(ActionError, match="HOOK_KEY is not set"):
            action.dispatch(event, dry_run=dry_run)
    assert len(receiver.received) == 1


def test_secrets_are_shown_by_name_only(
    receiver: Receiver, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TOKEN", "PASSWORD", "HOOK_KEY"):
        monkeypatch.setenv(name, f"hidden-{name}")
    host = receiver.url.removeprefix("http://")
    action = Webhook(
        url=f"http://me:${{PASSWORD}}@{host}/${{TOKEN}}?key=hidden-literal&other=${{TOKEN}}",
        headers=["X-Api-Key: ${TOKEN}", "X-Token: hidden-literal", "X-Team: ml"],
        secret_env="HOOK_KEY",
    )
    done = action.dispatch(event)
    (received,) = receiver.received
    assert received.path == "/hidden-TOKEN?key=hidden-literal&other=hidden-TOKEN"
    assert received.headers["authorization"] == "Basic " + base64.b64encode(b"me:hidden-PASSWORD").decode()
    assert received.headers["x-api-key"] == "hidden-TOKEN"
    dry = action.dispatch(event, dry_run=True)
    (request,) = dry.requests
    assert request["url"] == f"http://me:${{PASSWORD}}@{host}/${{TOKEN}}?key=***&other=${{TOKEN}}"
    assert request["headers"]["X-Api-Key"] == "${TOKEN}"
    assert request["headers"]["X-Team"] == "ml"
    receiver.answers = [(500, {})] * 9
    with pytest.raises(ActionError) as failed:
        action.dispatch(event)
    assert "hidden" not in f"{done} {dry} {failed.value}"
    assert len(receiver.received) == 5


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"url": "hooks.example.com"}, "must begin with http"),
        ({"url": "ftp://hooks.example.com"}, "must begin with http"),
        ({"url": "file:///etc/passwd"}, "must begin with http"),
        ({"url": "https://"}, "must begin with http"),
        ({"url": "https://[::1"}, "no URL"),
        ({"url": "https://me:hidden@hooks.example.com"}, "holds credentials"),
        ({"url": "https://hidden@hooks.example.com"}, "holds credentials"),
        ({"url": "https://hooks.example.com", "headers": "X"}, "expected `Name: value`"),
        ({"url": "https://hooks.example.com", "headers": ["Host: x"]}, "set by the action itself"),
        ({"url": "https://hooks.example.com", "headers": ["A: x\ny"]}, "expected `Name: value`"),
        ({"url": "https://hooks.example.com", "timeout": 0}, "timeout=0"),
        ({"url": "https://hooks.example.com", "secret_env": "a b"}, "the name of an environment variable"),
    ],
)
def test_mistakes(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says) as caught:
        Webhook(**parameters)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "value", ["ftp://x", "https://a b", "x", "http://127.0.0.1:port/", "http://127.0.0.1/\n"]
)
def test_a_url_from_the_environment_is_checked_and_not_shown(
    event: Event, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("HOOK_URL", value)
    with pytest.raises(ActionError, match="with its variables in place") as caught:
        Webhook(url="${HOOK_URL}").dispatch(event)
    assert value not in str(caught.value)
