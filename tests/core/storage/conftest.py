"""S3-compatible servers on loopback, behind a proxy that counts and misbehaves."""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

boto3 = pytest.importorskip("boto3")

Fault = Callable[["Proxy", str, str], str | None]
"""Given call and path, how to misbehave: `503`, `reset`, `truncate`, `403`, `404`, or not at all."""

_ERRORS = {"503": "SlowDown", "403": "AccessDenied", "404": "NoSuchKey"}
_LISTED = re.compile(rb"<Contents>.*?</Contents>", re.DOTALL)


class Proxy:
    """Forwards to a server; counts requests by call and by key.

    Attributes:
        fault: How to misbehave.
        keys_in_page: How many keys a page of a list has at most, if fewer than a thousand.
        relist: Given the entries of a page by key, what is sent in their place.
        rewrite: Given a page, what is sent in its place.
    """

    def __init__(self, port: int) -> None:
        self.upstream = port
        self.calls: Counter[str] = Counter()
        self.gets: Counter[str] = Counter()
        self.ranges: list[str] = []
        self.sent = 0
        self.fault: Fault | None = None
        self.keys_in_page: int | None = None
        self.relist: Callable[[dict[str, bytes]], Iterable[bytes]] | None = None
        self.rewrite: Callable[[bytes], bytes] = bytes
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def reset(self) -> None:
        self.calls.clear()
        self.gets.clear()
        self.ranges.clear()
        self.sent = 0
        self.fault = None
        self.keys_in_page = None
        self.relist = None
        self.rewrite = bytes

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def note(self, path: str, headers: http.client.HTTPMessage) -> tuple[str, str | None]:
        split = urlsplit(path)
        call = "ListObjectsV2" if "list-type" in parse_qs(split.query) else "GetObject"
        with self._lock:
            self.calls[call] += 1
            if call == "GetObject":
                self.gets[split.path] += 1
                if headers.get("Range"):
                    self.ranges.append(headers["Range"])
            fault = self.fault(self, call, split.path) if self.fault is not None else None
        return call, fault

    def page(self, body: bytes) -> bytes:
        """A page of a list as it is sent."""
        if self.relist is None:
            return self.rewrite(body)
        entries = {}
        for found in _LISTED.findall(body):
            key = found.partition(b"<Key>")[2].partition(b"</Key>")[0]
            entries[unquote(key.decode())] = found
        rest = _LISTED.sub(b"", body)
        sent = b"".join(self.relist(entries))
        return rest.replace(b"</ListBucketResult>", sent + b"</ListBucketResult>")

    def _handler(proxy) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

            def do_GET(self) -> None:
                call, fault = proxy.note(self.path, self.headers)
                if fault == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    self.connection.close()
                    self.close_connection = True
                    return
                if fault in _ERRORS:
                    code = _ERRORS[fault]
                    self.answer(
                        int(fault), {}, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
                    )
                    return
                upstream = http.client.HTTPConnection("127.0.0.1", proxy.upstream, timeout=30)
                listing = call == "ListObjectsV2"
                few = f"&max-keys={proxy.keys_in_page}" if listing and proxy.keys_in_page else ""
                try:
                    upstream.request("GET", self.path + few, headers=dict(self.headers))
                    response = upstream.getresponse()
                    body = response.read()
                finally:
                    upstream.close()
                kept = ("content-range", "etag", "content-type", "x-amz-bucket-region")
                headers = {name: value for name, value in response.getheaders() if name.lower() in kept}
                if listing:
                    body = proxy.page(body)
                self.answer(response.status, headers, body, cut=fault == "truncate")

            def answer(self, status: int, headers: dict[str, str], body: bytes, *, cut: bool = False) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if cut else body)
                proxy.sent += len(body)
                if cut:
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                pass

        return Handler


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(kind: str, port: int) -> subprocess.Popen[bytes]:
    scripts = Path(sys.executable).parent
    commands = {"moto": [str(scripts / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]}
    commands["ministack"] = [str(scripts / "ministack")]
    if not Path(commands[kind][0]).exists():
        pytest.skip(f"{kind} is not installed")
    environment = {**os.environ, "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port)}
    return subprocess.Popen(
        commands[kind], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


@pytest.fixture(scope="session", params=["moto", "ministack"])
def server(request: pytest.FixtureRequest) -> Iterator[int]:
    """Port of an S3-compatible server."""
    port = _free_port()
    process = _start(request.param, port)
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        time.sleep(0.5)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture
def s3(server: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The proxy before the server; the AWS SDK is pointed at it."""
    from smdbg_core.storage import s3 as module

    proxy = Proxy(server)
    for name, value in {
        "AWS_ENDPOINT_URL": proxy.url,
        "AWS_ACCESS_KEY_ID": "example",
        "AWS_SECRET_ACCESS_KEY": "example",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.001)
    module._client.cache_clear()
    yield proxy
    module._client.cache_clear()
    proxy.close()


@pytest.fixture
def upload(server: int) -> Callable[[Path, str], str]:
    """Puts a folder below a prefix of the bucket `runs`, past the proxy; returns the URI."""
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{server}",
        aws_access_key_id="example",
        aws_secret_access_key="example",
        region_name="us-east-1",
    )
    if "runs" not in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]:
        client.create_bucket(Bucket="runs")

    def put(folder: Path, prefix: str) -> str:
        def one(path: Path) -> None:
            name = path.relative_to(folder).as_posix() if folder.is_dir() else ""
            client.put_object(Bucket="runs", Key=f"{prefix}/{name}".rstrip("/"), Body=path.read_bytes())

        paths = [folder] if folder.is_file() else [path for path in folder.rglob("*") if path.is_file()]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, paths))
        return f"s3://runs/{prefix}"

    return put
