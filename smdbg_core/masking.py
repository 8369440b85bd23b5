"""Texts without the credentials that complaints of libraries and services repeat."""

from __future__ import annotations

import re

__all__ = ["masked"]

_USERINFO = re.compile(r"(?<=://)[^/@\s\"']+@")
_PARAMETER = re.compile(
    r"((?:token|key|secret|signature|password|credential)[\w-]*=)[^&\s\"']+", re.IGNORECASE
)
_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b")
_AUTHORIZATION = re.compile(r"\b(Bearer|Basic) [\w.~+/=-]{6,}")


def masked(text: str) -> str:
    """The text with `***` for user and password in URLs, tokens in their queries, bearers and AWS key ids."""
    text = _USERINFO.sub("***@", text)
    text = _PARAMETER.sub(r"\1***", text)
    text = _AUTHORIZATION.sub(r"\1 ***", text)
    return _KEY_ID.sub("***", text)
