"""What the service made of each rule, beside what is found here."""

from __future__ import annotations

from typing import Final, NamedTuple

from smdbg_core.outcomes import Outcome, Report
from smdbg_core.sagemaker.jobs import Job

__all__ = ["Comparison", "compare"]

_AS_THE_SERVICE_SAYS: Final = {
    "fired": "IssuesFound",
    "clean": "NoIssuesFound",
    # The service tells nothing apart that had nothing to judge.
    "not_evaluated": "NoIssuesFound",
    "error": "Error",
}
_FINAL: Final = frozenset(("NoIssuesFound", "IssuesFound", "Error"))


class Comparison(NamedTuple):
    """One rule of a job."""

    name: str
    service: str | None
    """Status that the service reported; `None` if it reported none."""

    here: str
    reason: str | None
    """Why it was not evaluated here, or failed."""

    agrees: bool | None
    """`None` where the service came to no end."""


def compare(job: Job, report: Report) -> list[Comparison]:
    """The rules that the job was configured with, in its order."""
    return [
        _compare(outcome, job.statuses.get(outcome.name))
        for rule in job.rules
        for outcome in report.outcomes
        if outcome.name == (rule.name or rule.rule)
    ]


def _compare(outcome: Outcome, service: str | None) -> Comparison:
    agrees = _AS_THE_SERVICE_SAYS[outcome.status] == service if service in _FINAL else None
    reason = outcome.reason if outcome.status in ("error", "not_evaluated") else None
    return Comparison(outcome.name, service, outcome.status, reason, agrees)
