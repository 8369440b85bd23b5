"""Running a command in the foreground: signals go to it, its exit status comes back."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

__all__ = ["run_command"]

_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FROM_TERMINAL = ("SIGINT", "SIGQUIT")
"""What a key on the terminal sends to the whole group of processes, the command included."""

_CANNOT_RUN = 126
_NOT_FOUND = 127


def run_command(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str | None]:
    """Run a command until it ends; signals that come meanwhile are passed on to it.

    Must be called in the main thread. A signal that this process ignores, as under `nohup`, stays
    ignored for the command.

    Args:
        arguments: The command and its arguments.
        environment: Its environment.

    Returns:
        Its exit status as shells give it: 128 and the number of the signal that ended it, 126 and
        127 where it cannot be run or is not found; then what kept it from running, if anything did.
    """
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        if process is None:
            early.append(number)
        elif not (signal.Signals(number).name in _FROM_TERMINAL and _in_foreground()):
            process.send_signal(number)

    before: dict[signal.Signals, Any] = {}
    for name in _FORWARDED:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, forward)
    try:
        process = subprocess.Popen(arguments, env=dict(environment))
        for pending in early:
            process.send_signal(pending)
        status = process.wait()
    except FileNotFoundError:
        return _NOT_FOUND, f"{arguments[0]}: command not found"
    except (OSError, ValueError) as error:
        return _CANNOT_RUN, f"{arguments[0]}: {getattr(error, 'strerror', None) or error}"
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return (status if status >= 0 else 128 - status), None


def _in_foreground() -> bool:
    """Whether the terminal, if there is one, sends its keys' signals to this group of processes."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
