"""Runs on S3."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core import (
    ConfigError,
    DataAccessError,
    MissingDataError,
    Report,
    TrialWriter,
    evaluate,
    open_run,
    open_trial,
)
from smdbg_core.cli.main import main
from smdbg_core.report.document import report_document
from smdbg_core.storage import S3Storage, open_storage
from smdbg_core.storage.storage import File, Storage
from tests.builders import write_trial
from tests.core.storage.conftest import Proxy
from tests.profiler_job import Job

Upload = Callable[[Path, str], str]


def verdicts(report: Report, uri: str) -> dict[str, Any]:
    """Everything but where the run lies."""
    text = json.dumps(report_document(report)).replace(uri, "RUN")
    document: dict[str, Any] = json.loads(text)
    return document


def small(folder: Path, steps: int = 12) -> Path:
    rng = np.random.default_rng(0)
    content = {
        step: {
            "gradient/a.weight": rng.normal(0, 1e-9, (8, 8)),
            "a.weight": rng.normal(0, 1, (8, 8)),
            "CrossEntropyLoss_output_0": np.array(2.0),
        }
        for step in range(steps)
    }
    return Path(write_trial(folder, content, mode="TRAIN", workers=("worker_0", "worker_1")))


def test_verdicts_are_those_of_local_files(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    local = small(tmp_path / "trial")
    uri = upload(local, "same/trial")
    assert verdicts(evaluate(uri), uri) == verdicts(evaluate(local), str(local))


def test_profiler_output_and_tensors_of_one_job(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    values = {("gpu0", "GPUUtilization"): [0] * 1300, ("cpu0", "CPUUtilization"): [99] * 1300}
    job = Path(Job().ticks(values).steps([1.0] * 120).write(tmp_path / "job"))
    small(job / "debug-output", steps=5)
    uri = upload(job, "both/job")
    report = evaluate(uri)
    assert report.run.has == ["trial", "profiler"]
    assert verdicts(report, uri) == verdicts(evaluate(job), str(job))
    assert {"VanishingGradient", "CPUBottleneck"} <= {outcome.rule for outcome in report.fired}


def test_each_needed_file_is_fetched_once_and_keys_are_listed_once(
    s3: Proxy, upload: Upload, tmp_path: Path
) -> None:
    local = small(tmp_path / "trial", steps=20)
    for number in range(1000):
        (local / "notes").mkdir(exist_ok=True)
        (local / "notes" / f"{number}").touch()
    uri = upload(local, "many/trial")
    s3.reset()
    evaluate(uri, ["VanishingGradient"])
    index = [path for path in s3.gets if "/index/" in path]
    events = [path for path in s3.gets if "/events/" in path]
    assert (len(index), len(events)) == (40, 40)
    assert set(s3.gets.values()) == {1}
    s3.reset()
    evaluate(uri)  # some rules ask when a step was written
    assert set(s3.gets.values()) == {1}
    assert s3.calls["ListObjectsV2"] == 2  # 1,082 keys


def test_saved_reductions_and_values_beside_them_take_one_request_a_file(
    s3: Proxy, upload: Upload, tmp_path: Path
) -> None:
    with TrialWriter(tmp_path / "trial") as writer:
        for number in range(6):
            with writer.step(number, mode="TRAIN") as step:
                step.add("CrossEntropyLoss_output_0", [2.0])
                for layer in range(4):
                    values = np.full(100, 1e-9)
                    step.add(f"gradient/{layer}", values, raw=False, reductions=("abs_mean", "max"))
    uri = upload(tmp_path / "trial", "reduced/trial")
    s3.reset()
    report = evaluate(uri)
    assert report.outcome("VanishingGradient").coverage.points == 24
    assert sum("/events/" in path for path in s3.gets) == 6
    assert set(s3.gets.values()) == {1}


def test_a_part_that_was_fetched_is_not_fetched_again(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    content = {0: {"a": np.ones(50_000), "b": np.arange(4.0), "c": np.ones(50_000)}}
    uri = upload(Path(write_trial(tmp_path / "trial", content, mode="TRAIN")), "again/part")
    trial = open_trial(uri)
    s3.reset()
    for _ in range(2):
        assert trial.tensor("b").value(0).tolist() == [0, 1, 2, 3]
    assert s3.calls == {"GetObject": 1}
    assert s3.sent < 1000


def test_only_what_a_rule_reads_is_fetched(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    big = np.zeros(200_000, np.float32)
    content = {step: {"gradient/a": np.ones(4), "z.weight": big} for step in range(5)}
    uri = upload(Path(write_trial(tmp_path / "trial", content, mode="TRAIN")), "part/trial")
    s3.reset()
    report = evaluate(uri, ["VanishingGradient"])
    assert report.outcome("VanishingGradient").coverage.points == 5
    assert len(s3.ranges) == 5
    assert s3.sent < 100_000


def test_faults_that_pass_are_survived(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    local = small(tmp_path / "trial")
    uri = upload(local, "faulty/trial")
    expected = verdicts(evaluate(local), str(local))
    for fault in ("503", "reset", "truncate"):
        s3.reset()
        seen: set[str] = set()

        def first_time(
            proxy: Proxy, call: str, path: str, fault: str = fault, seen: set[str] = seen
        ) -> str | None:
            key = f"{call} {path}"
            if key in seen or sum(key.encode()) % 3:
                return None
            seen.add(key)
            return fault

        s3.fault = first_time
        assert verdicts(evaluate(uri), uri) == expected, fault
        assert seen


def test_a_fault_that_stays_costs_its_own_file(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    uri = upload(small(tmp_path / "trial"), "stays/trial")
    s3.fault = lambda proxy, call, path: "503" if "000000000007_worker_0.tfevents" in path else None
    report = evaluate(uri, ["VanishingGradient"])
    assert report.outcome("VanishingGradient").status == "fired"
    assert any("000000000007" in warning for warning in report.warnings)


def test_denied_calls_name_the_permission(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    uri = upload(small(tmp_path / "trial", steps=2), "denied/trial")
    s3.fault = lambda proxy, call, path: "403"
    with pytest.raises(
        DataAccessError, match=r"s3://runs/denied/trial: ListObjectsV2 was denied: .* s3:ListBucket"
    ):
        open_run(uri)
    s3.fault = lambda proxy, call, path: "403" if call == "GetObject" and "/events/" in path else None
    report = evaluate(uri, ["VanishingGradient"])
    assert any("GetObject was denied: the caller needs s3:GetObject" in text for text in report.warnings)


def test_nothing_there_is_no_access_error(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    upload(small(tmp_path / "trial", steps=1), "there/trial-10")
    with pytest.raises(MissingDataError, match="no object below this prefix"):
        open_run("s3://runs/there/trial-1")  # begins like trial-10
    with pytest.raises(MissingDataError, match="there is no bucket nowhere"):
        open_run("s3://nowhere/run")


def test_without_credentials(s3: Proxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(DataAccessError, match="no AWS credentials were found"):
        open_run("s3://runs/x")


def test_a_single_object(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    file = tmp_path / "1591160699.algo-1.json"
    file.write_text(
        '{"Type":"cpu","Name":"cpu0","Dimension":"CPUUtilization","Value":1,"NodeId":"algo-1","Timestamp":1591160700}\n'
    )
    uri = upload(file, "one/1591160699.algo-1.json")
    outcome = evaluate(uri, ["OverallSystemUsage"]).outcomes[0]
    assert (outcome.status, outcome.coverage.points) == ("clean", 1)


def test_the_command_takes_s3(
    s3: Proxy, upload: Upload, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = upload(small(tmp_path / "trial", steps=3), "cli/trial")
    with pytest.raises(SystemExit) as done:
        main(["run", uri, "--rule", "VanishingGradient"])
    assert done.value.code == 1
    assert uri in capsys.readouterr().out


def test_shared_samples_are_judged_alike(s3: Proxy, upload: Upload, shared_data: Path) -> None:
    samples = [*(shared_data / "trials").iterdir(), *(shared_data / "profiler").iterdir()]
    for sample in sorted(one for one in samples if one.suffix != ".md"):
        uri = upload(sample, f"shared/{sample.name}")
        s3.reset()
        found = verdicts(evaluate(uri), uri)
        # Where an index promises more than its event file holds, the file is asked for once more.
        assert max(s3.gets.values()) == 1 or sample.name == "corrupt_events", sample.name
        assert s3.calls["ListObjectsV2"] == 1
        assert found == verdicts(evaluate(sample), str(sample)), sample.name


@pytest.mark.parametrize("uri", ["s3://", "s3:///x"])
def test_a_bucket_is_needed(uri: str) -> None:
    with pytest.raises(ConfigError, match="no bucket"):
        open_storage(uri)


def test_names_cannot_leave_the_prefix() -> None:
    storage: Storage = S3Storage("s3://bucket/run", {"a": 1})
    for name in ("../x", "/x", "", "a/../../x"):
        with pytest.raises(Exception, match="leads out of the prefix"):
            storage.open(name)
    file: File = storage.open("a")
    assert file.name == "a"


def test_a_second_look_costs_what_is_new(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    storage = open_storage(upload(small(tmp_path / "trial", steps=6), "again/trial"))
    before = {entry.name: entry.token for entry in storage.entries("index")}
    assert len(before) == 12
    events = "events/000000000006/000000000006_worker_0.tfevents"
    assert storage.version(events) is None
    local = small(tmp_path / "longer", steps=7)
    upload(local, "again/trial")
    s3.reset()
    new = list(storage.entries("index", "index/000000000/000000000005_worker_1.json"))
    assert [entry.name for entry in new] == [
        "index/000000000/000000000006_worker_0.json",
        "index/000000000/000000000006_worker_1.json",
    ]
    version = storage.version(events)
    assert version is not None
    assert version.size == (local / events).stat().st_size
    assert storage.version(events.replace("worker_0", "worker_1")) is not None
    assert s3.calls["ListObjectsV2"] == 2


def test_an_object_that_was_replaced_is_fetched_anew(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    (tmp_path / "run" / "a").mkdir(parents=True)
    file = tmp_path / "run" / "a" / "x"
    file.write_text("old")
    uri = upload(tmp_path / "run", "replaced")
    storage = open_storage(uri)
    (before,) = storage.entries("a")
    assert storage.read("a/x") == b"old"
    file.write_text("new")
    upload(tmp_path / "run", "replaced")
    (after,) = storage.entries("a")
    assert before.token != after.token
    assert storage.read("a/x") == b"new"
