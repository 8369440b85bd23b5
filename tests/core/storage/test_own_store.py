"""A store of somebody else's: the example of the documentation."""

from __future__ import annotations

import importlib.util
import json
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from smdbg_core import Registry, Report, evaluate, follow, open_run
from smdbg_core.discovery.finder import find
from smdbg_core.report.document import report_document
from tests.builders import write_trial
from tests.command import Command
from tests.distributions import install
from tests.profiler_job import Job

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "zip_store.py"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example, installed."""
    site = tmp_path / "site"
    install(
        site,
        "zip-store",
        {"zip-store": "zip_store"},
        group="smdbg.plugins",
        modules={"zip_store": EXAMPLE.read_text()},
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))  # for processes that measure
    yield importlib.import_module("zip_store")
    sys.modules.pop("zip_store", None)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job's folder, with tensors and profiler output."""
    folder = Path(
        Job()
        .ticks({("gpu0", "GPUUtilization"): [0] * 1300, ("cpu0", "CPUUtilization"): [99] * 1300})
        .steps([1.0] * 100)
        .write(tmp_path / "job")
    )
    rng = np.random.default_rng(0)
    content = {
        step: {"gradient/a.weight": rng.normal(0, 1e-9, (64, 64)), "a.weight": rng.normal(0, 1, (64, 64))}
        for step in range(8)
    }
    write_trial(folder / "debug-output", content, mode="TRAIN", workers=("worker_0", "worker_1"))
    return folder


def archive(job: Path) -> str:
    target = job.with_suffix(".zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as written:
        for file in sorted(job.rglob("*")):
            written.write(file, Path("deep", "job") / file.relative_to(job))
    return f"zip://{target}!/deep/job"


def verdicts(report: Report, uri: str) -> Any:
    return json.loads(json.dumps(report_document(report)).replace(uri, "RUN"))


@pytest.mark.parametrize("kind", ["alone", "threads", "processes"])
def test_verdicts_are_those_of_the_folder(store: ModuleType, job: Path, kind: str) -> None:
    uri = archive(job)
    executors: dict[str, Any] = {
        "alone": nullcontext,
        "threads": lambda: ThreadPoolExecutor(2),
        "processes": lambda: ProcessPoolExecutor(1, get_context("spawn")),
    }
    with executors[kind]() as executor:
        report = evaluate(uri, registry=Registry(specs=find()), executor=executor)
    assert report.run.has == ["trial", "profiler"]
    assert verdicts(report, uri) == verdicts(evaluate(job), str(job))
    assert {"VanishingGradient", "CPUBottleneck"} <= {outcome.rule for outcome in report.fired}


def test_it_can_be_followed_and_its_measurements_kept(store: ModuleType, job: Path, tmp_path: Path) -> None:
    uri = archive(job)
    plain = verdicts(evaluate(job), str(job))
    for _ in range(2):
        report = follow(uri, registry=Registry(specs=find()), poll=0.01, cache=tmp_path / "cache")
        assert verdicts(report, uri) == plain
    assert list((tmp_path / "cache").glob("*.sqlite3"))


def test_every_command_takes_it(
    store: ModuleType, job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    smdbg, uri = Command(capsys), archive(job)
    assert smdbg("run", uri, "--rule", "VanishingGradient").status == 1
    assert "no archive" in smdbg("run", "zip:///nowhere.zip!/x").err
    assert "nothing in the archive" in smdbg("run", uri.replace("deep", "other")).err
    assert "8 saved steps" in smdbg("run", uri).out
    assert "8 steps" in smdbg("doctor", uri).out
    assert smdbg("report", uri, "--output", tmp_path / "page").status == 1
    assert "8 saved steps" in (tmp_path / "page" / "report.html").read_text()


def test_a_storage_opens_without_any_hook(store: ModuleType, job: Path) -> None:
    run = open_run(store.ZipStorage(archive(job)))
    assert run.has == ["trial", "profiler"]
    assert run.trial is not None
    assert run.trial.tensor("a.weight").value(3).shape == (64, 64)


def test_an_unknown_scheme_says_what_would_help(capsys: pytest.CaptureFixture[str]) -> None:
    done = Command(capsys)("run", "gs://bucket/job")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "gs:// is not known" in done.err
    assert "plugin" in done.err
