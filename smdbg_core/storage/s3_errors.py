"""What S3 answers when it refuses: whether to try again, and what to tell people."""

from __future__ import annotations

from typing import Any

from smdbg_core.errors import DataAccessError, DataError, MissingDataError
from smdbg_core.masking import masked

__all__ = ["explained", "passes"]

_PASSING = frozenset(
    (
        "InternalError",
        "RequestLimitExceeded",
        "RequestTimeout",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
    )
)
_ELSEWHERE = frozenset(
    ("301", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect")
)


def passes(error: Any) -> bool:
    """Whether the same request may succeed later."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= 500 or status == 429 or error.response.get("Error", {}).get("Code") in _PASSING


def explained(error: Any, call: str, permission: str, where: str, bucket: str) -> DataError:
    """What the answer of the service means, and what to do."""
    details = error.response.get("Error", {})
    code, said = details.get("Code", ""), details.get("Message", "")
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region = headers.get("x-amz-bucket-region") or details.get("Region")
    if code == "NoSuchBucket":
        return MissingDataError(where, f"{call}: there is no bucket {bucket}")
    if code in ("NoSuchKey", "404"):
        return MissingDataError(where, "no such file")
    if code in _ELSEWHERE:
        place = f"in region {region}" if region else "in another region"
        return DataAccessError(where, f"{call}: the bucket lies {place}; set AWS_REGION accordingly")
    if code in ("AccessDenied", "403", "AllAccessDisabled"):
        return DataAccessError(where, f"{call} was denied: the caller needs {permission}")
    if code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"):
        return DataAccessError(where, f"{call}: the AWS credentials are not accepted ({code}); renew them")
    return DataAccessError(where, masked(f"{call} failed: {code} {said}".rstrip()))
