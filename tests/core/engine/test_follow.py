"""Following a trial: what is judged when, and that the end is what a later evaluation gives."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core import Finding, evaluate, follow
from smdbg_core.report.document import report_document
from tests.builders import write_trial
from tests.schedules import END_MARKER, Arrival, Crash, ScheduledClock, chaotic, files

SCHEDULES = int(os.environ.get("SMDBG_SCHEDULES", "40"))
POLL, GRACE = 0.5, 3.0


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two workers, modes that alternate, and something to find: gradients vanish, a loss rises."""
    rng = np.random.default_rng(7)
    steps: dict[int, Any] = {}
    for step in range(12):
        content = {
            "gradient/a.weight": rng.normal(0, 1e-9 if step in (3, 4, 8) else 1, (4, 4)),
            "a.weight": rng.normal(0, 1, (40, 40)),
            "CrossEntropyLoss_output_0": np.array(2.0 + step / 10),
        }
        if step > 5:
            content["relu_output_0"] = np.zeros((4, 8))
        steps[step] = ("EVAL" if step % 5 == 4 else "TRAIN", content)
    folder = tmp_path_factory.mktemp("finished") / "trial"
    write_trial(folder, steps, workers=("worker_0", "worker_1"))
    return folder


def document(report: Any) -> dict[str, Any]:
    found = report_document(report)
    del found["actions"]
    return found


def steady(source: Path, *, marker: bool = True) -> list[Arrival]:
    """A step a second, in the order in which a job writes."""
    arrivals = []
    for name in files(source):
        base = Path(name).name
        step = int(base.split("_")[0]) if base[0].isdigit() else 0
        arrivals.append(Arrival(1.0 + step + 0.1 * name.startswith("index"), name))
    kept = [one for one in arrivals if one.name != END_MARKER]
    return [*kept, Arrival(20.0, END_MARKER)] if marker else kept


def test_each_step_is_judged_when_it_is_there(finished: Path, tmp_path: Path) -> None:
    clock = ScheduledClock(finished, tmp_path / "run", steady(finished))
    told: list[tuple[float, int | None]] = []

    def tell(name: str, finding: Finding) -> None:
        told.append((clock.now, finding.step))

    report = follow(tmp_path / "run", ["VanishingGradient"], clock=clock, poll=POLL, on_finding=tell)
    assert {step for _, step in told} == {3, 4, 8}
    for time, step in told:
        assert step is not None
        assert 0 <= time - (1.1 + step) <= POLL
    assert len(told) == 2 * 3
    assert clock.now < 22
    assert document(report) == document(evaluate(tmp_path / "run", ["VanishingGradient"]))


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_the_report_is_that_of_a_later_evaluation(finished: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    target = tmp_path / "run"
    arrivals = chaotic(finished, rng, poll=POLL, grace=GRACE)
    end = max(one.time for one in arrivals)
    crashes = tuple(rng.uniform(0, end) for _ in range(rng.choice([0, 0, 1, 3])))
    clock = ScheduledClock(finished, target, arrivals, crashes)
    while True:
        try:
            report = follow(target, clock=clock, poll=POLL, grace=GRACE, cache=tmp_path / "cache")
            break
        except Crash:
            continue
    assert not clock.rest
    assert document(report) == document(evaluate(target))
