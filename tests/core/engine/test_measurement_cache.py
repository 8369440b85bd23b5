"""Measurements that are kept: used only for the very files that were measured."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core import Report, evaluate
from smdbg_core.engine import scan
from smdbg_core.engine.measurement_cache import MeasurementCache
from smdbg_core.report.document import report_document
from smdbg_core.storage import LocalStorage
from tests.builders import write_trial
from tests.command import Command

BIG = (64, 64)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    content = {
        step: {
            "gradient/a.weight": rng.normal(0, 1e-9, BIG),
            "a.weight": rng.normal(0, 1, BIG),
            "relu_output_0": np.maximum(rng.normal(0, 1, (8, 128)), 0),
            "CrossEntropyLoss_output_0": np.array(2.0),
        }
        for step in range(6)
    }
    return Path(write_trial(tmp_path / "trial", content, mode="TRAIN"))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Event files that were opened."""
    names: list[str] = []
    original = LocalStorage.open

    def spy(self: LocalStorage, name: str) -> Any:
        if name.startswith("events/"):
            names.append(name)
        return original(self, name)

    monkeypatch.setattr(LocalStorage, "open", spy)
    return names


def document(report: Report) -> dict[str, Any]:
    return report_document(report)


def rewrite(trial: Path, step: int) -> None:
    """Damage the last tensor of a step, in a file of the same size."""
    file = trial / f"events/{step:012d}/{step:012d}_worker_0.tfevents"
    content = bytearray(file.read_bytes())
    content[-64:] = bytes(64)
    file.write_bytes(content)


def test_a_second_evaluation_reads_no_event_file_whatever_the_thresholds(
    trial: Path, tmp_path: Path, opened: list[str]
) -> None:
    rules = ["VanishingGradient", "ExplodingTensor", "WeightUpdateRatio"]
    evaluate(trial, rules, cache=tmp_path / "cache")
    assert len(opened) >= 6
    other = {"VanishingGradient": {"threshold": 1e-12}}
    plain = evaluate(trial, rules, parameters=other)
    opened.clear()
    again = evaluate(trial, rules, parameters=other, cache=tmp_path / "cache")
    assert opened == []
    assert document(again) == document(plain)
    assert again.outcome("VanishingGradient").status == "clean"
    # A part of what was measured is enough for fewer rules.
    evaluate(trial, ["VanishingGradient"], cache=tmp_path / "cache")
    assert opened == []


def test_only_the_command_keeps_without_being_asked(
    trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    evaluate(trial, ["VanishingGradient"])
    smdbg = Command(capsys)
    smdbg("run", trial, "--rule", "VanishingGradient", "--no-cache")
    assert not (tmp_path / "home").exists()
    smdbg("run", trial, "--rule", "VanishingGradient")
    assert len(list((tmp_path / "home" / "smdbg").glob("*.sqlite3"))) == 1


def test_a_file_that_changed_is_measured_anew(trial: Path, tmp_path: Path, opened: list[str]) -> None:
    evaluate(trial, cache=tmp_path / "cache")
    rewrite(trial, 3)
    opened.clear()
    report = evaluate(trial, cache=tmp_path / "cache")
    # The step after it is compared with it, and it with the one before.
    assert {name.partition("/")[2][:12] for name in opened} == {
        "000000000002",
        "000000000003",
        "000000000004",
    }
    assert document(report) == document(evaluate(trial))


def test_every_shared_trial_gives_the_same_report_from_the_cache(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "_PAYS", 0)
    for folder in sorted((shared_data / "trials").iterdir()):
        if folder.is_dir():
            plain = document(evaluate(folder))
            assert document(evaluate(folder, cache=tmp_path)) == plain, folder.name
            assert document(evaluate(folder, cache=tmp_path)) == plain, folder.name


RULE = """
from smdbg_core import Reads, TensorRule, statistic

@statistic("halves_of_test")
def halves(values):
    return float(values.size) {operation}

class Halves(TensorRule):
    '''Fires above nothing.'''
    def reads(self):
        return Reads(patterns=("a.weight",), statistics=("halves_of_test",))
    def evaluate(self, step):
        for tensor in step.tensors():
            value = tensor.measure("halves_of_test")
            yield from self.judge(tensor, "halves_of_test", value, ">", 1e9)
"""


def test_a_statistic_in_a_file_that_was_edited_is_measured_anew(trial: Path, tmp_path: Path) -> None:
    """In processes of their own, as people run them."""

    def closest(operation: str) -> float:
        (tmp_path / "mine.py").write_text(RULE.format(operation=operation))
        code = (
            "import sys; from smdbg_core import evaluate, RuleConfig\n"
            f"r = evaluate({str(trial)!r}, [RuleConfig('Halves', file={str(tmp_path / 'mine.py:Halves')!r})],"
            f" cache={str(tmp_path / 'cache')!r})\n"
            "print(r.outcomes[0].closest.value)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return float(done.stdout)

    assert closest("/ 2") == 2048
    assert closest("/ 2") == 2048
    assert closest("/ 4 ") == 1024


def test_a_damaged_cache_is_made_anew(trial: Path, tmp_path: Path, opened: list[str]) -> None:
    rules = ["VanishingGradient"]
    plain = document(evaluate(trial, rules, cache=tmp_path / "cache"))
    (file,) = (tmp_path / "cache").glob("*.sqlite3")
    file.write_bytes(b"no database at all" * 100)
    assert document(evaluate(trial, rules, cache=tmp_path / "cache")) == plain
    connection = sqlite3.connect(file)
    connection.execute("UPDATE measured SET content = x'c1'")
    connection.commit()
    connection.close()
    assert document(evaluate(trial, rules, cache=tmp_path / "cache")) == plain
    opened.clear()
    assert document(evaluate(trial, rules, cache=tmp_path / "cache")) == plain
    assert opened == []


def test_a_folder_that_cannot_be_written_is_a_warning(trial: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    report = evaluate(trial, ["VanishingGradient"], cache=tmp_path / "file" / "cache")
    assert report.outcome("VanishingGradient").status == "fired"
    (warning,) = [one for one in report.warnings if "not kept" in one]
    assert str(tmp_path / "file") in warning


def test_another_process_that_writes_is_waited_for_a_moment_and_never_an_error(
    trial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(trial, ["ExplodingTensor"], cache=tmp_path)
    (file,) = tmp_path.glob("*.sqlite3")
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    report = evaluate(trial, cache=tmp_path)
    other.execute("ROLLBACK")
    other.close()
    assert document(report) == document(evaluate(trial)) | {"warnings": report.warnings}
    assert report.outcome("VanishingGradient").status == "fired"


def test_the_longest_unused_caches_make_room(tmp_path: Path) -> None:
    for number in range(5):
        old = tmp_path / f"{number}.sqlite3"
        old.write_bytes(bytes(3000))
        os.utime(old, (number, number))
    cache = MeasurementCache(tmp_path, "somewhere", limit=15_000)
    cache._opened(create=True)
    cache.close()
    left = {file.name for file in tmp_path.glob("*.sqlite3")}
    assert sum((tmp_path / name).stat().st_size for name in left) <= 15_000
    assert "0.sqlite3" not in left
    assert len(left) > 1
