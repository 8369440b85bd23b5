"""A receiver of webhooks on the loopback."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple

__all__ = ["Handler", "Received", "Receiver"]


class Received(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """What was received, and what to answer.

    Attributes:
        answers: Status and headers of the next answers; 204 when there are no more.
        delay: Seconds before each answer.
    """

    def __init__(self) -> None:
        self.url = ""
        self.received: list[Received] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.delay = 0.0

    @property
    def keys(self) -> set[str]:
        """The distinct events that arrived."""
        return {one.headers["idempotency-key"] for one in self.received}


class Handler(BaseHTTPRequestHandler):
    receiver: Receiver

    def log_message(self, *_: object) -> None: ...

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.receiver.received.append(Received(self.path, headers, body))
        time.sleep(self.receiver.delay)
        status, further = self.receiver.answers.pop(0) if self.receiver.answers else (204, {})
        self.send_response(status)
        for name, value in further.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST
