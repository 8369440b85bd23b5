"""The actions of smdbg: StopTraining, Email, SMS, Webhook, StopFile and Log.

Importing the package imports nothing else, so that a training loop can ask `stop_requested` for free.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdbg_actions.email import Email
    from smdbg_actions.log import Log
    from smdbg_actions.sms import SMS
    from smdbg_actions.stop_file import StopFile
    from smdbg_actions.stop_training import StopTraining
    from smdbg_actions.webhook import Webhook

__all__ = ["Email", "Log", "SMS", "StopFile", "StopTraining", "Webhook", "stop_requested"]

_HOMES = {
    "Email": "email",
    "Log": "log",
    "SMS": "sms",
    "StopFile": "stop_file",
    "StopTraining": "stop_training",
    "Webhook": "webhook",
}


def stop_requested(path: str | os.PathLike[str]) -> bool:
    """Whether the action StopFile asks the training loop to end; a look at the file system, nothing else.

    Args:
        path: The path that the action was given.
    """
    return os.path.exists(path)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
