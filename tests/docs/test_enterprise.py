"""The policy distribution of docs/enterprise.md: as written there, built, installed and run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.actions.cloud import Cloud, serve_cloud
from tests.builders import write_trial
from tests.command import Done
from tests.wheels import Environment

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "acme_policy"
PLUGINS = ["audit", "metrics", "patience", "production"]

CONFIG = """
[plugins]
required = ["acme-policy"]
pinned = ["acme-policy==1.0.0", "smdbg-builtin-rules", "smdbg-profiler-rules", "smdbg-actions"]

[actions.halt]
type = "StopTraining"
verify_seconds = 1

[actions.leave]
type = "StopFile"
path = "{folder}/STOP"

[[rules]]
rule = "VanishingGradient"
actions = ["halt", "leave"]

[[rules]]
rule = "ExplodingTensor"
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment into which pip built and installed the example."""
    folder = tmp_path_factory.mktemp("policy")
    environment = Environment(folder / "venv")
    shutil.copytree(EXAMPLE, folder / "project")  # so that nothing is left beside the sources
    environment.pip("wheel", "--no-deps", "--wheel-dir", folder / "wheels", folder / "project")
    environment.install(*(folder / "wheels").glob("acme_policy-1.0.0-*.whl"))
    return environment


class Company(NamedTuple):
    """A run that fires, the configuration, and where the policy leaves its files."""

    environment: Environment
    cloud: Cloud
    folder: Path
    run: str

    @property
    def audit(self) -> Path:
        return self.folder / "audit.jsonl"

    def smdbg(self, *arguments: str, **variables: str) -> Done:
        own = {
            "ACME_AUDIT_LOG": str(self.audit),
            "ACME_METRICS_FOLDER": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        arguments = ("run", self.run, "--config", str(self.folder / "smdbg.toml"), *arguments)
        return self.environment.smdbg(*arguments, **{**self.cloud.variables(), **own, **variables})

    def records(self) -> list[tuple[str, str]]:
        lines = [json.loads(line) for line in self.audit.read_text().splitlines()]
        return [(line["action"], line["what"]) for line in lines]


@pytest.fixture
def company(environment: Environment, tmp_path: Path) -> Iterator[Company]:
    run = write_trial(tmp_path / 'a "sick" run', {n: {"gradient/a": 1e-9} for n in range(3)})
    (tmp_path / "smdbg.toml").write_text(CONFIG.format(folder=tmp_path))
    with serve_cloud() as cloud:
        cloud.jobs = {"prod-7": "InProgress", "dev-7": "InProgress"}
        yield Company(environment, cloud, tmp_path, run)


def actions(done: Done) -> dict[str, dict[str, Any]]:
    return {record["name"]: record for record in json.loads(done.out)["actions"]}


def test_the_page_has_every_file_as_it_is() -> None:
    page = (DOCS / "enterprise.md").read_text()
    shown = dict(re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    files = [path for path in EXAMPLE.rglob("*") if path.is_file() and path.suffix in (".py", ".toml")]
    assert shown == {path.relative_to(EXAMPLE).as_posix(): path.read_text() for path in files}
    assert len(shown) == 6


def test_the_example_is_typed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", tmp_path / "cache"]
    done = subprocess.run(
        [*command, "--follow-imports", "silent", EXAMPLE / "acme_policy"],
        env={**os.environ, "MYPYPATH": str(EXAMPLE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_pip_installs_four_hook_plugins(company: Company) -> None:
    listed = company.environment.smdbg("plugins", "--load", "--format", "json")
    rows = [row for row in json.loads(listed.out) if row["distribution"] == "acme-policy"]
    assert [(row["name"], row["kind"], row["state"]) for row in rows] == [
        (name, "hooks", "loaded") for name in PLUGINS
    ]


def test_production_jobs_are_not_stopped_and_others_are(company: Company) -> None:
    vetoed = company.smdbg("--job-name", "prod-7", "--format", "json")
    assert vetoed.status == 1, vetoed.err
    halt = actions(vetoed)["halt"]
    assert (halt["status"], halt["detail"]) == (
        "vetoed",
        "prod-7: rules do not stop production jobs, page the owner",
    )
    assert actions(vetoed)["leave"]["status"] == "sent"
    assert (company.folder / "STOP").exists()
    assert company.cloud.calls == []
    stopped = company.smdbg(
        "--job-name", "dev-7", "--format", "json", "--state", str(company.folder / "other")
    )
    assert actions(stopped)["halt"]["status"] == "sent"
    assert company.cloud.jobs == {"prod-7": "InProgress", "dev-7": "Stopping"}


@pytest.mark.parametrize(("prefix", "status"), [("prod-7", "vetoed"), ("pro", "vetoed"), ("dev", "sent")])
def test_a_prefix_that_may_mean_a_production_job_is_vetoed(
    company: Company, prefix: str, status: str
) -> None:
    done = company.smdbg(
        "--job-name", "dev-7", "--param", f"halt.training_job_prefix={prefix}", "--format", "json"
    )
    assert actions(done)["halt"]["status"] == status
    assert company.cloud.jobs["prod-7"] == "InProgress"


def test_every_dispatch_is_on_record(company: Company) -> None:
    company.cloud.denied = {"ListTrainingJobs"}
    # Each with a journal of its own, as if the others had never been.
    for number, arguments in enumerate((["prod-7"], ["dev-7", "--dry-run"], ["dev-7"])):
        company.smdbg("--state", str(company.folder / str(number)), "--job-name", *arguments)
    assert company.records() == [
        *[("StopTraining", "begun"), ("StopTraining", "vetoed"), ("StopFile", "begun"), ("StopFile", "done")],
        *[("StopTraining", "begun"), ("StopTraining", "done"), ("StopFile", "begun"), ("StopFile", "done")],
        *[("StopTraining", "begun"), ("StopTraining", "failed"), ("StopFile", "begun"), ("StopFile", "done")],
    ]
    lines = [json.loads(line) for line in company.audit.read_text().splitlines()]
    assert [line["dry_run"] for line in lines] == [False] * 4 + [True] * 4 + [False] * 4
    assert {line["run"] for line in lines} == {company.run}
    assert [line["job"] for line in lines] == ["prod-7"] * 4 + ["dev-7"] * 8
    assert len({line["event"] for line in lines}) == 1
    assert "not authorized" in lines[9]["detail"]


def test_without_a_record_nothing_is_sent(company: Company) -> None:
    done = company.smdbg(
        "--job-name", "dev-7", "--format", "json", ACME_AUDIT_LOG=str(company.folder / "none" / "audit")
    )
    assert done.status == 3
    assert {record["status"] for record in actions(done).values()} == {"failed"}
    assert "acme-policy==1.0.0[audit]" in actions(done)["halt"]["detail"]
    assert company.cloud.calls == []
    assert not (company.folder / "STOP").exists()
    assert json.loads(done.out)["outcomes"][0]["status"] == "fired"


def test_a_patience_that_is_too_short_is_refused(company: Company) -> None:
    rules = ["PoorWeightInitialization", "Overtraining", "AllZero", "LowGPUUtilization"]
    asked = [part for rule in rules for part in ("--rule", rule)]
    values = {
        "PoorWeightInitialization.patience": 2,
        "Overtraining.patience_train": 4,
        "Overtraining.patience_validation": 5,
        "AllZero.tensor_regex": "a",
        "LowGPUUtilization.patience": 3,
    }
    given = [part for name, value in values.items() for part in ("--param", f"{name}={value}")]
    done = company.smdbg(*asked, *given)
    policy = "is too short: ACME's policy asks for at least 5"
    assert (done.status, done.out) == (2, "")
    assert done.err.splitlines() == [
        f"smdbg: PoorWeightInitialization: patience=2 {policy}",
        f"smdbg: Overtraining: patience_train=4 {policy}",
        f"smdbg: LowGPUUtilization: patience=3 {policy}",
    ]


def test_outcomes_are_metrics(company: Company) -> None:
    done = company.smdbg("--job-name", "prod-7", "--format", "json")
    (file,) = company.folder.glob("smdbg-*")
    assert file.suffix == ".prom"
    samples: dict[tuple[str, ...], float] = {}
    types: dict[str, str] = {}
    for line in file.read_text().splitlines():
        if line.startswith("#"):
            keyword, name, text = line[2:].split(" ", 2)
            types |= {name: text} if keyword == "TYPE" else {}
            continue
        # As the text format has it: a name, labels with escaped values, a number.
        matched = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\d+)', line)
        assert matched, line
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', matched[2]))
        assert labels.pop("run").replace(r"\"", '"') == json.loads(done.out)["run"]["uri"]
        samples[matched[1], *labels.values()] = float(matched[3])
    assert {name for name, *_ in samples} == types.keys()
    assert set(types.values()) == {"gauge"}
    judged = samples.pop(("smdbg_run_judged_seconds",))
    assert judged > 1_700_000_000
    statuses = ("fired", "clean", "not_evaluated", "error")
    assert samples == {
        **{("smdbg_rule_status", "VanishingGradient", one): float(one == "fired") for one in statuses},
        **{("smdbg_rule_status", "ExplodingTensor", one): float(one == "clean") for one in statuses},
        ("smdbg_rule_findings", "VanishingGradient"): 1.0,
        ("smdbg_rule_findings", "ExplodingTensor"): 0.0,
        ("smdbg_actions", "halt", "vetoed"): 1.0,
        ("smdbg_actions", "leave", "sent"): 1.0,
    }


def test_metrics_that_cannot_be_written_are_a_warning(company: Company) -> None:
    done = company.smdbg(
        "--job-name", "prod-7", "--format", "json", ACME_METRICS_FOLDER=str(company.folder / "none")
    )
    (warning,) = json.loads(done.out)["warnings"]
    assert warning.startswith("acme-policy==1.0.0[metrics]: failed in smdbg_run_finished: FileNotFoundError")
    assert done.status == 1
