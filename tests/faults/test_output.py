"""Where results go: disks that are full or read-only, names of any characters, secrets."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from smdbg_core import (
    Action,
    ActionError,
    ActionResult,
    ConfigError,
    Event,
    Finding,
    Reads,
    StepView,
    TensorRule,
    evaluate,
    open_run,
)
from smdbg_core.masking import masked
from smdbg_core.report.console import render_console
from smdbg_core.report.json import render_json
from smdbg_core.report.junit import render_junit
from smdbg_core.storage.s3_errors import explained
from smdbg_core.testing import TrialBuilder
from tests.faults.fabricated import HOSTILE

SECRETS = ("hunter2", "s3cr3t", "t0ps3cret")


class FiresAlways(TensorRule):
    """Fires.

    Why it matters: its findings are reported.
    What to do: nothing.
    """

    def reads(self) -> Reads:
        return Reads(everything=True, statistics=("mean",))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            yield from self.judge(tensor, "mean", tensor.statistics.mean, ">", -1e9)


@pytest.fixture
def vanishing(tmp_path: Path) -> Path:
    """A trial in which VanishingGradient fires."""
    return Path(TrialBuilder().steps(range(3), {"gradient/a": [1e-9]}).write(tmp_path / "trial"))


def smdbg(
    *arguments: str | Path, into: Any = subprocess.PIPE, **options: Any
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from smdbg_core.cli.main import main; main()", *map(str, arguments)]
    return subprocess.run(
        command, stdout=into, stderr=subprocess.PIPE, text=True, check=False, timeout=120, **options
    )


def without_space() -> None:
    """No file of this process grows beyond a page, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("options", [(), ("--format", "json"), ("--format", "junit")])
