"""`smdbg journal`: listing, explaining, retrying."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.builders import write_trial
from tests.command import Command

SICK = {n: ("TRAIN", {"gradient/Net_fc.weight": np.full(3, 1e-9)}) for n in range(4)}


@pytest.fixture
def smdbg(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    write_trial(tmp_path / "sick", SICK)
    (tmp_path / "smdbg.toml").write_text(
        'path = "sick"\njob_name = "demo-1"\n'
        '[actions.stop]\ntype = "StopFile"\npath = "blocked/STOP"\n'
        '[actions.note]\ntype = "Log"\npath = "events.jsonl"\n'
        '[[rules]]\nrule = "VanishingGradient"\nactions = ["STOP", "note"]\n'
    )
    return Command(capsys)


def test_nothing_is_recorded_and_nothing_created(smdbg: Command, tmp_path: Path) -> None:
    assert smdbg("journal").out == "Nothing is recorded.\n"
    assert json.loads(smdbg("journal", "--format", "json").out) == []
    assert smdbg("journal", "retry", "--all").out == "Nothing is to be retried.\n"
    assert not (tmp_path / "xdg").exists()


def test_a_failure_is_listed_explained_and_retried(smdbg: Command, tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("in the way")
    done = smdbg("run")
    assert done.status == 3
    assert "FAILED" in done.out
    assert "1 action FAILED" in done.out
    assert (tmp_path / "events.jsonl").read_text().count("\n") == 1
    rows = json.loads(smdbg("journal", "--format", "json").out)
    assert [(row["action"], row["status"], row["findings"]) for row in rows] == [
        ("stop", "failed", 4),
        ("note", "sent", 4),
    ]
    assert rows[0]["content"]["job_name"] == "demo-1"
    listed = smdbg("journal", "--status", "failed").out
    assert "stop for VanishingGradient fired (4 findings)" in listed
    assert "note" not in listed
    event = rows[0]["event"][:8]
    explained = smdbg("journal", "explain", event, "--action", "stop").out
    for part in (
        "failed, 1 attempt",
        "cannot be created",
        "job: demo-1",
        "stands for 4 findings",
        "tries again",
    ):
        assert part in explained
    assert len(json.loads(smdbg("journal", "explain", event, "--format", "json").out)) == 2

    again = smdbg("journal", "retry", event)
    assert again.status == 3
    (tmp_path / "blocked").unlink()
    dry = smdbg("journal", "retry", "--all", "--dry-run")
    assert (dry.status, "would create" in dry.out) == (0, True)
    assert not (tmp_path / "blocked").exists()
    retried = smdbg("journal", "retry", "--all")
    assert (retried.status, "sent  stop for VanishingGradient fired: created" in retried.out) == (0, True)
    content = json.loads((tmp_path / "blocked" / "STOP").read_text())
    assert content["id"] == rows[0]["event"]
    assert "already_sent" in smdbg("journal", "retry", event).out
    assert smdbg("run").status == 1
    assert (tmp_path / "events.jsonl").read_text().count("\n") == 1


def test_mistakes(smdbg: Command, tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("in the way")
    smdbg("run")
    assert smdbg("journal", "retry").status == 2
    assert smdbg("journal", "retry", "x", "--all").status == 2
    unknown = smdbg("journal", "explain", "zzz")
    assert (unknown.status, "no event 'zzz'" in unknown.err) == (2, True)
    assert smdbg("journal", "nope").status == 2
    (tmp_path / "smdbg.toml").unlink()
    bare = smdbg("journal", "retry", "--all")
    assert (bare.status, "'stop', a StopFile, is not configured" in bare.err) == (2, True)
    (tmp_path / "xdg" / "smdbg" / "journal.sqlite3").write_text("x" * 4096)
    broken = smdbg("journal")
    assert (broken.status, "move it away" in broken.err) == (3, True)


def test_state_and_dry_run_options(smdbg: Command, tmp_path: Path) -> None:
    dry = smdbg("run", "--dry-run", "--format", "json", "--job-name", "other")
    records = json.loads(dry.out)["actions"]
    assert [record["status"] for record in records] == ["dry_run", "dry_run"]
    assert records[0]["requests"][0]["content"]["job_name"] == "other"
    assert dry.status == 1
    assert {one.name for one in tmp_path.iterdir()} == {"sick", "smdbg.toml"}
    assert smdbg("run", "--state", "here", "--action", "Log", "--param", "Log.path=more").status == 1
    assert (tmp_path / "here" / "journal.sqlite3").exists()
    assert not (tmp_path / "xdg").exists()
    assert "Log for VanishingGradient" in smdbg("journal", "--state", "here").out
    assert smdbg("journal", "--state", "here", "explain", "zz").status == 2


def test_failures_in_every_format(smdbg: Command, tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("in the way")
    junit = smdbg("run", "--format", "junit").out
    assert 'name="stop for VanishingGradient fired"' in junit
    assert 'tests="2" failures="1" errors="1"' in junit
    lines = [json.loads(line) for line in smdbg("run", "--format", "jsonl").out.splitlines()]
    assert [record["status"] for record in lines[-1]["actions"]] == ["failed", "already_sent"]
    logged = smdbg("run", "-v", "--log-format", "json", "--format", "json").err
    assert any(json.loads(line).get("action") == "stop" for line in logged.splitlines())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[actions.a]\npath = 'x'\n", "actions.a: `type`"),
        ("[actions]\na = 3\n", "Expected `object`"),
        ("actions = 3\n", "Expected `object`"),
        ("[actions.a]\ntype = 'Log'\n[actions.A]\ntype = 'Log'\n", "'a' is there twice"),
        ("[[rules]]\nrule = 'AllZero'\nactions = 'a'\n", "`actions` is a list of names"),
        ("[[rules]]\nrule = 'AllZero'\nactions = ['pge']\n[actions.page]\ntype = 'Log'\n", "no action 'pge'"),
        ("[actions.a]\ntype = 'Webhook'\nurl = 'https://me:hidden@example.com'\n", "holds credentials"),
        ("[actions.a]\ntype = 'AllZero'\n", "no action 'AllZero'"),
    ],
)
def test_mistakes_in_the_configuration(smdbg: Command, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "smdbg.toml").write_text(text)
    done = smdbg("run", "sick", "--action", "a")
    assert (done.status, says in done.err) == (2, True), done.err
    assert "hidden" not in done.err


def test_actions_are_explained(smdbg: Command) -> None:
    explained = smdbg("explain", "stoptraining").out
    for part in ("training_job_prefix", "verify_seconds", '"sagemaker:StopTrainingJob"', "Afterwards"):
        assert part in explained
    assert "from smdbg_actions import stop_requested\n" in smdbg("explain", "StopFile").out
    assert "CheckIfPhoneNumberIsOptedOut" in smdbg("explain", "SMS").out
    assert "AWS must allow" not in smdbg("explain", "Log").out
    schema = json.loads(smdbg("schema", "Email").out)["properties"]["email_address"]
    assert schema["format"] == "email"
    assert json.loads(smdbg("schema", "SMS").out)["properties"]["phone_number"]["pattern"].startswith("^")
