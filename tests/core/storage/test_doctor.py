"""What the doctor says of runs on S3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from smdbg_core.engine.doctor import Check, examine
from smdbg_core.testing import TrialBuilder
from tests.core.storage.conftest import Proxy


def path_check(path: str) -> Check:
    (check,) = [check for check in examine(path).checks if check.subject == "path"]
    return check


def test_a_run_and_a_level_too_high_or_too_low(
    s3: Proxy, upload: Callable[[Path, str], str], tmp_path: Path
) -> None:
    folder = TrialBuilder().steps(range(3), {"gradient/a": [1.0]}).write(tmp_path / "trial")
    uri = upload(Path(folder), "jobs/mine")
    diagnosis = examine(uri)
    assert {"VanishingGradient"} <= set(diagnosis.judged)
    checks = {check.subject: (check.status, check.message) for check in diagnosis.checks}
    assert checks["layout"] == ("pass", "1 file in collections, 3 files in events, 3 files in index")
    assert checks["rights"] == ("pass", "all files can be read")
    assert checks["damage"] == ("pass", "none")
    for wrong in (uri.removesuffix("/mine"), f"{uri}/index", f"{uri}/events/000000000000"):
        assert path_check(wrong).fix == f"give {uri}"


def test_an_empty_prefix(s3: Proxy, upload: Callable[[Path, str], str], tmp_path: Path) -> None:
    folder = TrialBuilder().step(0, {"a": [1.0]}).write(tmp_path / "trial")
    uri = upload(Path(folder), "jobs/mine")
    check = path_check(uri.replace("jobs/mine", "nothing"))
    assert check.status == "fail"
    assert "there is no object below this prefix" in check.message
    assert "aws s3 ls" in str(check.fix)


def test_rights(s3: Proxy, upload: Callable[[Path, str], str], tmp_path: Path) -> None:
    folder = TrialBuilder().steps(range(3), {"gradient/a": [1.0]}).write(tmp_path / "trial")
    uri = upload(Path(folder), "jobs/mine")
    s3.fault = lambda proxy, call, path: "403" if "000000000001_worker_0.tfevents" in path else None
    checks = [check for check in examine(uri).checks if check.subject == "rights"]
    assert [check.status for check in checks] == ["fail"]
    assert "000000000001_worker_0.tfevents" in checks[0].message
    assert "s3:GetObject" in str(checks[0].fix)
    s3.fault = lambda proxy, call, path: "403"
    refused = path_check(uri)
    assert refused.status == "fail"
    assert "s3:ListBucket" in str(refused.fix)
