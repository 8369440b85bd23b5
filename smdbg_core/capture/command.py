"""Running a command in the foreground: signals go to it, its exit status comes back."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["Command"]

_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FROM_TERMINAL = ("SIGINT", "SIGQUIT")
"""What a key on the terminal sends to the whole group of processes, the command included."""

_CANNOT_RUN = 126
_NOT_FOUND = 127


class Command:
    """A command in the foreground; use it in a `with` statement, in the main thread.

    Signals that come within the block are passed on to the command, also such as come before it runs;
    once it has ended they do nothing. A signal that this process ignores, as under `nohup`, stays
    ignored for the command.

    Args:
        arguments: The command and its arguments.
        environment: Its environment.
    """

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._handlers: dict[signal.Signals, Any] = {}

    def run(self) -> tuple[int, str | None]:
        """Run it until it ends.

        Returns:
            Its exit status as shells give it: 128 and the number of the signal that ended it, 126 and
            127 where it cannot be run or is not found; then what kept it from running, if anything did.
        """
        name = self._arguments[0]
        try:
            self._process = subprocess.Popen(self._arguments, env=self._environment)
        except FileNotFoundError:
            return _NOT_FOUND, f"{name}: command not found"
        except (OSError, ValueError) as error:
            return _CANNOT_RUN, f"{name}: {getattr(error, 'strerror', None) or error}"
        for number in self._early:
            self._process.send_signal(number)
        status = self._process.wait()
        return (status if status >= 0 else 128 - status), None

    def __enter__(self) -> Self:
        for name in _FORWARDED:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, self._forward)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if signal.Signals(number).name in _FROM_TERMINAL and _in_foreground():
            return
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)


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
