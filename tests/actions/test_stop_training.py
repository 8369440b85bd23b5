"""StopTraining: the one job that is meant is stopped, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from smdbg_actions import StopTraining
from smdbg_core import ActionError, Event, ParameterError
from tests.actions.cloud import Cloud, Lost, Refusal


def stop(event: Event, prefix: str | None = "demo", **parameters: Any) -> str:
    return StopTraining(training_job_prefix=prefix, verify_seconds=1, **parameters).dispatch(event).detail


@pytest.mark.parametrize(
    ("prefix", "jobs", "stopped"),
    [
        ("demo", {"demo-1": "InProgress"}, "demo-1"),
        ("demo", {"demo-1": "InProgress", "demo-2": "Completed", "x-demo-3": "InProgress"}, "demo-1"),
        ("Demo-A", {"Demo-A-1": "InProgress", "demo-a-2": "InProgress"}, "Demo-A-1"),
        ("job-1", {"job-1": "InProgress", "job-10": "InProgress"}, "job-1"),
        (None, {"demo-1": "InProgress", "demo-10": "InProgress"}, "demo-1"),
    ],
)
def test_the_job_that_is_meant_is_stopped(
    cloud: Cloud, event: Event, prefix: str | None, jobs: dict[str, str], stopped: str
) -> None:
    cloud.jobs = dict(jobs)
    assert stop(event, prefix) == f"stopped {stopped}: it is Stopping"
    assert cloud.arguments("StopTrainingJob") == [{"TrainingJobName": stopped}]
    assert cloud.arguments("ListTrainingJobs")[0] == {
        "NameContains": prefix or "demo-1",
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
        "StatusEquals": "InProgress",
    }
    assert {name for name, status in cloud.jobs.items() if status != jobs[name]} == {stopped}


@pytest.mark.parametrize("page_size", [1, 2, 100])
def test_two_jobs_that_share_the_prefix_are_left_alone(cloud: Cloud, event: Event, page_size: int) -> None:
    cloud.jobs = {"demo-1": "InProgress", "demo-2": "InProgress", "demo-3": "Stopped"}
    cloud.page_size = page_size
    with pytest.raises(
        ActionError, match="2 jobs in progress begin with 'demo': demo-1, demo-2; none was stopped"
    ):
        stop(event)
    assert "StopTrainingJob" not in cloud.operations()


def test_a_job_on_a_later_page_is_found_behind_empty_ones(cloud: Cloud, event: Event) -> None:
    cloud.jobs = {f"demo-{n}": "Completed" for n in range(5)} | {"demo-9": "InProgress"}
    cloud.page_size = 2
    assert stop(event) == "stopped demo-9: it is Stopping"
    assert [given.get("NextToken") for given in cloud.arguments("ListTrainingJobs")] == [None, "2", "4"]


@pytest.mark.parametrize("prefix", ["demo", "DEMO-1", "demo-1x"])
def test_no_match_is_an_error_not_silence(cloud: Cloud, event: Event, prefix: str) -> None:
    cloud.jobs = {"x-demo-1": "InProgress", "demo-1": "Completed"}
    with pytest.raises(ActionError, match=f"no job in progress in eu-west-1 begins with '{prefix}'"):
        stop(event, prefix)
    assert "StopTrainingJob" not in cloud.operations()


def test_without_a_prefix_only_the_very_job_is_meant(cloud: Cloud, event: Event) -> None:
    cloud.jobs = {"demo-10": "InProgress"}
    with pytest.raises(ActionError, match="is named 'demo-1'"):
        stop(event, None)
    nameless = Event(id="1", run="r", rule="R", name="R", plugin="p", state="fired", time=0.0)
    with pytest.raises(ActionError, match="give training_job_prefix, or the run's job name"):
        stop(nameless, None)


def test_a_job_that_appears_later_is_found_when_the_rule_fires(cloud: Cloud, event: Event) -> None:
    action = StopTraining(training_job_prefix="demo")
    with pytest.raises(ActionError):
        action.dispatch(event)
    cloud.jobs = {"demo-1": "InProgress"}
    assert action.dispatch(event).detail.startswith("stopped demo-1")


def test_throttling_and_server_faults_are_repeated_within_bounds(cloud: Cloud, event: Event) -> None:
    cloud.jobs = {"demo-1": "InProgress"}
    throttled = Refusal("ThrottlingException", "Rate exceeded")
    cloud.faults = {
        "ListTrainingJobs": [throttled, throttled],
        "StopTrainingJob": [Refusal("InternalFailure", status=500)],
    }
    assert stop(event) == "stopped demo-1: it is Stopping"
    assert cloud.operations().count("ListTrainingJobs") == 3
    assert cloud.operations().count("StopTrainingJob") == 2
    cloud.faults = {"ListTrainingJobs": [throttled] * 99}
    cloud.calls.clear()
    with pytest.raises(ActionError, match=r"ThrottlingException \(5 attempts\): Rate exceeded"):
        stop(event)
    assert len(cloud.calls) == 5


def test_an_answer_that_is_lost_is_asked_for_again(cloud: Cloud, event: Event) -> None:
    cloud.jobs = {"demo-1": "InProgress"}
    cloud.faults = {"StopTrainingJob": [Lost()]}
    # The first stop took effect, so the second is refused; the job's status tells that all is well.
    assert stop(event) == "demo-1 needed no stop: it is Stopping"


@pytest.mark.parametrize(
    ("denied", "says"),
    [
        ("ListTrainingJobs", "permission sagemaker:ListTrainingJobs is missing"),
        ("StopTrainingJob", "permission sagemaker:StopTrainingJob is missing"),
        ("DescribeTrainingJob", "accepted for demo-1, but not verified: .*sagemaker:DescribeTrainingJob"),
    ],
)
def test_a_missing_permission_is_named_and_not_repeated(
    cloud: Cloud, event: Event, denied: str, says: str
) -> None:
    cloud.jobs = {"demo-1": "InProgress"}
    cloud.denied = {denied}
    with pytest.raises(ActionError, match=says):
        stop(event)
    assert cloud.operations().count(denied) == 1


def test_a_stop_that_does_not_take_is_an_error(cloud: Cloud, event: Event) -> None:
    cloud.jobs = {"demo-1": "InProgress"}
    cloud.stubborn = {"demo-1"}
    with pytest.raises(ActionError, match="after 1 s it is still InProgress"):
        stop(event)
    assert cloud.operations().count("DescribeTrainingJob") > 1


def test_a_job_that_ends_meanwhile_needs_no_stop(cloud: Cloud, event: Event) -> None:
    cloud.jobs = {"demo-1": "InProgress"}
    cloud.before["StopTrainingJob"] = lambda: cloud.jobs.update({"demo-1": "Completed"})
    assert stop(event) == "demo-1 needed no stop: it is Completed"


def test_repeating_a_stop_that_took_effect_is_no_failure(cloud: Cloud, event: Event) -> None:
    cloud.jobs = {"demo-1": "Stopping"}
    assert stop(event) == "nothing to stop: demo-1 is Stopping already"
    cloud.jobs = {"demo-1": "Stopped"}
    assert stop(event) == "nothing to stop: demo-1 is Stopped already"
    cloud.stopped_at = {"demo-1": event.time - 60}  # another training, long ago
    with pytest.raises(ActionError, match="nothing was stopped"):
        stop(event)


def test_a_dry_run_calls_nothing(cloud: Cloud, event: Event) -> None:
    shown = StopTraining(training_job_prefix="demo").dispatch(event, dry_run=True)
    assert [request["operation"] for request in shown.requests] == [
        "ListTrainingJobs",
        "StopTrainingJob",
        "DescribeTrainingJob",
    ]
    assert cloud.calls == []


@pytest.mark.parametrize("prefix", ["a", "Demo-A", "9", "a-", "x" * 63])
def test_prefixes(prefix: str) -> None:
    assert StopTraining(training_job_prefix=prefix).training_job_prefix == prefix


@pytest.mark.parametrize(
    "prefix", ["a_b", "a b", "a.b", "-a", "x" * 64, "demo\n", "d\u00e9mo", "\u0661", "a/b"]
)
def test_what_is_no_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(ParameterError, match="1 to 63 ASCII letters"):
        StopTraining(training_job_prefix=prefix)
