"""The action Webhook."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import IO, Annotated, Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from smdbg_actions.backoff import delays
from smdbg_actions.environment import expand, has_reference, variable
from smdbg_core import Action, ActionError, ActionResult, Event, Meta, __version__, constraint

__all__ = ["Webhook"]

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SECRET_HEADER = re.compile(r"auth|token|key|secret|cookie|signature", re.IGNORECASE)
_RESERVED = frozenset({"content-type", "content-length", "host", "idempotency-key", "x-smdbg-signature"})
_AGAIN = frozenset({408, 425, 429})
_LONGEST_WAIT = 30.0


class Webhook(Action):
    """Posts the event as JSON to a URL.

    Each request carries the event's id as `Idempotency-Key`, the same in every repetition. With
    `secret_env`, `X-Smdbg-Signature` is `sha256=` and the hexadecimal HMAC-SHA256 of the body. Timeouts,
    refused connections, 429 and 5xx are repeated with back-off; redirects are followed on the same host
    only. Secrets come from the environment: `${NAME}` in URL and headers stands for a variable, and is
    all that reports, logs and the journal ever show.
    """

    url: Annotated[
        str,
        Meta(
            description="Where to post; `${NAME}` stands for an environment variable.",
            local=True,
            secret=True,
        ),
    ]
    headers: Annotated[
        tuple[str, ...],
        Meta(description="Further headers, `Name: value`; `${NAME}` as in the URL.", local=True, secret=True),
    ] = ()
    secret_env: Annotated[
        str | None,
        Meta(
            description="Environment variable with the key that signs the body.",
            pattern="[A-Za-z_][A-Za-z0-9_]*",
            takes="the name of an environment variable",
            local=True,
        ),
    ] = None
    timeout: Annotated[
        float,
        Meta(
            gt=0,
            le=300,
            unit="seconds",
            description="Patience with connecting, and with each wait for the answer.",
            local=True,
        ),
    ] = 10.0
    retries: Annotated[int, Meta(ge=0, le=10, description="Repetitions of a failed attempt.", local=True)] = 3

    @constraint("url")
    def _url_is_usable(self) -> str | None:
        # Complaints never repeat the URL: what is wrong with it may be the secret in it.
        if self.url.startswith("${"):
            return None
        try:
            parts = urlsplit(self.url)
            userinfo = parts.netloc.rpartition("@")[0]
        except ValueError as error:
            return f"url is no URL: {error}"
        if parts.scheme not in ("http", "https") or not parts.netloc:
            return "url must begin with http:// or https:// and name a host"
        if userinfo and not has_reference(userinfo):
            return "url holds credentials: put them into the environment, and write ${NAME} in their place"
        return None

    @constraint("headers")
    def _headers_are_usable(self) -> str | None:
        for header in self.headers:
            name, colon, value = header.partition(":")
            if not (colon and _HEADER.fullmatch(name.strip()) and value.isprintable()):
                return f"header {name.strip()!r}: expected `Name: value`"
            if name.strip().lower() in _RESERVED:
                return f"header {name.strip()!r} is set by the action itself"
        return None

    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        """Post the event, with repetitions."""
        body = json.dumps(event.document(), allow_nan=False).encode()
        sent = {
            "Content-Type": "application/json",
            "User-Agent": f"smdbg/{__version__}",
            "Idempotency-Key": event.id,
        }
        if self.secret_env is not None:
            key = variable(self.secret_env).encode()
            sent["X-Smdbg-Signature"] = "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()
        given = [header.partition(":") for header in self.headers]
        configured = {name.strip(): value.strip() for name, _, value in given}
        target, host, credentials = _target(expand(self.url))
        headers = sent | {name: _header(name, expand(value)) for name, value in configured.items()}
        if credentials is not None:
            headers.setdefault("Authorization", credentials)
        if dry_run:
            shown = sent | {name: _masked(name, value) for name, value in configured.items()}
            request = {"method": "POST", "url": _shown(self.url), "headers": shown, "body": event.document()}
            return ActionResult(detail=f"would post to {_shown(self.url)}", requests=[request])
        return ActionResult(detail=self._post(target, host, headers, body))

    def _post(self, target: str, host: str, headers: dict[str, str], body: bytes) -> str:
        opener = urllib.request.build_opener(_SameHost)
        request = urllib.request.Request(target, body, headers, method="POST")  # noqa: S310 - http(s) only
        waits, attempt = delays(self.retries), 0
        while True:
            attempt += 1
            wait = next(waits, None)
            try:
                with opener.open(request, timeout=self.timeout) as response:
                    return f"posted to {host}: {response.status}" + _attempts(attempt)
            except urllib.error.HTTPError as error:
                with error:
                    trouble = f"{host} answered {error.code}"
                    repeat = error.code in _AGAIN or error.code >= 500
                    wait = _asked_wait(error, wait)
                if 300 <= error.code < 400:
                    trouble += ", a redirect that is not followed: give the final `url`"
            except (OSError, HTTPException, ValueError) as error:
                reason = getattr(error, "reason", error)
                text = str(reason) or type(reason).__name__
                trouble, repeat = f"{host} cannot be reached: {text}", "CERTIFICATE" not in text
            if wait is None or not repeat:
                message = f"nothing was delivered: {trouble}" + _attempts(attempt)
                raise ActionError(message)
            time.sleep(wait)


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirects that keep scheme, host, port, method and body; refuses all others."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if code in (307, 308) and _origin(req.full_url) == _origin(newurl):
            return urllib.request.Request(newurl, req.data, req.headers, method=req.get_method())  # noqa: S310 - same scheme
        raise urllib.error.HTTPError(req.full_url, code, "redirect", headers, fp)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _target(url: str) -> tuple[str, str, str | None]:
    """The URL without credentials, its host, and the credentials as a header."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = SplitResult("", "", "", "", ""), None, None
    if (
        parts.scheme not in ("http", "https")
        or not host
        or not url.isascii()
        or not url.isprintable()
        or " " in url
    ):
        message = "with its variables in place, `url` is no http:// or https:// URL of ASCII characters"
        raise ActionError(message)
    credentials = None
    if parts.username is not None or parts.password is not None:
        pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        credentials = "Basic " + base64.b64encode(pair.encode()).decode()
    place = f"[{host}]" if ":" in host else host
    place += f":{port}" if port is not None else ""
    return urlunsplit((parts.scheme, place, parts.path or "/", parts.query, "")), place, credentials


def _shown(url: str) -> str:
    """The URL as it may be shown: variables by name, and no values of a query."""
    head, _, query = url.partition("#")[0].partition("?")
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    shown = "&".join(f"{name}={value if has_reference(value) else '***'}" for name, _, value in pairs)
    return head + (f"?{shown}" if shown else "")


def _masked(name: str, value: str) -> str:
    return "***" if _SECRET_HEADER.search(name) and not has_reference(value) else value


def _header(name: str, value: str) -> str:
    if not value.isascii() or not value.isprintable():
        message = f"with its variables in place, header {name!r} holds what no header can"
        raise ActionError(message)
    return value


def _asked_wait(error: urllib.error.HTTPError, wait: float | None) -> float | None:
    """What the receiver asks for in `Retry-After`, within reason, but never less than our own wait."""
    asked = error.headers.get("Retry-After", "") if error.headers else ""
    if wait is None or not (asked.isascii() and asked.isdigit()):
        return wait
    return max(wait, min(float(asked), _LONGEST_WAIT))


def _attempts(number: int) -> str:
    return f" ({number} attempts)" if number > 1 else ""
