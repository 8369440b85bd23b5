"""Real wheels in a real environment: what pip installs is what discovery finds, and what is broken costs itself."""

from __future__ import annotations

import json
import re
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.builders import write_trial
from tests.command import Done
from tests.distributions import RULE
from tests.wheels import Environment, finished, wheel

RENAMED = """
from smdbg_core import hookimpl

@hookimpl
def smdbg_run_finished(reprot):
    raise RuntimeError("never called")
"""

PRINTING = """
import os, subprocess, sys
print("through sys.stdout")
print("past its replacement", file=sys.__stdout__)
os.write(1, b"through the descriptor\\n")
subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
"""


class Case(NamedTuple):
    """A distribution with one plugin, and what is to be said of it."""

    distribution: str
    name: str
    source: str
    state: str
    cause: str | None
    group: str = "smdbg.rules"
    module: str | None = None
    requires: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.distribution}[{self.name}]"

    def wheel(self, folder: Path) -> Path:
        own = self.distribution.replace("-", "_")
        module = self.module or own
        target = module if self.group == "smdbg.plugins" else f"{module}:{self.name}"
        return wheel(
            folder,
            self.distribution,
            {self.group: {self.name: target}},
            {own: self.source},
            requires=self.requires,
        )


def rule(name: str) -> str:
    return RULE.format(name=name)


CASES = [
    Case("acme-good", "Working", rule("Working"), "loaded", None),
    Case(
        "acme-raising",
        "Raising",
        "raise RuntimeError('no licence')",
        "broken",
        "RuntimeError: no licence (acme_raising.py:1)",
    ),
    Case("acme-exiting", "Exiting", "import sys; sys.exit(3)", "broken", "SystemExit: 3 (acme_exiting.py:1)"),
    Case(
        "acme-renamed-class",
        "Stale",
        rule("Fresh"),
        "broken",
        "AttributeError: module 'acme_renamed_class' has no attribute 'Stale'",
    ),
    Case(
        "acme-removed-module",
        "Gone",
        "",
        "broken",
        "ModuleNotFoundError: No module named 'acme_gone'",
        module="acme_gone",
    ),
    Case("acme-printing", "Printing", PRINTING + rule("Printing"), "loaded", None),
    Case("acme-slow", "Slow", "import time; time.sleep(5)\n" + rule("Slow"), "loaded", None),
    Case(
        "acme-wanting",
        "Wanting",
        rule("Wanting"),
        "loaded",
        "it requires no-such-dist >=2, which is not installed",
        requires=("no-such-dist>=2",),
    ),
    Case(
        "acme-future",
        "Future",
        "raise RuntimeError('imported')",
        "incompatible",
        "it requires smdbg-core >=99, and 0.1.0 is installed",
        requires=("smdbg-core>=99",),
    ),
    Case(
        "acme-hooks",
        "hooks",
        RENAMED,
        "broken",
        "hookimpl definition: smdbg_run_finished(reprot); "
        "Argument(s) {'reprot'} are declared in the hookimpl but can not be found in the hookspec",
        group="smdbg.plugins",
    ),
    Case(
        "acme-intruder",
        "allzero",
        rule("allzero"),
        "broken",
        "the name 'allzero' is not letters and digits that begin with a capital",
    ),
    Case(
        "acme-usurper",
        "AllZero",
        rule("AllZero"),
        "conflict",
        "AllZero belongs to smdbg-builtin-rules==0.1.0[AllZero]: say acme-usurper[AllZero]",
    ),
    Case(
        "acme-one",
        "Clashing",
        rule("Clashing"),
        "conflict",
        "Clashing is claimed by acme-two==1.0[Clashing] too: say acme-one[Clashing]",
    ),
    Case(
        "acme-two",
        "Clashing",
        rule("Clashing"),
        "conflict",
        "Clashing is claimed by acme-one==1.0[Clashing] too: say acme-two[Clashing]",
    ),
]
UNUSABLE = [case for case in CASES if case.state in ("broken", "incompatible")]
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.distribution)


