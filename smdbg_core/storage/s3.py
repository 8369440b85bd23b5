"""Objects on S3, and on whatever speaks its protocol."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from smdbg_core.errors import (
    ConfigError,
    CorruptDataError,
    DataAccessError,
    DataError,
    MissingDataError,
)
from smdbg_core.masking import masked
from smdbg_core.storage.recent_contents import Content, RecentContents
from smdbg_core.storage.s3_errors import explained, passes
from smdbg_core.storage.storage import Listed, Version

__all__ = ["S3File", "S3Storage"]

PARALLEL: Final = 16
"""Requests under way at once."""

_ATTEMPTS: Final = 6
_FIRST_PAUSE: Final = 0.1
"""Seconds before the second attempt; each further pause is twice as long, with jitter."""

_NEAR_START: Final = 1 << 16
"""A part that begins so near the start of an object is read from the start."""

_T = TypeVar("_T")


_RECENT = RecentContents()


class _BeyondEndError(Exception):
    """A range begins after the end of the object."""


class S3File:
    """An object, fetched by one request when it is first read.

    Attributes:
        name: Relative to the storage.
    """

    def __init__(self, name: str, fetch: Callable[[int, int | None], Content]) -> None:
        self.name = name
        self._fetch = fetch
        self._expected: list[tuple[int, int]] = []
        self._content: Content | None = None

    @property
    def size(self) -> int:
        """Bytes in the object."""
        return self._known().size

    def expect(self, spans: Iterable[tuple[int, int]]) -> None:
        """Fetch only from the first to the last of these parts, and of those that were expected before."""
        if self._content is not None:
            return
        parts = [*self._expected, *((offset, offset + length) for offset, length in spans)]
        if parts:
            self._expected = [(min(start for start, _ in parts), max(end for _, end in parts))]

    def holds(self, offset: int, length: int) -> bool:
        """Whether this part was fetched."""
        content = self._known()
        return content.start <= offset and offset + length <= content.start + len(content.data)

    def fetch(self) -> int:
        """Make the request now; how many bytes the object has."""
        return self.size

    def read_into(self, offset: int, buffer: memoryview) -> int:
        """Fill `buffer` from `offset` on."""
        data = self.read(offset, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, offset: int, length: int) -> bytes:
        """At most `length` bytes from `offset` on."""
        content = self._known()
        length = max(0, min(length, content.size - offset))
        if not length:
            return b""
        if not self.holds(offset, length):
            content = self._fetch(offset, offset + length)
        begin = offset - content.start
        return content.data[begin : begin + length]

    def _known(self) -> Content:
        if self._content is None:
            start, end = self._expected[0] if self._expected else (0, None)
            self._content = self._fetch(0 if start < _NEAR_START else start, end)
        return self._content

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._content = None


class S3Storage:
    """The objects below one prefix. They are listed once, when a name is first asked for.

    Region, credentials and endpoint are found as the AWS SDK finds them.

    Args:
        uri: `s3://bucket/prefix`.
    """

    parallel = PARALLEL

    def __init__(self, uri: str, listing: dict[str, Version] | None = None) -> None:
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        if not bucket:
            message = f"{uri}: no bucket; write s3://bucket/prefix"
            raise ConfigError(message)
        self._bucket = bucket
        self._prefix = prefix.rstrip("/")
        self.uri = f"s3://{bucket}/{self._prefix}".rstrip("/")
        self._listing = listing
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[S3Storage], tuple[str]]:
        # Whoever measures elsewhere is told the names, and need not list.
        return S3Storage, (self.uri,)

    def names(self, folder: str) -> Iterator[str]:
        """Names of all objects below `folder`, sorted; of all there are where it is empty."""
        start = f"{folder}/" if folder else ""
        return iter(sorted(name for name in self._listed() if name.startswith(start)))

    def entries(self, folder: str, after: str = "") -> Iterator[Listed]:
        """What lies below `folder` at this moment, sorted."""
        for page in self._pages(f"{folder}/", after):
            self._learn(page)
            yield from (Listed(name, version.token) for name, version in page.items())

    def version(self, name: str) -> Version | None:
        """The version of an object: its size and entity tag."""
        known = self._listed().get(name)
        if known is None:
            # Whatever else is new lies beside it: one page tells of all.
            page = next(self._pages(f"{name.partition('/')[0]}/" if "/" in name else name, name[:-1]), {})
            self._learn(page)
            known = page.get(name)
        return known

    def files(self) -> list[str]:
        """Names of the objects directly below the prefix, sorted."""
        return sorted(name for name in self._listed() if name and "/" not in name)

    def exists(self, name: str) -> bool:
        """Whether there is an object of that name."""
        return name in self._listed()

    def is_file(self) -> bool:
        """Whether the prefix is the key of an object."""
        return "" in self._listed()

    def require_folder(self) -> None:
        """Complain about an empty prefix."""
        if not self._listed():
            raise MissingDataError(self.uri, "there is no object below this prefix")

    def is_empty(self) -> bool:
        """Whether there is no object below the prefix."""
        return not self._listed()

    def below(self, folder: str) -> S3Storage:
        """The objects below a longer prefix; nothing is listed again."""
        start = f"{folder}/"
        listing = {
            name.removeprefix(start): one for name, one in self._listed().items() if name.startswith(start)
        }
        return S3Storage(f"{self.uri}/{folder}", listing)

    def beside(self) -> tuple[S3Storage, str]:
        """The storage that holds this object, and its name there."""
        folder, _, name = self.uri.rpartition("/")
        return S3Storage(folder, {name: self._listed()[""]}), name

    def open(self, name: str) -> S3File:
        """Open an object; it is fetched when it is first read."""
        if not name or name[0] == "/" or ".." in name.split("/"):
            raise CorruptDataError(name, "leads out of the prefix of the run")
        return S3File(name, lambda start, end: self._fetch(name, start, end))

    def open_all(self, names: Iterable[str]) -> Iterator[tuple[str, S3File | DataError]]:
        """Open objects, fetching some ahead; they are handed out in order."""
        waiting: deque[tuple[str, S3File, Future[int]]] = deque()
        with ThreadPoolExecutor(PARALLEL) as pool:
            for name in names:
                try:
                    file = self.open(name)
                except DataError as error:
                    failed: Future[int] = Future()
                    failed.set_exception(error)
                    waiting.append((name, S3File(name, self._refuse), failed))
                else:
                    waiting.append((name, file, pool.submit(S3File.fetch, file)))
                if len(waiting) >= 2 * PARALLEL:
                    yield _done(*waiting.popleft())
            while waiting:
                yield _done(*waiting.popleft())

    def read(self, name: str) -> bytes:
        """The whole object."""
        with self.open(name) as file:
            return file.read(0, file.size)

    def _refuse(self, start: int, end: int | None) -> Content:
        raise CorruptDataError(self.uri, "leads out of the prefix of the run")

    def _listed(self) -> dict[str, Version]:
        """Versions by name; the prefix itself, where it is an object, has the empty name."""
        with self._lock:
            if self._listing is None:
                _RECENT.forget(self.uri)
                self._listing = {name: one for page in self._pages() for name, one in page.items()}
            return self._listing

    def _learn(self, page: dict[str, Version]) -> None:
        """Keep what a later listing told; what was fetched of an object that was replaced is void."""
        listing = self._listed()
        for name, version in page.items():
            if listing.get(name, version) != version:
                _RECENT.forget(f"{self.uri}/{name}")
        listing |= page

    def _pages(self, start: str = "", after: str = "") -> Iterator[dict[str, Version]]:
        """What begins with `start` and sorts after `after`, up to a thousand names at once."""
        below = f"{self._prefix}/" if self._prefix else ""
        token: str | None = None
        while True:
            found: dict[str, Version] = {}
            options: dict[str, Any] = {"Bucket": self._bucket}
            options["Prefix"] = below + start if start else self._prefix
            if token is not None:
                options["ContinuationToken"] = token
            elif after:
                options["StartAfter"] = below + after
            request = partial(_client().list_objects_v2, **options)
            page = self._call("ListObjectsV2", "s3:ListBucket", self.uri, request)
            for entry in page.get("Contents", ()):
                key: str = entry["Key"]
                rest = key.removeprefix(self._prefix)
                # `run-1` begins like `run-10`, which is another run.
                if key.endswith("/") or (rest and self._prefix and not rest.startswith("/")):
                    continue
                found[rest.removeprefix("/")] = Version(entry["Size"], entry.get("ETag", ""))
            yield found
            before, token = token, page.get("NextContinuationToken")
            if not page.get("IsTruncated") or token is None:
                return
            if token == before:
                raise DataAccessError(
                    self.uri, "ListObjectsV2: the server sends the same page again and again"
                )

    def _fetch(self, name: str, start: int, end: int | None) -> Content:
        key = "/".join(part for part in (self._prefix, name) if part)
        options: dict[str, Any] = {"Bucket": self._bucket, "Key": key}
        if start or end is not None:
            options["Range"] = f"bytes={start}-{'' if end is None else end - 1}"

        def get() -> Content:
            answer = _client().get_object(**options)
            data = answer["Body"].read()
            whole = answer.get("ContentRange", "").rpartition("/")[2]
            if whole.isdecimal():
                return Content(start, data, int(whole))
            # A server that does not know ranges sends everything.
            return Content(0, data, len(data))

        where = f"s3://{self._bucket}/{key}"
        content = _RECENT.get(where, start, end)
        if content is None:
            try:
                content = self._call("GetObject", "s3:GetObject", where, get)
            except _BeyondEndError:
                # The object is shorter than its index says; what is wrong with it is for the reader to tell.
                options.pop("Range")
                content = self._call("GetObject", "s3:GetObject", where, get)
            _RECENT.put(where, content)
        return content

    def _call(self, call: str, permission: str, where: str, request: Callable[[], _T]) -> _T:
        """Make a request, again where that may help; failures are named."""
        from botocore import exceptions

        pause = _FIRST_PAUSE
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return request()
            except exceptions.ClientError as error:
                if error.response.get("Error", {}).get("Code") == "InvalidRange":
                    raise _BeyondEndError from error
                if attempt == _ATTEMPTS or not passes(error):
                    raise explained(error, call, permission, where, self._bucket) from error
            except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as error:
                advice = "set them in the environment, a profile, or the role of this machine"
                raise DataAccessError(where, f"{call}: no AWS credentials were found; {advice}") from error
            except exceptions.BotoCoreError as error:
                if attempt == _ATTEMPTS or isinstance(error, exceptions.ParamValidationError):
                    raise DataAccessError(where, masked(f"{call} failed: {error}")) from error
            except OSError as error:
                if attempt == _ATTEMPTS:
                    raise DataAccessError(where, masked(f"{call} failed: {error}")) from error
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
            pause *= 2
        raise AssertionError("the last attempt returns or raises")


def _done(name: str, file: S3File, size: Future[int]) -> tuple[str, S3File | DataError]:
    try:
        size.result()
    except DataError as error:
        return name, error
    return name, file


@lru_cache(maxsize=1)
def _client() -> Any:
    """The client; one serves all threads."""
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        message = "s3:// needs boto3: pip install 'smdbg-core[aws]'"
        raise ConfigError(message) from error
    # Retries are made here, so that bodies that break off are covered too.
    config = Config(
        retries={"total_max_attempts": 1},
        max_pool_connections=2 * PARALLEL,
        connect_timeout=10,
        read_timeout=60,
        response_checksum_validation="when_required",
    )
    try:
        # A session of its own: the default one keeps credentials that have changed since.
        return boto3.session.Session().client("s3", config=config)
    except Exception as error:
        message = f"the AWS SDK cannot make an S3 client: {error}"
        raise ConfigError(message) from error
