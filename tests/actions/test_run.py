"""From the command line to the wire: rules fire, actions act, once."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core.cli.main import main
from tests.actions.cloud import Cloud
from tests.actions.receiver import Receiver
from tests.builders import write_trial

CONFIG = """
job_name = "Demo-1"

[actions.halt]
type = "StopTraining"
training_job_prefix = "Demo"
verify_seconds = 1

[actions.mail]
type = "Email"
email_address = "on.call@example.com"

[[rules]]
rule = "VanishingGradient"
actions = ["halt", "mail"]
"""


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> str:
    steps = {n: {"gradient/a.weight": np.full(3, 1e-9)} for n in range(300)}
    return write_trial(tmp_path_factory.mktemp("sick") / "run", steps)


@pytest.fixture
def folder(tmp_path: Path, sick: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    (tmp_path / "smdbg.toml").write_text(f'path = "{sick}"\n{CONFIG}')
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, list[dict[str, Any]]]:
    with pytest.raises(SystemExit) as caught:
        main(["run", "--format", "json", *arguments])
    return caught.value.code, json.loads(capsys.readouterr().out)["actions"]


def test_three_hundred_firing_steps_stop_one_job_and_send_one_message(
    cloud: Cloud, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.confirmed_at_once = True
    cloud.jobs = {"Demo-1": "InProgress", "demo-2": "InProgress"}
    status, actions = run(capsys)
    assert status == 1
    assert [(one["name"], one["status"], one["count"]) for one in actions] == [
        ("halt", "sent", 300),
        ("mail", "sent", 300),
    ]
    assert cloud.arguments("StopTrainingJob") == [{"TrainingJobName": "Demo-1"}]
    assert len(cloud.published) == 1
    assert "job: Demo-1" in cloud.published[0]["Message"]
    calls = len(cloud.calls)
    status, actions = run(capsys)
    assert (status, [one["status"] for one in actions]) == (1, ["already_sent"] * 2)
    assert len(cloud.calls) == calls


def test_what_fails_is_loud_and_mended_by_the_next_run(
    cloud: Cloud, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.jobs = {"Demo-1": "Stopped", "Demo-2": "InProgress", "Demo-3": "InProgress"}
    status, actions = run(capsys)
    assert (status, [one["status"] for one in actions]) == (3, ["failed", "failed"])
    assert "2 jobs in progress begin with 'Demo'" in actions[0]["detail"]
    assert "pending confirmation" in actions[1]["detail"]
    cloud.jobs["Demo-3"] = "Completed"
    cloud.subscriptions[0]["SubscriptionArn"] = "arn:confirmed"
    status, actions = run(capsys)
    assert (status, [one["status"] for one in actions]) == (1, ["sent", "sent"])
    assert cloud.jobs["Demo-2"] == "Stopping"


def test_a_dry_run_calls_nothing(cloud: Cloud, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, actions = run(capsys, "--dry-run")
    assert (status, [one["status"] for one in actions]) == (1, ["dry_run"] * 2)
    assert actions[1]["requests"][-1]["operation"] == "Publish"
    assert cloud.calls == []
    assert not (folder / "xdg").exists()


def test_two_processes_that_judge_one_run_send_one_notice(
    receiver: Receiver, folder: Path, sick: str
) -> None:
    pytest.importorskip("fcntl")
    receiver.delay = 1.5
    (folder / "smdbg.toml").unlink()
    code = "import sys; from smdbg_core.cli.main import main; main(sys.argv[1:])"
    arguments = ["run", sick, "--rule", "VanishingGradient", "--action", "Webhook", "--format", "json"]
    command = [sys.executable, "-c", code, *arguments, "--param", f"Webhook.url={receiver.url}"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    reports = [json.loads(process.communicate()[0]) for process in both]
    assert sorted(report["actions"][0]["status"] for report in reports) == ["already_sent", "sent"]
    assert len(receiver.received) == 1


def test_after_a_crash_the_job_is_stopped_and_the_message_not_sent_again(
    cloud: Cloud, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.jobs = {"Demo-1": "InProgress"}
    cloud.subscribe("on.call@example.com", '{"email": ["on.call@example.com"]}')
    run(capsys)
    with sqlite3.connect(folder / "xdg" / "smdbg" / "journal.sqlite3") as journal:
        journal.execute("UPDATE notices SET status='in_flight', settled=NULL")
    journal.close()
    status, actions = run(capsys)
    assert (status, [one["status"] for one in actions]) == (3, ["sent", "unknown"])
    assert "is Stopping already" in actions[0]["detail"]
    assert "smdbg journal retry" in actions[1]["detail"]
    assert len(cloud.published) == 1
    status, actions = run(capsys, "--param", "mail.retry_unknown=yes")
    assert (status, [one["status"] for one in actions]) == (1, ["already_sent", "sent"])
    assert len(cloud.published) == 2


def test_secrets_are_nowhere(
    receiver: Receiver,
    folder: Path,
    sick: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TOKEN", "hidden-token")
    monkeypatch.setenv("KEY", "hidden-key")
    (folder / "smdbg.toml").write_text(
        '[actions.page]\ntype = "Webhook"\nretries = 1\nsecret_env = "KEY"\nheaders = ["Authorization: Bearer ${TOKEN}"]\n'
        f'url = "{receiver.url.replace("//", "//${TOKEN}@")}/${{TOKEN}}?q=hidden-query"\n'
        '[[rules]]\nrule = "VanishingGradient"\nactions = ["page"]\n'
    )
    receiver.answers = [(500, {})] * 2
    said = ""
    for arguments in (
        ["--dry-run"],
        [],
        ["--output", "out", "-vv", "--format", "json"],
        ["--format", "junit"],
    ):
        with pytest.raises(SystemExit):
            main(["run", sick, *arguments])
        said += "".join(capfd.readouterr())
    with pytest.raises(SystemExit):
        main(["journal", "--format", "json"])
    said += "".join(capfd.readouterr())
    assert len(receiver.received) == 3
    assert receiver.received[-1].path == "/hidden-token?q=hidden-query"
    written = [
        one.read_bytes() for place in ("xdg", "out") for one in (folder / place).rglob("*") if one.is_file()
    ]
    assert len(written) >= 3
    for secret in ("hidden-token", "hidden-key", "hidden-query"):
        assert secret not in said
        assert not any(secret.encode() in content for content in written)
