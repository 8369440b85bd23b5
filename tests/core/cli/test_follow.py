"""`smdbg run --follow` as people run it: a process of its own beside one that writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from smdbg_core import TrialWriter
from smdbg_core.cli.following import waiter
from tests.schedules import END_MARKER


class Writer:
    """Writes a trial step by step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer = TrialWriter(folder, end=False)

    def step(self, number: int, gradient: float = 1.0) -> None:
        """Write one step."""
        with self._writer.step(number, mode="TRAIN") as step:
            step.add("gradient/a.weight", np.full((4, 4), gradient))

    def end(self) -> None:
        (self.folder / END_MARKER).touch()


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "run")


@pytest.fixture
def follow(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    def start(*arguments: str) -> subprocess.Popen[str]:
        smdbg = str(Path(sys.executable).with_name("smdbg"))
        command = [smdbg, "run", str(tmp_path / "run"), "--follow", *arguments]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "100"}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
        )

    return start


def test_a_finding_is_printed_while_the_job_goes_on(
    writer: Writer, follow: Callable[..., subprocess.Popen[str]]
) -> None:
    writer.step(0)
    with follow("--rule", "VanishingGradient", "--format", "jsonl") as process:
        assert process.stdout is not None
        writer.step(1, 1e-9)
        found = json.loads(process.stdout.readline())
        assert (found["name"], found["step"]) == ("VanishingGradient", 1)
        writer.end()
        rest = process.stdout.read().splitlines()
        assert process.wait(20) == 1
    assert json.loads(rest[0])


def test_the_table_comes_last_and_json_is_one_object(
    writer: Writer, follow: Callable[..., subprocess.Popen[str]]
) -> None:
    for number in range(3):
        writer.step(number, 1e-9)
    writer.end()
    with follow("--rule", "VanishingGradient") as process:
        table, errors = process.communicate(timeout=30)
    first, *rest = table.splitlines()
    assert first.startswith("VanishingGradient: gradient/a.weight, step 0 TRAIN")
    assert rest[-1].startswith("Verdict: 1 fired")
    assert sum("step 0 TRAIN" in line for line in rest) == 0
    with follow("--rule", "VanishingGradient", "--format", "json") as process:
        document, errors = process.communicate(timeout=30)
    assert json.loads(document)["outcomes"][0]["status"] == "fired"
    assert errors.startswith("VanishingGradient: gradient/a.weight, step 0 TRAIN")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_signal_ends_with_a_report(
    writer: Writer, follow: Callable[..., subprocess.Popen[str]], number: signal.Signals
) -> None:
    writer.step(0, 1e-9)
    with follow("--rule", "VanishingGradient", "--format", "json") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("VanishingGradient")
        process.send_signal(number)
        document, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    report = json.loads(document)
    assert report["outcomes"][0]["status"] == "fired"
    assert any("interrupted" in warning for warning in report["warnings"])


def test_mistakes_are_told_before_anything_is_waited_for(
    follow: Callable[..., subprocess.Popen[str]],
) -> None:
    with follow("--rule", "VanishingGradent") as process:
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "VanishingGradient" in errors
    with follow("--idle-timeout", "0.2", "--poll", "0.1") as process:
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 3
    assert "no such folder" in errors
    assert "Traceback" not in errors


def test_what_is_waited_for_is_said_once_and_only_if_it_lasts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    wait = waiter(quiet=False)
    for _ in range(12):
        wait("worker_1 at step 3")
    wait("the next step")
    assert capsys.readouterr().err == "smdbg: waiting for worker_1 at step 3\n"
    silent = waiter(quiet=True)
    for _ in range(20):
        silent("anything")
    assert capsys.readouterr().err == ""
