"""A headless Chromium for tests of pages: Debian's, driven over its own debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["CHROMIUM", "Chromium", "chromium"]

CHROMIUM = shutil.which("chromium")

_ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--remote-debugging-pipe", "--force-device-scale-factor=1",
)  # fmt: skip


class Chromium:
    """One browser with one tab.

    Attributes:
        errors: Console errors, uncaught exceptions and refusals by the page's policy.
        requests: Addresses that were asked for, other than the page itself.
    """

    def __init__(self, read: int, write: int) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._read, self._write = read, write
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._loaded = False
        self._page = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            got = self._receive(deadline)
            if got.get("id") == self._number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                result: dict[str, Any] = got.get("result", {})
                return result
        raise TimeoutError(method)

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> float:
        """Open a page and wait until it is loaded.

        Returns:
            Seconds from the start of navigation until the page's own script had run.
        """
        self.resize(width, height)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.errors.clear()
        self.requests.clear()
        self._loaded = False
        self._page = path.resolve().as_uri()
        self.call("Page.navigate", url=self._page)
        deadline = time.monotonic() + 30
        while not self._loaded:
            self._receive(deadline)
        return float(self.run("Number(document.documentElement.dataset.ready)")) / 1000

    def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def run(self, script: str) -> Any:
        """Evaluate a script in the page, promises included."""
        got = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(json.dumps(got["exceptionDetails"])[:500])
        return got["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" else {}))

    def screenshot(self, path: Path, *, height: int | None = None) -> None:
        """Save what the window shows."""
        options: dict[str, Any] = {}
        if height is not None:
            width = self.run("innerWidth")
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
            options = {"clip": clip, "captureBeyondViewport": True}
        got = self.call("Page.captureScreenshot", format="png", **options)
        path.write_bytes(base64.b64decode(got["data"]))

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise EOFError("the browser has ended")
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(
                " ".join(str(one.get("value", one.get("description"))) for one in params["args"])
            )
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if url.partition("#")[0] != self._page and not url.startswith(("data:", "blob:")):
                self.requests.append(url)


@contextmanager
def chromium() -> Iterator[Chromium]:
    """A browser with an empty profile, ended when it is done with."""
    if CHROMIUM is None:
        raise FileNotFoundError("chromium")
    into_read, into_write = os.pipe()
    out_read, out_write = os.pipe()

    def connect() -> None:
        # The browser reads commands at 3 and answers at 4; the pipes may lie there in the other order.
        source, sink = os.dup(into_read), os.dup(out_write)
        os.dup2(source, 3)
        os.dup2(sink, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [CHROMIUM, *_ARGUMENTS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=connect,
        )  # fmt: skip
        os.close(into_read)
        os.close(out_write)
        try:
            yield Chromium(out_read, into_write)
        finally:
            with suppress(OSError):
                os.close(into_write)
            os.close(out_read)
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            if process.poll() is None:
                process.kill()
                process.wait()
