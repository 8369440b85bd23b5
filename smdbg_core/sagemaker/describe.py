"""A training job as SageMaker describes it."""

from __future__ import annotations

from typing import Any

from smdbg_core.errors import ConfigError, DataAccessError, MissingDataError

__all__ = ["describe_job"]

_CALL = "DescribeTrainingJob"


def describe_job(name: str) -> dict[str, Any]:
    """Ask SageMaker for a job; region, credentials and endpoint are found as the AWS SDK finds them.

    Args:
        name: Name of the training job.

    Raises:
        ConfigError: boto3 is not installed, or cannot be configured: no region, for one.
        MissingDataError: There is no such job.
        DataAccessError: It cannot be asked for; the message names the permission.
    """
    try:
        import boto3
        from botocore import exceptions
        from botocore.config import Config
    except ImportError as error:
        message = "sagemaker job needs boto3: pip install 'smdbg-core[aws]'"
        raise ConfigError(message) from error
    try:
        config = Config(retries={"total_max_attempts": 6, "mode": "standard"})
        client = boto3.session.Session().client("sagemaker", config=config)
        response: dict[str, Any] = client.describe_training_job(TrainingJobName=name)
    except exceptions.ClientError as error:
        details = error.response.get("Error", {})
        code, said = details.get("Code", ""), details.get("Message", "")
        if code == "ValidationException" and "not found" in said.lower():
            raise MissingDataError(name, f"{_CALL}: there is no such training job in this region") from error
        if code.startswith("AccessDenied"):
            needed = "the caller needs sagemaker:DescribeTrainingJob"
            raise DataAccessError(name, f"{_CALL} was denied: {needed}") from error
        raise DataAccessError(name, f"{_CALL} failed: {code} {said}".rstrip()) from error
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as error:
        advice = "set them in the environment, a profile, or the role of this machine"
        raise DataAccessError(name, f"{_CALL}: no AWS credentials were found; {advice}") from error
    except exceptions.NoRegionError as error:
        message = f"{_CALL}: no AWS region is configured; set AWS_REGION"
        raise ConfigError(message) from error
    except exceptions.ParamValidationError as error:
        message = f"{name!r} is no name of a training job"
        raise ConfigError(message) from error
    except exceptions.BotoCoreError as error:
        raise DataAccessError(name, f"{_CALL} failed: {error}") from error
    return response
