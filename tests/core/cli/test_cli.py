"""The command: exit statuses, messages, options, the configuration file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders import write_trial
from tests.command import Command
from tests.distributions import RULE, install

SICK = {
    n: ("TRAIN", {"gradient/Net_fc.weight": np.full(3, 1e-9), "Net_fc.weight": np.arange(2.0) + n})
    for n in range(4)
}
HEALTHY = {
    n: ("TRAIN", {"gradient/Net_fc.weight": np.linspace(-1, 1, 9), "Net_fc.weight": np.arange(2.0) + n})
    for n in range(4)
}


@pytest.fixture
def smdbg(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    for name in ("SMDBG_PLUGINS", "SMDBG_DISABLE", "SMDBG_THIRD_PARTY", "SMDBG_STRICT"):
        monkeypatch.delenv(name, raising=False)
    return Command(capsys)


@pytest.fixture
def sick(tmp_path: Path) -> str:
    return write_trial(tmp_path / "sick", SICK)


@pytest.fixture
def healthy(tmp_path: Path) -> str:
    return write_trial(tmp_path / "healthy", HEALTHY)


def test_exit_statuses(smdbg: Command, sick: str, healthy: str, tmp_path: Path) -> None:
    assert smdbg("run", healthy).status == 0
    assert smdbg("run", sick).status == 1
    assert smdbg("run", sick, "--fail-on", "error").status == 0
    assert smdbg("run", sick, "--fail-on", "never").status == 0
    assert smdbg("run", healthy, "--rule", "Nope").status == 2
    assert smdbg("run", healthy, "--steps", "3").status == 2
    assert smdbg("run", healthy, "--nope").status == 2
    assert smdbg("run").status == 2
    assert smdbg("run", tmp_path / "none").status == 3
    assert smdbg("run", healthy, "--rule", "TreeDepth").status == 3
    assert smdbg("run", healthy, "--steps", "90:").status == 3
    assert smdbg("run", healthy, "--rule", "AllZero", "--param", "AllZero.tensor_regex=zzz").status == 3


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: None, "no such folder"),
        (lambda p: p.write_text("x"), "neither system metrics (JSON lines) nor trace events"),
        (lambda p: p.mkdir(), "the folder is empty"),
        (lambda p: (p / "src").mkdir(parents=True), "not a trial"),
    ],
)
def test_what_is_no_run_gets_one_clear_line(smdbg: Command, tmp_path: Path, make: Any, says: str) -> None:
    make(tmp_path / "x")
    done = smdbg("run", tmp_path / "x")
    assert (done.status, done.out) == (3, "")
    assert done.err.count("\n") == 1
    assert says in done.err


def test_mistakes_are_reported_together(smdbg: Command, sick: str) -> None:
    done = smdbg(
        "run",
        sick,
        "--param",
        "AllZero.treshold=3",
        "--param",
        "vanishinggradient.threshold=true",
        "--param",
        "Nope.a=1",
    )
    assert done.status == 2
    assert done.err.splitlines() == [
        "smdbg: AllZero: no parameter 'treshold'; did you mean 'threshold'?",
        "smdbg: VanishingGradient: threshold='true': not a number; expected a number > 0",
        "smdbg: parameters are given for 'nope', but that rule does not take part",
    ]
    for bad in ("AllZero=3", "threshold=3", "A.b"):
        assert "is not RULE.PARAMETER=VALUE" in smdbg("run", sick, "--param", bad).err
    assert "given twice" in smdbg("run", sick, "--param", "A.b=1", "--param", "A.b=2").err


def test_parameters_and_rules(smdbg: Command, sick: str) -> None:
    assert (
        smdbg(
            "run", sick, "--rule", "vanishinggradient", "--param", "VanishingGradient.threshold=1e-12"
        ).status
        == 0
    )
    done = smdbg("run", sick, "--rule", "VanishingGradient", "--steps", "1:3", "--format", "json")
    assert json.loads(done.out)["outcomes"][0]["coverage"]["steps"] == 2


def test_formats(smdbg: Command, sick: str) -> None:
    assert json.loads(smdbg("run", sick, "--format", "json").out)["run"]["tensors"] == 2
    lines = [json.loads(line) for line in smdbg("run", sick, "--format", "jsonl").out.splitlines()]
    assert [line["type"] for line in lines][:4] == ["finding"] * 4
    assert lines[-1]["type"] == "run"
    assert smdbg("run", sick, "--format", "junit").out.startswith("<?xml")
    unknown = smdbg("run", sick, "--format", "html")
    assert (unknown.status, "there are table, json, jsonl, junit" in unknown.err) == (2, True)


def test_a_rule_that_prints_leaves_json_alone(smdbg: Command, sick: str, tmp_path: Path) -> None:
    source = RULE.format(name="Chatty").replace(
        "        for tensor", "        print('so be it')\n        for tensor"
    )
    (tmp_path / "chatty.py").write_text(source)
    for output_format in ("json", "junit"):
        done = smdbg("run", sick, "--rule", "chatty.py:Chatty", "--format", output_format)
        assert "so be it" not in done.out
        assert "so be it" in done.err
    assert "so be it" in smdbg("run", sick, "--rule", "chatty.py:Chatty").out


def test_output_folder(smdbg: Command, sick: str, tmp_path: Path) -> None:
    smdbg("run", sick, "--output", tmp_path / "out")
    assert json.loads((tmp_path / "out/report.json").read_text())["outcomes"]
    assert (tmp_path / "out/report.xml").read_text().startswith("<?xml")
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = smdbg("run", sick, "--output", blocked)
    assert (done.status, "cannot be written" in done.err) == (3, True)


def test_report(smdbg: Command, sick: str, healthy: str, tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    done = smdbg("report", sick, "--output", tmp_path / "o")
    assert done.status == 1
    assert "FIRED  VanishingGradient" in done.out
    page = (tmp_path / "o/report.html").read_text()
    assert "VanishingGradient" in page
    assert json.loads((tmp_path / "o/report.json").read_text())["schema_version"] == 1
    assert (tmp_path / "o/report.xml").exists()
    assert smdbg("report", healthy, "--output", tmp_path / "p", "-q") == (0, "", "")
    assert smdbg("report", tmp_path / "missing", "--output", tmp_path / "q").status == 3
    assert smdbg("report", sick).status == 2


def test_report_of_the_files_that_the_service_wrote(smdbg: Command, tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    folder = tmp_path / "profiler-output/profiler-reports"
    folder.mkdir(parents=True)
    found = {"RuleTriggered": 2, "Violations": 2, "Details": {}, "Datapoints": 9, "RuleParameters": ""}
    (folder / "StepOutlier.json").write_text(json.dumps(found))
    done = smdbg("report", tmp_path, "--output", tmp_path / "o")
    assert done.status == 1
    assert "triggered 2 times" in done.out
    assert "Reported by the service, from 9 data points" in (tmp_path / "o/report.html").read_text()


def test_pages_beside_the_files_of_report_rules(smdbg: Command, tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    from tests.profiler_job import Job

    run = Job().ticks({("cpu0", "CPUUtilization"): [50.0] * 300}).write(tmp_path / "run")
    assert smdbg("run", run, "--output", tmp_path / "o", "-q").status == 0
    whole = (tmp_path / "o/report.html").read_bytes()
    assert (tmp_path / "o/profiler-output/profiler-report.html").read_bytes() == whole


def test_without_the_extra(
    smdbg: Command, sick: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from smdbg_core.report.html import extra

    monkeypatch.setattr(extra, "find_spec", lambda name: None)
    done = smdbg("report", sick, "--output", tmp_path / "o")
    assert (done.status, done.out) == (2, "")
    assert "pip install 'smdbg-core[report]'" in done.err
    done = smdbg("run", sick, "--output", tmp_path / "o")
    assert done.status == 1
    assert done.err.count("pip install") == 1
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["report.json", "report.xml"]


def test_processes_give_the_same(smdbg: Command, sick: str) -> None:
    assert (
        smdbg("run", sick, "--jobs", "2", "--format", "json").out
        == smdbg("run", sick, "--format", "json").out
    )


def test_configuration_file(smdbg: Command, sick: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RULE.format(name="Mine"))
    (tmp_path / "smdbg.toml").write_text(
        f'path = "{sick}"\n'
        '[plugins]\ndisable = ["ExplodingTensor"]\n'
        '[[rules]]\nrule = "VanishingGradient"\nname = "strict"\nthreshold = 1e-12\n'
        '[[rules]]\nrule = "VanishingGradient"\n'
        '[[rules]]\nfile = "mine.py:Mine"\n'
    )
    done = smdbg("run", "--format", "json")
    assert [(o["name"], o["status"]) for o in json.loads(done.out)["outcomes"]] == [
        ("strict", "clean"),
        ("VanishingGradient", "fired"),
        ("Mine", "clean"),
    ]
    assert done.status == 1
    only = json.loads(smdbg("run", "--rule", "strict", "--format", "json").out)
    assert [o["name"] for o in only["outcomes"]] == ["strict"]
    assert "is not used: disabled" in smdbg("run", "--rule", "ExplodingTensor").err


def test_presets(smdbg: Command, sick: str, tmp_path: Path) -> None:
    def patience(*arguments: str) -> object:
        done = smdbg("run", sick, "--rule", "VanishingGradient", "--format", "json", *arguments)
        return json.loads(done.out)["outcomes"][0]["parameters"]["patience"]

    assert patience() == 1
    assert patience("--preset", "recommended") == 3
    assert patience("--preset", "recommended", "--param", "VanishingGradient.patience=2") == 2
    (tmp_path / "smdbg.toml").write_text('preset = "recommended"\n')
    assert patience() == 3
    wrong = smdbg("run", sick, "--preset", "strict")
    assert (wrong.status, wrong.err.strip()) == (2, "smdbg: no preset 'strict'; there are recommended")
    assert "With --preset recommended:" in smdbg("explain", "VanishingGradient").out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("path = 3", "Expected `str"),
        ("preset = 3", "Expected `str"),
        ("pth = 'x'", "no key 'pth'; did you mean 'path'?"),
        ("[plugins]\ndisabel = []", "plugins: no key 'disabel'; did you mean 'disable'?"),
        ("[[rules]]\nname = 'x'", "rules[1]: give either `rule`"),
        ("x = ", "not TOML"),
        ("[[rules]]\nrule = 'AllZero'\ntresh = 3", "no parameter 'tresh'"),
    ],
)
def test_mistakes_in_the_configuration(
    smdbg: Command, sick: str, tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "c.toml").write_text(text)
    done = smdbg("run", sick, "--config", "c.toml")
    assert (done.status, says in done.err) == (2, True), done.err
    assert "c.toml" in done.err or "AllZero" in done.err
    assert smdbg("run", sick, "--config", "none.toml").status == 2


def test_rules_explain_schema_plugins(smdbg: Command) -> None:
    listed = smdbg("rules")
    assert (listed.status, "deep learning:" in listed.out) == (0, True)
    boosting = json.loads(smdbg("rules", "--framework", "XGBoost", "--format", "json").out)
    names = {row["name"] for row in boosting}
    assert {"TreeDepth", "Overfit"} <= names
    assert "VanishingGradient" not in names
    explained = smdbg("explain", "vanishinggradient").out
    for part in ("threshold  (default 1e-07)", "What to do:", "every 500 steps", "stays out of requests"):
        assert part in explained
    assert json.loads(smdbg("schema", "AllZero").out)["properties"]["threshold"]["maximum"] == 100
    assert "$defs" in json.loads(smdbg("schema", "report").out)
    assert smdbg("explain", "Nope").status == 2
    rows = json.loads(smdbg("plugins", "--format", "json").out)
    columns = {"distribution", "version", "name", "entry_point", "kind", "state", "cause", "disable"}
    assert columns == set(rows[0])
    loaded = smdbg("plugins", "--load", "--format", "json").out
    assert {row["state"] for row in json.loads(loaded)} == {"loaded"}
    assert loaded == smdbg("plugins", "--load", "--format", "json").out
    timed = json.loads(smdbg("plugins", "--timings", "--format", "json").out)
    assert all(row.keys() - columns == {"load_seconds"} and row["load_seconds"] >= 0 for row in timed)
    assert re.search(r"load time +state\n.* ms  loaded\n", smdbg("plugins", "--timings").out)
    assert "SMDBG_DISABLE=" in smdbg("plugins").out


def test_broken_plugins_are_warnings(
    smdbg: Command, healthy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path / "site",
        "bad",
        {"Bad": "bad_cli_module:Bad"},
        modules={"bad_cli_module": "import sys; sys.exit(9)"},
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert smdbg("--help").status == 0
    assert "bad==1.0[Bad]: SystemExit: 9" in smdbg("rules").err
    done = smdbg("run", healthy)
    assert (done.status, "bad==1.0[Bad]" in done.out) == (0, True)
    assert smdbg("run", healthy, "--rule", "Bad").status == 3


def test_commands(smdbg: Command) -> None:
    assert "demo" in smdbg("--help").out
    assert smdbg("--version").out.startswith("smdbg, version ")
    assert "no command 'rnu'; did you mean 'run'?" in smdbg("rnu").err


def test_demo(smdbg: Command, tmp_path: Path) -> None:
    done = smdbg("demo", "--output", tmp_path / "demo")
    assert done.status == 0
    assert "The healthy run is clean; the sick one fires" in done.out
    assert "gradient/Net_fc1.weight" in done.out
    assert smdbg("run", tmp_path / "demo/healthy").status == 0
    assert smdbg("run", tmp_path / "demo/sick").status == 1


@pytest.mark.parametrize(
    "variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {"TZ": "Asia/Kathmandu"}]
)
def test_any_terminal_will_do(tmp_path: Path, variables: dict[str, str]) -> None:
    path = write_trial(
        tmp_path / "tränsor", {0: {"gradient/\u00fc\x1b[2J": np.zeros(2), "gradient/\U0001f600": np.zeros(2)}}
    )
    code = "import sys; from smdbg_core.cli.main import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-O", "-c", code, "run", path],
        capture_output=True,
        env={**os.environ, **variables},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert b"\x1b" not in done.stdout
    assert b"Traceback" not in done.stderr


def test_logging_goes_to_standard_error(smdbg: Command, sick: str) -> None:
    done = smdbg("run", sick, "-v", "--log-format", "json", "--format", "json")
    json.loads(done.out)
    records = [json.loads(line) for line in done.err.splitlines()]
    assert {"run", "rule", "plugin", "event"} <= set(records[0])


def test_doctor(smdbg: Command, sick: str, tmp_path: Path) -> None:
    done = smdbg("doctor", sick)
    assert done.status == 0
    assert "pass  path" in done.out
    assert "rules can judge this" in done.out
    found = json.loads(smdbg("doctor", sick, "--format", "json").out)
    assert "VanishingGradient" in found["judged"]
    assert smdbg("doctor", tmp_path / "none").status == 3
    (tmp_path / "empty" / "system").mkdir(parents=True)
    (tmp_path / "empty" / "system" / "training_job_end.ts").touch()
    assert smdbg("doctor", tmp_path / "empty").status == 3


def test_capture_complains_of_its_options(smdbg: Command) -> None:
    assert smdbg("capture").status == 2
    assert smdbg("capture", "--interval", "0.001", "true").status == 2
    assert "'laptop' is not algo-<number>" in smdbg("capture", "--node", "laptop", "true").err
