"""The action SMS."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from smdbg_actions.aws import AwsError, call
from smdbg_actions.sns import TopicAction, subject, topic_policy
from smdbg_core import ActionError, Event, Meta

__all__ = ["SMS"]

_LONGEST = 140
"""Bytes of one part; a longer message costs as several."""


class SMS(TopicAction):
    """Sends a text message through the SNS topic.

    New AWS accounts reach verified numbers only, and every account has a spending limit; SNS tells of
    neither. A number that has opted out is found out and reported.
    """

    protocol: ClassVar[str] = "sms"
    attribute: ClassVar[str] = "phone_num"
    policy: ClassVar = topic_policy(
        {"Effect": "Allow", "Action": ["sns:CheckIfPhoneNumberIsOptedOut"], "Resource": "*"}
    )

    phone_number: Annotated[
        str,
        Meta(
            description="Number of the recipient in E.164 form.",
            aliases=("endpoint",),
            pattern=r"\+[1-9][0-9]{1,14}",
            takes="a phone number as in +15550100: plus, country code, number, at most 15 digits",
        ),
    ]

    @property
    def recipient(self) -> str:
        """The number."""
        return self.phone_number

    def message(self, event: Event) -> dict[str, str]:
        """One part of text."""
        text = subject(event)
        if event.finding is not None:
            text += f": {event.finding.subject} {event.finding.message}"
        text = "".join(c if " " <= c <= "~" else "?" for c in text)
        return {"Message": text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."}

    def check_recipient(self, client: Any) -> str:
        """Find out whether the number has opted out."""
        try:
            answer = call(client, "check_if_phone_number_is_opted_out", phoneNumber=self.phone_number)
        except AwsError as error:
            if not error.denied:
                raise
            return "whether the number has opted out is not known: " + str(error)
        if answer.get("isOptedOut"):
            message = f"nothing was sent: {self.phone_number} has opted out; its owner can opt in again"
            raise ActionError(message)
        return ""
