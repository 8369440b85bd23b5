"""Whether a training job is over."""

from __future__ import annotations

from typing import Any

import pytest

from smdbg_core import DataAccessError
from smdbg_core.sagemaker.job_end import JobEnd


class Service:
    """Answers with a status, or fails."""

    def __init__(self, status: str | Exception) -> None:
        self.status = status
        self.asked: list[float] = []
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def describe(self, name: str) -> dict[str, Any]:
        self.asked.append(self.now)
        if isinstance(self.status, Exception):
            raise self.status
        return {"TrainingJobName": name, "TrainingJobStatus": self.status}


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        ("InProgress", None),
        ("Stopping", None),
        ("Completed", ""),
        ("Failed", "the training job demo failed"),
        ("Stopped", "the training job demo was stopped"),
    ],
)
def test_only_a_job_that_is_over_ends_the_following(status: str, answer: str | None) -> None:
    service = Service(status)
    problems: list[str] = []
    assert JobEnd("demo", service.clock, problems.append, describe=service.describe)() == answer
    assert problems == []


def test_it_is_asked_once_in_a_while_and_not_after_the_end() -> None:
    service = Service("InProgress")
    end = JobEnd("demo", service.clock, print, describe=service.describe)
    for service.now in range(100):  # type: ignore[assignment]
        end()
    assert service.asked == [0, 30, 60, 90]
    service.status = "Completed"
    for service.now in range(100, 300):  # type: ignore[assignment]
        end()
    assert service.asked == [0, 30, 60, 90, 120]
    assert end() == ""


def test_a_status_that_cannot_be_asked_for_is_told_once() -> None:
    service = Service(DataAccessError("demo", "DescribeTrainingJob was denied"))
    problems: list[str] = []
    end = JobEnd("demo", service.clock, problems.append, describe=service.describe)
    for service.now in range(100):  # type: ignore[assignment]
        assert end() is None
    assert service.asked == [0]
    assert problems == ["the status of the job cannot be asked for: demo: DescribeTrainingJob was denied"]
