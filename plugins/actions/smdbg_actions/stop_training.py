"""The action StopTraining."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from smdbg_actions.aws import AwsError, call, make_client
from smdbg_core import Action, ActionError, ActionResult, Event, Meta

__all__ = ["StopTraining"]

_ENDED = ("Stopping", "Stopped", "Completed", "Failed")
_NAMED = 5


class StopTraining(Action):
    """Stops the SageMaker training job whose name begins with a prefix, if it is the only one.

    The job is looked up when the rule fires, among all jobs in progress. A job of exactly that name wins
    over others that begin so; without a prefix the run's job name must match exactly. Several matches
    stop nothing and are an error, as is none. Afterwards the job's status is checked.
    """

    policy: ClassVar = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["sagemaker:ListTrainingJobs"], "Resource": "*"},
            {
                "Effect": "Allow",
                "Action": ["sagemaker:StopTrainingJob", "sagemaker:DescribeTrainingJob"],
                "Resource": "arn:aws:sagemaker:*:111122223333:training-job/*",
            },
        ],
    }

    training_job_prefix: Annotated[
        str | None,
        Meta(
            description="What the job's name begins with, case kept; the run's job name by default.",
            pattern="[A-Za-z0-9][A-Za-z0-9-]{0,62}",
            takes="1 to 63 ASCII letters, digits and hyphens that do not begin with a hyphen",
        ),
    ] = None
    verify_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=600,
            unit="seconds",
            description="How long stopping may take to begin.",
            local=True,
        ),
    ] = 30.0

    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        """Find the job, stop it, and see that it stops."""
        wanted = self.training_job_prefix or event.job_name
        if not wanted:
            message = (
                "no job to stop is named: give training_job_prefix, or the run's job name "
                "(--job-name, `job_name` in the configuration)"
            )
            raise ActionError(message)
        if dry_run:
            return _plan(wanted, exact=self.training_job_prefix is None)
        with closing(make_client("sagemaker")) as client:
            return ActionResult(detail=self._stop(client, wanted, event))

    def _stop(self, client: Any, wanted: str, event: Event) -> str:
        name = self._find(client, wanted)
        if name is None:
            return self._ended(client, wanted, event)
        try:
            call(client, "stop_training_job", TrainingJobName=name)
        except AwsError as error:
            # The job may have ended since it was found.
            status = None if error.denied else self._status(client, name)
            if status not in _ENDED:
                raise
            return f"{name} needed no stop: it is {status}"
        return f"stopped {name}: it is {self._verify(client, name)}"

    def _find(self, client: Any, wanted: str) -> str | None:
        """The one job in progress that is meant, `None` if there is none.

        Raises:
            ActionError: There are several.
        """
        names = list(self._matching(client, wanted, StatusEquals="InProgress"))
        if wanted in names:
            return wanted
        if len(names) > 1:
            shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
            message = (
                f"{len(names)} jobs in progress begin with {wanted!r}: {shown}; none was stopped. "
                "Give the whole name of one as training_job_prefix"
            )
            raise ActionError(message)
        return names[0] if names else None

    def _matching(self, client: Any, wanted: str, **conditions: Any) -> Iterator[str]:
        """Names of the jobs that are meant, from all pages, each once."""
        seen: set[str] = set()
        tokens: set[str] = set()
        arguments = _search(wanted) | conditions
        while True:
            page = call(client, "list_training_jobs", **arguments)
            for summary in page.get("TrainingJobSummaries", ()):
                name = summary["TrainingJobName"]
                # The service's own search finds the text anywhere, and without regard to case.
                meant = name == wanted or (self.training_job_prefix is not None and name.startswith(wanted))
                if meant and name not in seen:
                    seen.add(name)
                    yield name
            token = page.get("NextToken")
            if not token:
                return
            if token in tokens:
                raise ActionError(f"SageMaker gave the page {token!r} twice: the list cannot be trusted")
            tokens.add(token)
            arguments["NextToken"] = token

    def _ended(self, client: Any, wanted: str, event: Event) -> str:
        """What is said when no job is in progress: one that stopped since the event is as good as stopped.

        Raises:
            ActionError: There is none of these either.
        """
        since = datetime.fromtimestamp(event.time, UTC)
        for status, conditions in (("Stopping", {}), ("Stopped", {"LastModifiedTimeAfter": since})):
            names = list(self._matching(client, wanted, StatusEquals=status, **conditions))
            if names:
                return f"nothing to stop: {', '.join(names[:_NAMED])} is {status} already"
        kind = "begins with" if self.training_job_prefix else "is named"
        message = f"nothing was stopped: no job in progress in {client.meta.region_name} {kind} {wanted!r}"
        raise ActionError(message)

    def _verify(self, client: Any, name: str) -> str:
        """The status of the job once it is no longer in progress.

        Raises:
            ActionError: It goes on, or its status cannot be read.
        """
        deadline, wait = time.monotonic() + self.verify_seconds, 0.1
        while True:
            try:
                status = self._status(client, name)
            except ActionError as error:
                message = f"StopTrainingJob was accepted for {name}, but not verified: {error}"
                raise ActionError(message) from error
            if status in _ENDED:
                return status
            if time.monotonic() + wait > deadline:
                message = (
                    f"StopTrainingJob was accepted for {name}, but after {self.verify_seconds:g} s "
                    f"it is still {status}: look at it in the console, or raise verify_seconds"
                )
                raise ActionError(message)
            time.sleep(wait)
            wait = min(wait * 2, 5.0)

    def _status(self, client: Any, name: str) -> str:
        return str(call(client, "describe_training_job", TrainingJobName=name)["TrainingJobStatus"])


def _search(wanted: str) -> dict[str, Any]:
    return {"NameContains": wanted, "SortBy": "CreationTime", "SortOrder": "Descending"}


def _plan(wanted: str, exact: bool) -> ActionResult:
    """What a dry run shows."""
    target = f"(the one job named {wanted})" if exact else f"(the one job that begins with {wanted})"
    calls = (
        ("ListTrainingJobs", _search(wanted) | {"StatusEquals": "InProgress"}),
        ("StopTrainingJob", {"TrainingJobName": target}),
        ("DescribeTrainingJob", {"TrainingJobName": target}),
    )
    requests = [{"service": "sagemaker", "operation": name, "arguments": given} for name, given in calls]
    rule = f"the job in progress named {wanted}"
    if not exact:
        rule += ", or else the only one whose name begins so"
    return ActionResult(detail=f"would stop {rule}", requests=requests)
