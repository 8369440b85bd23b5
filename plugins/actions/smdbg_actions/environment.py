"""References to environment variables: how secrets stay out of configuration, reports and journal."""

from __future__ import annotations

import os
import re

from smdbg_core import ActionError

__all__ = ["expand", "has_reference", "variable"]

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def expand(text: str) -> str:
    """The text with the values of the variables that it names as `${NAME}`.

    Raises:
        ActionError: A variable is not set or empty.
    """
    return _REFERENCE.sub(lambda found: variable(found[1]), text)


def has_reference(text: str) -> bool:
    """Whether the text names a variable."""
    return _REFERENCE.search(text) is not None


def variable(name: str) -> str:
    """The value of an environment variable.

    Raises:
        ActionError: It is not set or empty.
    """
    value = os.environ.get(name, "")
    if not value:
        message = f"the environment variable {name} is not set; the configuration of this action names it"
        raise ActionError(message)
    return value
