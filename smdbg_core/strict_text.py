"""Text that UTF-8 can carry."""

from __future__ import annotations

__all__ = ["strict_text"]


def strict_text(text: str) -> str:
    r"""The text with what UTF-8 has no form for made visible.

    Names of files are bytes, and Python gives those that are no UTF-8 as surrogates, which no JSON, no
    database and no request can hold: the byte ff becomes `\xff`.
    """
    if text.isascii():
        return text
    try:
        content = text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        content = text.encode(errors="backslashreplace")
    return content.decode(errors="backslashreplace")
