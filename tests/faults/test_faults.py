"""A part of what `make faults` does: cases that a seed chooses, and data that no accident makes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.__main__ import problems
from tests.faults.damages import Case
from tests.faults.sandbox import confined
from tests.faults.subjects import Judged, Subject, trial

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="limits and FIFOs as Linux has them")
@pytest.mark.parametrize(
    "options", [("--sample", "150", "--no-fabricated"), ("--sample", "50", "--kind", "an index")]
)
def test_no_fault_crashes_hangs_or_stays_unnamed(options: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--seed", "7", *options],
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (total,) = [line for line in done.stdout.splitlines() if line.startswith("| all |")]
    cells = [cell.strip() for cell in total.strip("|").split("|")]
    assert int(cells[1]) > 5
    assert cells[5:8] == ["0", "0", "0"]


def test_the_sandbox_tells_a_crash_a_hang_and_greed() -> None:
    assert confined(lambda: 6 * 7).result == 42
    assert "ZeroDivisionError" in str(confined(lambda: 1 // 0).problem)
    assert "MemoryError" in str(confined(lambda: bytes(1 << 40)).problem)
    assert confined(lambda: os.kill(os.getpid(), 9)).problem == "the process died, status 9"
    stuck = confined(lambda: time.sleep(60), seconds=0.3)
    assert stuck.hung


def test_the_suite_tells_lost_and_unnamed_points(tmp_path: Path) -> None:
    subject: Subject = trial(tmp_path / "trial")
    file = next(name for name in subject.files if name.startswith("events"))
    case = Case("test", subject, file, os.unlink, 0, 1)
    ended = confined(lambda: Judged(subject.points, (), (), None))
    assert problems(case, ended) == []
    one = next(iter(case.lost()))
    assert (
        "not named" in problems(case, ended._replace(result=Judged(subject.points - {one}, (), (), None)))[0]
    )
    assert problems(case, ended._replace(result=Judged(subject.points - {one}, (file,), (), None))) == []
    nothing = ended._replace(result=Judged(frozenset(), (file,), (), None))
    assert "readable points" in problems(case, nothing)[0]
    failed = ended._replace(result=Judged(subject.points, (), ("Rule: why",), None))
    assert problems(case, failed) == ["a rule failed: Rule: why"]
