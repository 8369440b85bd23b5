"""What the actions over an SNS topic share: topic, subscription with its filter, and the message."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import closing
from typing import Annotated, Any, ClassVar

from smdbg_actions.aws import call, make_client
from smdbg_core import Action, ActionError, ActionResult, Event, Meta

__all__ = ["TopicAction", "message_text", "subject", "topic_policy"]

_ARN = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}"
_PENDING = ("pendingconfirmation", "pending confirmation")
_DELAY = "up to 15 minutes"
_LONGEST_MESSAGE = 8000
_LONGEST_SUBJECT = 99


def topic_policy(*further: Mapping[str, Any]) -> dict[str, Any]:
    """The least that must be allowed to send through the topic."""
    topic = {
        "Effect": "Allow",
        "Action": [
            "sns:CreateTopic",
            "sns:GetSubscriptionAttributes",
            "sns:ListSubscriptionsByTopic",
            "sns:Publish",
            "sns:SetSubscriptionAttributes",
            "sns:Subscribe",
        ],
        "Resource": "arn:aws:sns:*:111122223333:SMDebugRules",
    }
    return {"Version": "2012-10-17", "Statement": [topic, *further]}


class TopicAction(Action):
    """A message to one recipient through an SNS topic.

    All recipients share the topic: each has a subscription with a filter, and each message an attribute
    that passes the filter of its recipient alone.
    """

    policy: ClassVar = topic_policy()
    protocol: ClassVar[str]
    attribute: ClassVar[str]
    """Message attribute that the filter looks at."""

    topic: Annotated[
        str,
        Meta(
            description="SNS topic, by name or ARN; a name's topic is made if it is not there.",
            pattern=f"[A-Za-z0-9_-]{{1,256}}|{_ARN}",
            takes="the name of a topic, or its ARN",
            local=True,
        ),
    ] = "SMDebugRules"
    max_per_hour: Annotated[
        int | None,
        Meta(gt=0, local=True, description="Notices of this action in an hour; further ones are suppressed."),
    ] = 60
    retry_unknown: Annotated[
        bool,
        Meta(
            local=True,
            description="Whether to send again when a crash left it unknown whether the message was sent.",
        ),
    ] = False

    @property
    @abstractmethod
    def recipient(self) -> str:
        """The address of the subscription."""

    @abstractmethod
    def message(self, event: Event) -> dict[str, str]:
        """`Message`, and `Subject` where the protocol has one."""

    def check_recipient(self, client: Any) -> str:
        """Raise `ActionError` if the recipient cannot be reached; else a remark, or nothing."""
        return ""

    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        """Publish the message to the recipient alone."""
        if dry_run:
            return self._plan(event)
        with closing(self._client()) as client:
            topic = self._topic_arn(client)
            remarks = [self.check_recipient(client), self._subscribe(client, topic)]
            message = self.message(event) | self._addressed()
            answer = call(client, "publish", repeatable=False, TopicArn=topic, **message)
        sent = f"published to {self.recipient} as message {answer['MessageId']}"
        return ActionResult(detail="; ".join([sent, *filter(None, remarks)]))

    def subscribe(self) -> str:
        """Subscribe the recipient now, so that a confirmation is not waited for when a rule fires.

        Returns:
            The state of the subscription, in words.

        Raises:
            ActionError: It is not confirmed yet, or it cannot be made.
        """
        with closing(self._client()) as client:
            remark = self._subscribe(client, self._topic_arn(client))
        return remark or f"{self.recipient} is subscribed"

    def _client(self) -> Any:
        """A client for the region of the topic's ARN, or else the one of the SDK's chain."""
        return make_client("sns", self.topic.split(":")[3] if self._by_arn else None)

    @property
    def _by_arn(self) -> bool:
        return self.topic.startswith("arn:")

    def _topic_arn(self, client: Any) -> str:
        return self.topic if self._by_arn else str(call(client, "create_topic", Name=self.topic)["TopicArn"])

    def _subscribe(self, client: Any, topic: str) -> str:
        """See to a confirmed subscription with the right filter; what is to be said about it."""
        arn = self._subscription(client, topic)
        if arn is None:
            answer = call(client, "subscribe", TopicArn=topic, **self._subscription_arguments())
            if str(answer.get("SubscriptionArn", "")).lower() in _PENDING:
                raise self._unconfirmed("AWS has just sent a request to confirm it")
            return f"the subscription is new: messages may be lost until its filter works, {_DELAY}"
        if arn.lower() in _PENDING:
            raise self._unconfirmed("its owner has not confirmed it")
        return self._repair(client, arn)

    def _subscription(self, client: Any, topic: str) -> str | None:
        """ARN of the recipient's subscription, from all pages."""
        arguments: dict[str, Any] = {"TopicArn": topic}
        tokens: set[str] = set()
        while True:
            page = call(client, "list_subscriptions_by_topic", **arguments)
            for one in page.get("Subscriptions", ()):
                mine = (one["Protocol"], one["Endpoint"]) == (self.protocol, self.recipient)
                if mine and one["SubscriptionArn"].lower() != "deleted":
                    return str(one["SubscriptionArn"])
            token = page.get("NextToken")
            if not token:
                return None
            if token in tokens:
                raise ActionError(f"SNS gave the page {token!r} twice: the list cannot be trusted")
            tokens.add(token)
            arguments["NextToken"] = token

    def _repair(self, client: Any, arn: str) -> str:
        """Give a subscription the filter that it lacks: without it, it gets everybody's messages."""
        attributes = call(client, "get_subscription_attributes", SubscriptionArn=arn)["Attributes"]
        repaired = ""
        if attributes.get("FilterPolicyScope", "MessageAttributes") != "MessageAttributes":
            scope: dict[str, Any] = {
                "AttributeName": "FilterPolicyScope",
                "AttributeValue": "MessageAttributes",
            }
            call(client, "set_subscription_attributes", SubscriptionArn=arn, **scope)
        if not self._passes(attributes.get("FilterPolicy")):
            wanted: dict[str, Any] = {"AttributeName": "FilterPolicy", "AttributeValue": self._filter()}
            call(client, "set_subscription_attributes", SubscriptionArn=arn, **wanted)
            repaired = f"the subscription had another filter, which was set right; that takes {_DELAY}"
        return repaired

    def _passes(self, policy: str | None) -> bool:
        try:
            known = json.loads(policy or "{}")
        except ValueError:
            return False
        accepted = known.get(self.attribute) if isinstance(known, dict) and len(known) == 1 else None
        return isinstance(accepted, list) and self.recipient in accepted

    def _unconfirmed(self, why: str) -> ActionError:
        return ActionError(
            f"nothing was sent: the subscription of {self.recipient} is pending confirmation, {why}. "
            "Once it is confirmed, `smdbg journal retry` or the next run sends the notice"
        )

    def _filter(self) -> str:
        return json.dumps({self.attribute: [self.recipient]})

    def _subscription_arguments(self) -> dict[str, Any]:
        return {
            "Protocol": self.protocol,
            "Endpoint": self.recipient,
            "Attributes": {"FilterPolicy": self._filter()},
            "ReturnSubscriptionArn": False,
        }

    def _addressed(self) -> dict[str, Any]:
        value = {"DataType": "String", "StringValue": self.recipient}
        return {"MessageAttributes": {self.attribute: value}}

    def _plan(self, event: Event) -> ActionResult:
        """What a dry run shows."""
        topic = {"TopicArn": self.topic if self._by_arn else f"(the ARN of {self.topic})"}
        calls: list[tuple[str, dict[str, Any]]] = [
            *([] if self._by_arn else [("CreateTopic", {"Name": self.topic})]),
            ("ListSubscriptionsByTopic", topic),
            ("Subscribe", topic | self._subscription_arguments()),
            ("Publish", topic | self.message(event) | self._addressed()),
        ]
        requests: list[dict[str, Any]] = [
            {"service": "sns", "operation": operation, "arguments": arguments}
            for operation, arguments in calls
        ]
        requests[-2]["if"] = "the recipient is not subscribed"
        return ActionResult(detail=f"would publish to {self.recipient}", requests=requests)


def message_text(text: str) -> str:
    """A text as SNS takes it: no control characters, and no longer than anybody reads."""
    plain = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return plain if len(plain) <= _LONGEST_MESSAGE else plain[: _LONGEST_MESSAGE - 3] + "..."


def subject(event: Event) -> str:
    """The subject as SNS takes it: ASCII, one line, under 100 characters."""
    text = " ".join(f"SMDebugRule:{event.headline}".split())
    text = "".join(c if " " <= c <= "~" else "?" for c in text)
    return text if len(text) <= _LONGEST_SUBJECT else text[: _LONGEST_SUBJECT - 3] + "..."