class Crowd(NamedTuple):
    """An environment with every case installed, and what each command said in it."""

    environment: Environment
    trial: str
    plugins: Done
    timings: Done
    rules: Done
    run: Done

    def row(self, case: Case) -> dict[str, Any]:
        (found,) = [row for row in json.loads(self.plugins.out) if row["disable"] == case.key]
        return found  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    folder = tmp_path_factory.mktemp("crowd")
    environment = Environment(folder / "venv")
    environment.install(*(case.wheel(folder / "wheels") for case in CASES))
    trial = write_trial(folder / "trial", {0: {"gradient/a": 1.0}})
    commands = [
        ["plugins", "--load", "--format", "json"],
        ["plugins", "--timings"],
        ["rules", "--format", "json"],
        ["run", trial, "--format", "json"],
    ]
    started = [environment.start(*command) for command in commands]  # at once: one of them sleeps for long
    return Crowd(environment, trial, *map(finished, started))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment in which nothing is broken."""
    return Environment(tmp_path_factory.mktemp("venv"))


@each
def test_plugins_says_what_became_of_each(crowd: Crowd, case: Case) -> None:
    row = crowd.row(case)
    kind = "hooks" if case.group == "smdbg.plugins" else "rule"
    module = case.module or case.distribution.replace("-", "_")
    assert row == {
        "distribution": case.distribution,
        "version": "1.0",
        "name": case.name,
        "entry_point": module if kind == "hooks" else f"{module}:{case.name}",
        "kind": kind,
        "state": case.state,
        "cause": case.cause,
        "disable": case.key,
    }
    (line,) = [line for line in crowd.timings.out.splitlines() if case.key in line.split()]
    assert line.endswith(f"{case.state}: {case.cause}" if case.cause else case.state)


def test_listing_is_no_failure_and_can_be_compared(crowd: Crowd) -> None:
    assert [done.status for done in (crowd.plugins, crowd.timings, crowd.rules, crowd.run)] == [0] * 4
    rows = json.loads(crowd.plugins.out)
    assert [row["distribution"] for row in rows] == sorted(row["distribution"] for row in rows)
    assert str(crowd.environment.site) not in crowd.plugins.out
    ours = [row for row in rows if row["distribution"].startswith("smdbg-")]
    assert len(ours) == 39
    assert {row["state"] for row in ours} == {"loaded"}


@each
def test_rules_lists_what_works_and_names_the_rest(crowd: Crowd, case: Case) -> None:
    listed = {row["plugin"]: row["name"] for row in json.loads(crowd.rules.out)}
    identity = f"{case.distribution}==1.0[{case.name}]"
    if case.state == "loaded":
        assert listed[identity] == case.name
    elif case.state == "conflict":
        assert listed[identity] == case.key
    elif case.group == "smdbg.rules":
        assert identity not in listed
        assert f"warning: {identity}: {case.cause}" in crowd.rules.err.splitlines()


@each
def test_run_loses_the_broken_plugin_and_nothing_else(crowd: Crowd, case: Case) -> None:
    report = json.loads(crowd.run.out)
    identity = f"{case.distribution}==1.0[{case.name}]"
    statuses = {outcome["plugin"]: outcome["status"] for outcome in report["outcomes"]}
    names = {outcome["plugin"]: outcome["name"] for outcome in report["outcomes"]}
    if case.state in ("broken", "incompatible"):
        assert identity not in statuses
        registered = "not registered: " if case.group == "smdbg.plugins" else ""
        assert f"{identity}: {registered}{case.cause}" in report["warnings"]
    else:
        assert statuses[identity] == "clean"
        assert names[identity] == (case.key if case.state == "conflict" else case.name)
    assert statuses["smdbg-builtin-rules==0.1.0[VanishingGradient]"] == "clean"
    assert "error" not in statuses.values()


def test_nothing_ends_in_a_traceback(crowd: Crowd) -> None:
    for done in (crowd.plugins, crowd.timings, crowd.rules, crowd.run):
        assert "Traceback" not in done.out + done.err


def test_what_an_import_prints_is_no_output(crowd: Crowd) -> None:
    said = ("through sys.stdout", "past its replacement", "through the descriptor", "from a child")
    for done in (crowd.plugins, crowd.timings, crowd.rules, crowd.run):
        for text in said:
            assert text in done.err
            assert text not in done.out


def test_a_slow_import_is_reported(crowd: Crowd) -> None:
    (line,) = [line for line in crowd.timings.out.splitlines() if "acme-slow[Slow]" in line]
    assert 5000 <= int(line.split()[-3]) < 60_000
    warned = "acme-slow==1.0[Slow]: importing it took "
    for done in (crowd.plugins, crowd.timings, crowd.rules):
        assert f"warning: {warned}" in done.err
    assert any(text.startswith(warned) for text in json.loads(crowd.run.out)["warnings"])


@pytest.mark.parametrize(
    "case", [case for case in UNUSABLE if case.group == "smdbg.rules"], ids=lambda case: case.distribution
)
def test_a_broken_rule_that_is_asked_for_is_named(crowd: Crowd, case: Case) -> None:
    done = crowd.environment.smdbg("run", crowd.trial, "--rule", case.key)
    assert done == (3, "", f"smdbg: {case.distribution}==1.0[{case.name}]: {case.cause}\n")


def test_broken_required_plugins_are_named(crowd: Crowd, tmp_path: Path) -> None:
    config = tmp_path / "smdbg.toml"
    required = ["acme-good", *(case.distribution for case in UNUSABLE)]
    config.write_text(f"[plugins]\nrequired = {json.dumps(required)}\n")
    done = crowd.environment.smdbg("run", crowd.trial, "--rule", "VanishingGradient", "--config", config)
    assert (done.status, done.out) == (2, "")
    assert set(done.err.splitlines()) == {
        f"smdbg: required plugin {case.distribution}==1.0[{case.name}]: {case.cause}" for case in UNUSABLE
    }


def test_a_missing_required_plugin_is_named(crowd: Crowd, tmp_path: Path) -> None:
    config = tmp_path / "smdbg.toml"
    config.write_text('[plugins]\nrequired = ["acme-good", "acme-policy"]\n')
    done = crowd.environment.smdbg("run", crowd.trial, "--config", config)
    assert (done.status, done.out) == (2, "")
    assert done.err == "smdbg: required plugins are not there: acme-policy\n"


@pytest.mark.parametrize("way", ["variable", "config"])
def test_pinned_mode_loads_nothing_else(crowd: Crowd, way: str, tmp_path: Path) -> None:
    config = tmp_path / "smdbg.toml"
    pins = ["acme-good[Working]", "VanishingGradient"]
    config.write_text("" if way == "variable" else f"[plugins]\npinned = {json.dumps(pins)}\n")
    variables = {"SMDBG_PLUGINS": ",".join(pins)} if way == "variable" else {}
    verbose = {"PYTHONVERBOSE": "1"}
    arguments = ["run", crowd.trial, "--format", "json", "--config", config]
    done = crowd.environment.smdbg(*arguments, **variables, **verbose)
    report = json.loads(done.out)
    assert [outcome["name"] for outcome in report["outcomes"]] == ["Working", "VanishingGradient"]
    assert report["warnings"] == []
    imported = {line.split("'")[1] for line in done.err.splitlines() if line.startswith("import 'acme_")}
    assert imported == {"acme_good"}
    listed = crowd.environment.smdbg("plugins", "--load", "--format", "json", "--config", config, **variables)
    states = {row["disable"]: (row["state"], row["cause"]) for row in json.loads(listed.out)}
    assert states.pop("acme-good[Working]") == ("loaded", None)
    assert states.pop("smdbg-builtin-rules[VanishingGradient]") == ("loaded", None)
    assert set(states.values()) == {("disabled", "not among the pinned plugins")}


def test_the_key_that_is_shown_disables_one_plugin(crowd: Crowd) -> None:
    broken = ",".join(case.key for case in CASES if case.distribution != "acme-good")
    done = crowd.environment.smdbg("run", crowd.trial, "--format", "json", SMDBG_DISABLE=broken)
    report = json.loads(done.out)
    assert report["warnings"] == []
    assert [o["name"] for o in report["outcomes"] if o["plugin"].startswith("acme")] == ["Working"]


@pytest.mark.parametrize("intruder", ["aaa-intruder", "zzz-intruder"])
def test_a_first_party_name_stays_with_its_owner(
    environment: Environment, tmp_path: Path, intruder: str
) -> None:
    module = intruder.replace("-", "_")
    environment.install(
        wheel(
            tmp_path,
            intruder,
            {"smdbg.rules": {"VANISHINGGRADIENT": f"{module}:VANISHINGGRADIENT"}},
            {module: rule("VANISHINGGRADIENT")},
        )
    )
    trial = write_trial(tmp_path / "trial", {0: {"gradient/a": 1.0}})
    arguments = ["run", trial, "--format", "json", "--rule"]
    owners = []
    for asked in ("vanishinggradient", f"{intruder}[VanishingGradient]"):
        (outcome,) = json.loads(environment.smdbg(*arguments, asked).out)["outcomes"]
        owners.append(outcome["plugin"])
    environment.pip("uninstall", "--yes", intruder)
    assert owners == [
        "smdbg-builtin-rules==0.1.0[VanishingGradient]",
        f"{intruder}==1.0[VANISHINGGRADIENT]",
    ]


def test_a_clash_is_the_same_in_both_orders_of_installation(environment: Environment, tmp_path: Path) -> None:
    names = ("first-dist", "second-dist")
    cases = [Case(name, "Clashing", rule("Clashing"), "conflict", None) for name in names]
    wheels = [case.wheel(tmp_path) for case in cases]
    trial = write_trial(tmp_path / "trial", {0: {"a": 1.0}})
    seen = []
    for order in permutations(wheels):
        for path in order:
            environment.install(path)
        listed = environment.smdbg("plugins", "--load", "--format", "json")
        rules = environment.smdbg("rules")
        bare = environment.smdbg("run", trial, "--rule", "Clashing")
        qualified = environment.smdbg("run", trial, "--rule", "second-dist[clashing]", "--format", "json")
        seen.append((listed, rules, bare, qualified))
        environment.pip("uninstall", "--yes", *names)
    assert seen[0] == seen[1]
    listed, rules, bare, qualified = seen[0]
    rows = [row for row in json.loads(listed.out) if row["name"] == "Clashing"]
    assert [(row["disable"], row["state"]) for row in rows] == [
        (f"{name}[Clashing]", "conflict") for name in names
    ]
    for name in names:
        assert re.search(rf"{name}\[Clashing\] +Counts nothing\.", rules.out)
    assert (bare.status, bare.out) == (3, "")
    assert (
        bare.err == "smdbg: Clashing: several plugins have this name: "
        "say first-dist[Clashing] or second-dist[Clashing]\n"
    )
    (outcome,) = json.loads(qualified.out)["outcomes"]
    assert (outcome["plugin"], outcome["status"]) == ("second-dist==1.0[Clashing]", "clean")


def test_an_upgrade_leaves_one_and_a_removed_module_is_broken(
    environment: Environment, tmp_path: Path
) -> None:
    points = {"smdbg.rules": {"Changing": "changing:Changing"}}
    for version in ("1.0", "2.0"):
        environment.install(
            wheel(tmp_path, "changing", points, {"changing": rule("Changing")}, version=version)
        )
    assert states(environment, "changing") == [("2.0", "loaded")]
    (environment.site / "changing.py").unlink()
    assert states(environment, "changing") == [("2.0", "broken")]
    environment.pip("uninstall", "--yes", "changing")


BACKEND = '''
"""A build backend for editable installs, as PEP 660 has it: a path and metadata."""
import zipfile
from pathlib import Path

INFO = "twice-1.0.dist-info"
FILES = {
    f"{INFO}/METADATA": "Metadata-Version: 2.1\\nName: twice\\nVersion: 1.0\\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    f"{INFO}/entry_points.txt": "[smdbg.rules]\\nTwice = twice:Twice\\n",
    "twice_editable.pth": f"{Path(__file__).parent / 'src'}\\n",
}

def build_editable(folder, settings=None, metadata=None):
    name = "twice-1.0-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder) / name, "w") as archive:
        for member, text in FILES.items():
            archive.writestr(member, text)
        archive.writestr(f"{INFO}/RECORD", "".join(f"{member},,\\n" for member in [*FILES, f"{INFO}/RECORD"]))
    return name
'''


@pytest.mark.parametrize("first", ["editable", "wheel"])
def test_an_editable_install_beside_a_wheel_is_one_plugin(
    environment: Environment, tmp_path: Path, first: str
) -> None:
    project = tmp_path / "project"
    info = project / "src" / "twice.egg-info"  # what setuptools leaves beside the sources
    info.mkdir(parents=True)
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: Twice\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[smdbg.rules]\nTwice = twice:Twice\n")
    (project / "src" / "twice.py").write_text(rule("Twice"))
    (project / "backend.py").write_text(BACKEND)
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    built = wheel(
        tmp_path,
        "twice",
        {"smdbg.rules": {"Twice": "twice:Twice"}},
        {"twice": rule("Twice")},
        version="2.0",
    )
    install = ("install", "--no-deps", "--no-index", "--ignore-installed")
    steps = [(*install, "--editable", project), (*install, built)]
    for arguments in steps if first == "editable" else steps[::-1]:
        environment.pip(*arguments)
    assert len(list(environment.site.glob("twice-*.dist-info"))) == 2
    found = states(environment, "twice")
    trial = write_trial(tmp_path / "trial", {0: {"a": 1.0}})
    done = environment.smdbg("run", trial, "--rule", "Twice", "--format", "json")
    for _ in range(2):
        environment.pip("uninstall", "--yes", "twice")
    assert [state for _, state in found] == ["loaded"]
    assert [outcome["status"] for outcome in json.loads(done.out)["outcomes"]] == ["clean"]


def states(environment: Environment, distribution: str) -> list[tuple[str, str]]:
    """Version and state of every plugin of a distribution."""
    rows = json.loads(environment.smdbg("plugins", "--load", "--format", "json").out)
    return [(row["version"], row["state"]) for row in rows if row["distribution"] == distribution]
