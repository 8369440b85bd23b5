"""Dataloader."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from smdbg_core import ParameterError, evaluate
from smdbg_profiler_rules.dataloader import Dataloader
from tests.profiler_job import T0, Job
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


def waiting(loading: float, training: float, number: int = 12, *, beside: bool = False) -> Job:
    """A loop that loads, then trains; with `beside`, another thread loads during the steps."""
    built, at = Job(), 0.0
    for step in range(number):
        start = at if not beside else at + loading
        built.event("DataLoaderIter", start, start + loading, name="DataLoaderIter::GetNext")
        built.event("Step:ModeKeys.TRAIN", at + loading, at + loading + training, step_num=str(step))
        at += loading + training
    return built


def test_fires_when_training_waits_for_data(judge: Judge) -> None:
    outcome = judge(Dataloader(max_waiting=50), waiting(0.6, 0.4))
    (finding,) = outcome.findings
    assert (finding.subject, finding.worker, finding.limit) == ("waiting for data", "algo-1-27", 50)
    assert finding.value == pytest.approx(60, abs=0.1)
    assert finding.message == "60 % of the time of 12 steps is spent waiting for data"


def test_waiting_for_half_of_the_time_is_clean(judge: Judge) -> None:
    assert judge(Dataloader(max_waiting=50), waiting(0.5, 0.5)).status == "clean"
    assert judge(Dataloader(max_waiting=49), waiting(0.5, 0.5)).status == "fired"


def test_waiting_is_not_judged_unless_it_is_asked_for(judge: Judge) -> None:
    assert judge(Dataloader(), waiting(0.6, 0.4)).status == "not_evaluated"
    assert Dataloader.presets["recommended"] == {"max_waiting": 50}


def test_loading_beside_the_steps_is_no_waiting(judge: Judge) -> None:
    assert judge(Dataloader(max_waiting=1), waiting(0.4, 0.6, beside=True)).status == "clean"


def test_waiting_needs_ten_steps(judge: Judge) -> None:
    outcome = judge(Dataloader(max_waiting=50), waiting(0.6, 0.4, 9))
    assert outcome.status == "not_evaluated"
    assert "no samples of CPUUtilization" in str(outcome.reason)


def test_a_trace_does_not_tell_the_number_of_processes(tmp_path: Path) -> None:
    rows = []
    for step in range(12):
        common = {"ph": "X", "cat": "user_annotation", "pid": 1}
        loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        rows.append({**common, "name": f"ProfilerStep#{step}", "ts": step * 1e6, "dur": 1e6})
        rows.append({**common, "name": loader, "ts": step * 1e6, "dur": 7e5})
    trace = {"baseTimeNanoseconds": T0 * 10**9, "host_name": "algo-1", "traceEvents": rows}
    (tmp_path / "rank0.pt.trace.json").write_text(json.dumps(trace))
    (outcome,) = evaluate(str(tmp_path), [Dataloader(max_waiting=50)]).outcomes
    (finding,) = outcome.findings
    assert finding.value == pytest.approx(70, abs=0.1)
    assert outcome.coverage.skipped == {"not recorded: a trace does not tell how many processes load data": 1}
