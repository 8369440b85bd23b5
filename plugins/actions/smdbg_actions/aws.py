"""Calls to AWS: clients through the SDK's own chain, bounded repetition, and errors that say what to do.

boto3 is imported when the first client is made, that is, when an action is dispatched.
"""

from __future__ import annotations

import time
from typing import Any

from smdbg_actions.backoff import delays
from smdbg_core import ActionError, UnknownOutcomeError

__all__ = ["AwsError", "call", "make_client"]

REPETITIONS = 4

_THROTTLED = frozenset(
    {
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttled",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_DENIED = frozenset(
    {"AccessDenied", "AccessDeniedException", "AuthorizationError", "AuthorizationErrorException"}
)


class AwsError(ActionError):
    """AWS answered with an error.

    Args:
        message: What happened and what to try.
        code: The code of the answer, such as `ValidationException`.
        denied: Whether a permission is missing.
    """

    def __init__(self, message: str, code: str = "", denied: bool = False) -> None:
        self.code = code
        self.denied = denied
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code, self.denied)


def make_client(service: str, region: str | None = None) -> Any:
    """A client whose region, credentials, profile and endpoint come from the AWS SDK's chain.

    Args:
        service: boto3's name of the service.
        region: The region that an ARN names; by default the chain's.

    Raises:
        ActionError: The chain gives no region, or a profile that does not exist.
    """
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    # Repetition is in `call`: a message whose answer is lost must not be sent again by itself.
    config = Config(
        connect_timeout=10, read_timeout=30, retries={"total_max_attempts": 1, "mode": "standard"}
    )
    try:
        return boto3.session.Session().client(service, region_name=region, config=config)
    except (BotoCoreError, ValueError) as error:
        chain = "AWS_DEFAULT_REGION, AWS_PROFILE, AWS_ENDPOINT_URL, ~/.aws/config"
        message = f"no client for {service}: {error} The AWS SDK looks for its settings in {chain}"
        raise ActionError(message) from error


def call(client: Any, operation: str, *, repeatable: bool = True, **arguments: Any) -> Any:
    """Call an operation, again after throttling, server faults and failures to connect.

    Args:
        client: From `make_client`.
        operation: boto3's name of the method.
        repeatable: Whether to repeat when the answer was lost, and the call may have taken effect.
        **arguments: Of the method.

    Raises:
        AwsError: AWS refused, or kept failing.
        UnknownOutcomeError: The answer was lost, and the call is not repeatable.
        ActionError: AWS cannot be reached, or there are no credentials.
    """
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        ConnectionClosedError,
        ConnectTimeoutError,
        EndpointConnectionError,
        ReadTimeoutError,
    )

    waits, attempt = delays(REPETITIONS), 0
    what = f"{client.meta.service_model.service_id} {_camel(operation)}"
    while True:
        attempt += 1
        wait = next(waits, None)
        try:
            return getattr(client, operation)(**arguments)
        except ClientError as error:
            if wait is None or not _passing(error):
                raise _explained(client, operation, error, attempt) from error
        except (ReadTimeoutError, ConnectionClosedError) as error:
            if not repeatable:
                message = f"{what}: no answer came, so nothing tells whether it took effect: {error}"
                raise UnknownOutcomeError(message) from error
            if wait is None:
                raise ActionError(f"{what}: no answer came ({attempt} attempts): {error}") from error
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            if wait is None:
                message = f"{what}: AWS cannot be reached ({attempt} attempts): {error}"
                raise ActionError(message) from error
        except BotoCoreError as error:
            raise ActionError(f"{what}: {error}") from error
        time.sleep(wait)


def _passing(error: Any) -> bool:
    """Whether the fault is of the kind that passes: throttling, or the server's own."""
    answer = error.response
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return answer.get("Error", {}).get("Code") in _THROTTLED or status == 429 or status >= 500


def _explained(client: Any, operation: str, error: Any, attempts: int) -> AwsError:
    service, name = client.meta.service_model.service_id, _camel(operation)
    code = error.response.get("Error", {}).get("Code", "")
    said = error.response.get("Error", {}).get("Message", "")
    times = f" ({attempts} attempts)" if attempts > 1 else ""
    if error.operation_name != name:  # the chain of credentials makes calls of its own
        return AwsError(f"{service} {name}: {error.operation_name} was refused: {code}: {said}", code)
    if code in _DENIED:
        permission = f"{client.meta.service_model.signing_name}:{name}"
        missing = f"permission {permission} is missing ({code}: {said})"
        message = f"{service} {name}: {missing}; `smdbg explain` prints the policy that the action needs"
        return AwsError(message, code, denied=True)
    return AwsError(f"{service} {name}: {code}{times}: {said}", code)


def _camel(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))
