"""Dataloader."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from smdbg_core import ParameterError
from smdbg_profiler_rules.dataloader import Dataloader
from tests.profiler_job import Job
from tests.profiler_rules.conftest import CPU, Judge, counts, details


def job(processes: Sequence[int], cores: int = 4, **options: str) -> Job:
    """So many processes in each second."""
    built = Job().ticks({(f"cpu{i}", CPU): [50, 50] for i in range(cores)})
    for second, number in enumerate(processes):
        for pid in range(number):
            built.event("DataLoaderIter", second + 0.1, second + 0.3, name="GetNext", pid=pid, **options)
    return built


def test_fires_on_too_few_processes(judge: Judge) -> None:
    built = job([1] * 11).event("DataLoaderIterInitialize", 0, 0.1, num_workers=0, pin_memory=True)
    outcome = judge(Dataloader(), built)
    assert outcome.status == "fired"
    assert counts(outcome) == (1, 1, 11)
    found = details(outcome)
    assert {key: found[key] for key in ("pin_memory", "num_workers", "cores", "dataloaders")} == {
        "pin_memory": True,
        "num_workers": 0,
        "cores": 4,
        "dataloaders": 1,
    }
    assert (len(found["dataloading_time"]["probs"]), len(found["dataloading_time"]["binedges"])) == (100, 101)
    assert sum(found["dataloading_time"]["probs"]) == 11
    assert "num_workers near 4 (it is 0" in outcome.findings[0].message


def test_fires_on_too_many(judge: Judge) -> None:
    outcome = judge(Dataloader(), job([9] * 11))
    (finding,) = outcome.findings
    assert (finding.comparison, finding.value, finding.limit) == (">", 9, 8)


@pytest.mark.parametrize("processes", [[3] * 11, [8] * 11, [2, 2, 2, *[3] * 8]])
def test_is_clean_between_the_limits(judge: Judge, processes: list[int]) -> None:
    assert judge(Dataloader(), job(processes)).status == "clean"


def test_an_even_median_is_cut_to_a_whole_number(judge: Judge) -> None:
    outcome = judge(Dataloader(), job([2] * 6 + [3] * 6))
    assert (outcome.status, details(outcome)["dataloaders"]) == ("fired", 2)


def test_ten_seconds_are_not_enough(judge: Judge) -> None:
    outcome = judge(Dataloader(), job([1] * 10))
    assert outcome.reason == "fewer seconds with data loading: at most 10, needs 11"


def test_without_events_it_is_not_evaluated(judge: Judge) -> None:
    outcome = judge(Dataloader(), job([]))
    assert outcome.reason == "not recorded: no framework events of a phase like ^DataLoader"
    assert (counts(outcome), details(outcome)) == ((0, 0, 0), {})


def test_thresholds_in_order() -> None:
    with pytest.raises(ParameterError, match="min_threshold=300 is above max_threshold=200"):
        Dataloader(min_threshold=300)
