"""The action Email."""

from __future__ import annotations

from typing import Annotated, ClassVar

from smdbg_actions.sns import TopicAction, message_text, subject
from smdbg_core import Event, Meta

__all__ = ["Email"]


def _complaint(text: str) -> str | None:
    """What is wrong with an address; nothing is looked up."""
    from email_validator import EmailNotValidError, validate_email

    try:
        validate_email(text, check_deliverability=False, allow_smtputf8=False, strict=True)
    except EmailNotValidError as error:
        return str(error).rstrip(".")
    return None


class Email(TopicAction):
    """Sends an e-mail through the SNS topic.

    The recipient has to confirm the subscription once: AWS sends a link when the address is first
    subscribed. Until then nothing is delivered, and the action fails and says so.
    """

    protocol: ClassVar[str] = "email"
    attribute: ClassVar[str] = "email"

    email_address: Annotated[
        str,
        Meta(
            description="Address of the recipient; capitals are kept.",
            aliases=("endpoint",),
            check=_complaint,
            format="email",
            takes="an e-mail address",
        ),
    ]

    @property
    def recipient(self) -> str:
        """The address."""
        return self.email_address

    def message(self, event: Event) -> dict[str, str]:
        """Subject and text."""
        text = f"SMDebugRule:{event.headline}. \n\n{event.text}\n\nevent: {event.id}\n"
        return {"Subject": subject(event), "Message": message_text(text)}
