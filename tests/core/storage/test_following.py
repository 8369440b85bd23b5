"""Following on S3: what is new costs what is new, and listings that lag behind are caught up with."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core import evaluate, follow
from smdbg_core.report.document import report_document
from smdbg_core.testing import FakeClock
from tests.builders import write_trial
from tests.core.storage.conftest import Proxy
from tests.profiler_job import Job
from tests.schedules import END_MARKER, files

Upload = Callable[[Path, str], str]
STEPS = 8


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    content = {
        step: {"gradient/a.weight": rng.normal(0, 1e-9 if step % 2 else 1, (8, 8)), "a.weight": np.ones(3)}
        for step in range(STEPS)
    }
    return Path(write_trial(tmp_path / "source", content, mode="TRAIN", workers=("worker_0", "worker_1")))


def bring(clock: FakeClock, source: Path, prefix: str, upload: Upload, scratch: Path) -> None:
    """Let each step come at its own second, the event file first; the marker last."""

    def put(names: list[str]) -> None:
        folder = scratch / "part"
        shutil.rmtree(folder, ignore_errors=True)
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, folder / name)
        upload(folder, prefix)

    by_time: dict[float, list[str]] = {}
    for name in files(source):
        base = Path(name).name
        step = float(base.split("_")[0]) if base[0].isdigit() else 0.0
        at = 60.0 if base == END_MARKER else step + 0.5 * name.startswith("index")
        by_time.setdefault(10 * at, []).append(name)
    for at, names in by_time.items():
        clock.at(at, lambda names=names: put(names))  # type: ignore[misc]


def verdicts(report: Any) -> Any:
    document = report_document(report)
    del document["actions"]
    return document


def test_a_run_is_followed_to_its_end(s3: Proxy, upload: Upload, source: Path, tmp_path: Path) -> None:
    clock = FakeClock()
    uri = "s3://runs/followed/job"
    bring(clock, source, "followed/job", upload, tmp_path)
    told: dict[int | None, float] = {}
    looks: list[float] = []
    report = follow(
        uri,
        clock=clock,
        cache=tmp_path / "cache",
        on_finding=lambda _, finding: told.setdefault(finding.step, clock.now),  # type: ignore[func-returns-value]
        on_wait=lambda _: looks.append(clock.now),
    )
    assert looks[1] - looks[0] == 10  # as often as the documentation says
    for step in (1, 3, 5, 7):
        assert 0 <= told[step] - (10 * step + 5) <= 10
    gets = {name: count for name, count in s3.gets.items() if "/events/" in name}
    assert len(gets) == 2 * STEPS
    assert set(gets.values()) == {1}, "nothing is fetched twice: the last look judges what was kept"
    assert verdicts(report) == verdicts(evaluate(uri))


def test_looking_costs_pages_of_new_keys(s3: Proxy, upload: Upload, source: Path, tmp_path: Path) -> None:
    clock = FakeClock()
    (source / END_MARKER).unlink()
    uri = upload(source, "waiting/job")
    pages: list[int] = []
    follow(
        uri,
        ["VanishingGradient"],
        clock=clock,
        idle_timeout=300,
        on_wait=lambda _: pages.append(s3.calls["ListObjectsV2"]),
    )
    each = {after - before for before, after in pairwise(pages[4:])}
    assert each <= {3}, "one page each of index, collections and end marker"


def test_a_listing_that_lags_behind_is_caught_up_with(
    s3: Proxy, upload: Upload, source: Path, tmp_path: Path
) -> None:
    """Index before event, a page without some keys, objects that are listed and not there yet."""
    clock = FakeClock()
    uri = "s3://runs/stale/job"
    bring(clock, source, "stale/job", upload, tmp_path)

    def unlisted(key: str) -> bool:
        # Every third key is shown 25 seconds after it could be.
        base = key.rpartition("/")[2]
        step = int(base.split("_")[0]) if base[0].isdigit() else 0
        return sum(key.encode()) % 3 == 0 and clock.now < 10 * step + 25 and base != END_MARKER

    def gone(proxy: Proxy, call: str, path: str) -> str | None:
        base = path.rpartition("/")[2]
        step = int(base.split("_")[0]) if base[0].isdigit() else 0
        late = call == "GetObject" and base.endswith(".json") and sum(base.encode()) % 5 == 0
        return "404" if late and clock.now < 10 * step + 17 else None

    s3.relist = lambda entries: [entry for key, entry in entries.items() if not unlisted(key)]
    s3.fault = gone
    report = follow(uri, clock=clock, cache=tmp_path / "cache", grace=40)
    s3.reset()
    assert verdicts(report) == verdicts(evaluate(uri))
    assert report.run.steps == STEPS
    assert report.warnings == []


def test_one_shot_an_object_that_is_listed_and_gone_is_named(s3: Proxy, upload: Upload, source: Path) -> None:
    uri = upload(source, "gone/job")
    s3.fault = lambda proxy, call, path: "404" if path.endswith("000000000003_worker_0.tfevents") else None
    report = evaluate(uri, ["VanishingGradient"])
    (warning,) = report.warnings
    assert "events/000000000003/000000000003_worker_0.tfevents" in warning
    assert report.outcome("VanishingGradient").coverage.points == 2 * STEPS - 1


def test_profiler_output_is_followed(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    clock = FakeClock()
    values = {("gpu0", "GPUUtilization"): [0] * 1300, ("cpu0", "CPUUtilization"): [99] * 1300}
    source = Path(Job().ticks(values).steps([1.0] * 120).write(tmp_path / "job"))
    names = sorted(files(source), key=lambda name: (name.endswith(END_MARKER), name))
    for number, name in enumerate(names):
        part = tmp_path / f"part{number}"
        (part / name).parent.mkdir(parents=True)
        shutil.copyfile(source / name, part / name)
        clock.at(20.0 * number, lambda part=part: upload(part, "profiled/job"))  # type: ignore[misc]
    report = follow("s3://runs/profiled/job", clock=clock)
    assert verdicts(report) == verdicts(evaluate("s3://runs/profiled/job"))
    assert "CPUBottleneck" in {outcome.rule for outcome in report.fired}