def test_a_full_disk_behind_the_output_is_one_line(vanishing: Path, options: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = smdbg("run", vanishing, *options, into=full)
    assert done.returncode == 3
    assert lines(done.stderr)[-1] == "smdbg: the output cannot be written: No space left on device"
    assert "Traceback" not in done.stderr


def test_a_full_disk_below_the_output_folder_is_one_line(vanishing: Path, tmp_path: Path) -> None:
    done = smdbg("run", vanishing, "--output", tmp_path / "out", preexec_fn=without_space)
    assert done.returncode == 3
    assert "cannot be written: File too large" in lines(done.stderr)[-1]
    assert "Traceback" not in done.stderr


def test_a_full_disk_below_the_journal_loses_no_verdict_and_no_notice(
    vanishing: Path, tmp_path: Path
) -> None:
    state = ("--state", tmp_path / "state")
    done = smdbg(
        "run", vanishing, "--rule", "VanishingGradient", "--action", "Log", *state, preexec_fn=without_space
    )
    assert done.returncode == 1
    shown = " ".join(done.stdout.split())
    assert "journal.sqlite3: the journal cannot be used" in shown
    assert "Verdict: 1 fired." in shown
    assert "VanishingGradient" in done.stderr  # where the notice of Log goes


def test_folders_that_cannot_be_made_are_one_line(vanishing: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")  # holds for root as well, who may write anywhere
    done = smdbg("run", vanishing, "--output", tmp_path / "file" / "out")
    assert done.returncode == 3
    assert "cannot be written" in lines(done.stderr)[-1]
    environment = os.environ | {
        "XDG_CACHE_HOME": str(tmp_path / "file"),
        "XDG_STATE_HOME": str(tmp_path / "file"),
    }
    done = smdbg("run", vanishing, "--rule", "VanishingGradient", "--action", "Log", env=environment)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)


def test_names_of_any_characters_are_shown_harmlessly(tmp_path: Path) -> None:
    name = f"<i>{HOSTILE}</i>"
    folder = tmp_path / "<u>\n\x1b[31m"
    path = TrialBuilder(workers=("<s>\x1b]0;",)).steps(range(3), {name: [1.0]}).write(folder)
    report = evaluate(path, rules=[FiresAlways], evidence=True)
    assert report.outcomes[0].findings[0].subject == name
    text = render_console(report)
    assert all(c.isprintable() or c == "\n" for c in text)
    document = json.loads(render_json(report))
    assert document["outcomes"][0]["findings"][0]["subject"] == name
    assert name.replace("\x1b", "\ufffd").replace("\x07", "\ufffd") in str(
        ElementTree.fromstring(render_junit(report))[0][0][0].text
    )
    pytest.importorskip("jinja2")
    from smdbg_core.report.html.page import render_html

    page = Tags()
    page.feed(render_html(report))
    assert not page.seen & {"i", "u", "s"}


def test_a_folder_whose_name_is_no_text(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    TrialBuilder().steps(range(3), {"gradient/a": [1e-9]}).write(Path(folder))
    for options in ((), ("--format", "json"), ("--format", "junit"), ("--format", "jsonl")):
        done = smdbg("run", folder, "--rule", "VanishingGradient", *options)
        assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    done = smdbg(
        "run", folder, "--rule", "VanishingGradient", "--action", "Log", "--state", tmp_path / "state"
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    done = smdbg("doctor", folder)
    assert "VanishingGradient" in done.stdout
    done = smdbg("report", folder, "--output", tmp_path / "out")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr


@pytest.mark.parametrize(
    "action",
    [
        'url = "http://127.0.0.1:9/hook?token=s3cr3t"\nheaders = ["Authorization: Bearer t0ps3cret"]\nretries = 0',
        'url = "http://user:hunter2@127.0.0.1:9/hook"',
        'url = "hunter2"',
        'url = ["hunter2"]',
        'url = "http://127.0.0.1:9/"\nheaders = { Authorization = "Bearer t0ps3cret" }',
        'url = "http://[hunter2/"',
        'url = "https://${TOKEN_HOLDER}.example.com/${TOKEN_HOLDER}"\nretries = 0',
    ],
)
@pytest.mark.parametrize("output_format", ["table", "json"])
def test_secrets_of_actions_are_shown_nowhere(
    vanishing: Path, tmp_path: Path, action: str, output_format: str
) -> None:
    config = tmp_path / "smdbg.toml"
    rule = '[[rules]]\nrule = "VanishingGradient"\nactions = ["page"]\n'
    config.write_text(f'[actions.page]\ntype = "Webhook"\n{action}\n{rule}')
    state, out = tmp_path / "state", tmp_path / "out"
    environment = os.environ | {"TOKEN_HOLDER": "127.0.0.1:9/s3cr3t"}
    options = ("--config", config, "--format", output_format, "--state", state, "--output", out, "-v")
    done = smdbg("run", vanishing, *options, env=environment)
    assert done.returncode in (2, 3), done.stderr
    kept = [path.read_bytes() for folder in (state, out) for path in folder.rglob("*") if path.is_file()]
    shown = b"".join([done.stdout.encode(), done.stderr.encode(), *kept])
    assert not [secret for secret in SECRETS if secret.encode() in shown]


def test_uris_with_credentials_are_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        open_run("s3://AKIAEXAMPLE:hunter2@bucket/job")
    assert "hunter2" not in str(caught.value)
    assert "AKIAEXAMPLE" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            'endpoint URL: "https://me:hunter2@s3.example.com/x"',
            'endpoint URL: "https://***@s3.example.com/x"',
        ),
        ("https://example.com/a?token=s3cr3t&page=2", "https://example.com/a?token=***&page=2"),
        (
            "https://example.com/?X-Amz-Signature=abc&X-Amz-Credential=AK/1",
            "https://example.com/?X-Amz-Signature=***&X-Amz-Credential=***",
        ),
        ("the Access Key Id AKIAIOSFODNN7EXAMPLE does not exist", "the Access Key Id *** does not exist"),
        ("Authorization: Bearer t0ps3cret was refused", "Authorization: Bearer *** was refused"),
        (
            "s3://bucket/job: no such file, write to me@example.com",
            "s3://bucket/job: no such file, write to me@example.com",
        ),
    ],
)
def test_credentials_in_complaints_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_what_a_service_repeats_is_masked() -> None:
    error = SimpleNamespace(
        response={"Error": {"Code": "Odd", "Message": "key AKIAIOSFODNN7EXAMPLE at http://a:hunter2@b"}}
    )
    told = str(explained(error, "GetObject", "s3:GetObject", "s3://bucket/job", "bucket"))
    assert "AKIAIOSFODNN7EXAMPLE" not in told
    assert "hunter2" not in told


class Leaks(Action):
    """Fails, and repeats a secret.

    What it does: nothing.
    """

    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        raise ActionError("https://me:hunter2@example.com/?token=s3cr3t cannot be reached")


def test_what_an_action_repeats_is_masked(vanishing: Path, tmp_path: Path) -> None:
    report = evaluate(vanishing, rules=[FiresAlways], actions=[Leaks], state=tmp_path / "state")
    (record,) = report.actions
    assert record.detail == "https://***@example.com/?token=*** cannot be reached"
    assert b"hunter2" not in (tmp_path / "state" / "journal.sqlite3").read_bytes()
