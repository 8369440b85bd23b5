"""The drop-in against the library that it replaces: what the real SDKs were seen to build, and build now."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smdbg_core.discovery.registry import Registry
from smdbg_core.errors import ConfigError, ParameterError
from smdbg_core.sagemaker import rule_configs
from smdbg_core.sagemaker.problems import RuleConfigError
from tests.core.sagemaker import drive_sdk
from tests.distributions import RULE, install

HERE = Path(__file__).parent
ORIGINAL: dict[str, Any] = json.loads((HERE / "original.json").read_text())
CASES: dict[str, Any] = ORIGINAL["cases"]
SDKS = {"sdk2": "SMDBG_SDK2_PYTHON", "core": "SMDBG_SDK_CORE_PYTHON"}
"""Variables that name the Python of an environment with an SDK, and with smdbg."""

CRASHES = "a bare Email or SMS action crashes inside the SDK"
ATTRIBUTES = "Dataloader has its arguments as attributes too; no other class has"
SHAPE = "two collections lack the shape of the others"
FAULTS = {
    "rule with Email": CRASHES,
    "rule with SMS": CRASHES,
    "config Dataloader {}": ATTRIBUTES,
    "config Dataloader (60, 150, 30000000)": ATTRIBUTES,
    "config Dataloader {'max_threshold': 300}": ATTRIBUTES,
    "collection relu_output": SHAPE,
    "collection relu_input": SHAPE,
}
"""Where the original is not followed, and why."""


def same(case: str, ours: Any) -> bool:
    """Equal to the last character and in the same order."""
    return json.dumps(ours) == json.dumps(CASES[case])


@pytest.mark.parametrize("sdk", SDKS)
def test_real_sdk_builds_the_same_requests(sdk: str, tmp_path: Path) -> None:
    python = os.environ.get(SDKS[sdk])
    if not python:
        pytest.skip(f"no SDK: {SDKS[sdk]} names the Python of an environment that has one")
    written = {}
    for source in ("original", "ours"):
        file = tmp_path / f"{source}.json"
        command = [python, "-W", "ignore", str(HERE / "drive_sdk.py"), source, sdk, str(file)]
        subprocess.run(command, check=True, capture_output=True)
        written[source] = json.loads(file.read_text())
    jobs = f"jobs of {sdk}"
    facts = {name: ORIGINAL[name] for name in ("names", "cases", "mistakes", jobs)}
    assert written["original"] == facts, "the committed facts are those of this SDK"
    assert written["ours"][jobs] == facts[jobs]
    assert set(ORIGINAL["names"]) <= set(written["ours"]["names"])
    differing = {case for case, value in written["ours"]["cases"].items() if not same(case, value)}
    assert differing == set(FAULTS)
    for action in ("Email", "SMS"):
        rule = written["ours"]["cases"][f"rule with {action}"]["rule"]
        assert rule["RuleParameters"]["action_json"] == CASES[f"action {action}"]


@pytest.mark.parametrize("name", drive_sdk.DEBUGGER)
def test_factories_equal_the_original_and_are_fresh(name: str) -> None:
    factory = getattr(rule_configs, name)
    assert same(f"config {name}", factory())
    factory()["DebugRuleConfiguration"]["RuleParameters"]["threshold"] = "1"
    assert same(f"config {name}", factory())
    assert factory.__name__ == name


@pytest.mark.parametrize("name", drive_sdk.PROFILER)
def test_profiler_classes_equal_the_original(name: str) -> None:
    config_class = getattr(rule_configs, name)
    for arguments in ({}, *drive_sdk.PROFILER[name]):
        made = config_class(*arguments) if isinstance(arguments, tuple) else config_class(**arguments)
        case = f"config {name} {arguments}"
        assert list(vars(made)) == ["rule_name", "rule_parameters"]
        assert same(case, vars(made)) or case in FAULTS
        assert made.rule_parameters == CASES[case]["rule_parameters"]


@pytest.mark.parametrize("action", drive_sdk.ACTIONS)
def test_action_strings_equal_the_original(action: str) -> None:
    assert drive_sdk.ACTIONS[action](rule_configs).serialize() == CASES[f"action {action}"]


@pytest.mark.parametrize("name", drive_sdk.COLLECTIONS)
def test_collections_equal_the_original(name: str) -> None:
    ours = rule_configs.get_collection(name)
    if f"collection {name}" in FAULTS:
        assert ours is not None
        assert ours["CollectionParameters"] == CASES[f"collection {name}"]
    else:
        assert ours == CASES[f"collection {name}"]


def test_every_public_name_is_there() -> None:
    modules = {"actions", "debugger_rules", "profiler_rules"}
    for name in set(ORIGINAL["names"]) - modules:
        assert getattr(rule_configs, name) is getattr(rule_configs, name)
        assert name in dir(rule_configs)
    assert "Dataloader" in dir(rule_configs)
    with pytest.raises(AttributeError, match="did you mean 'vanishing_gradient'"):
        rule_configs.vanishing_gradients  # noqa: B018


def test_third_party_rules_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = RULE.format(name="SharpTurn").replace(
        'group = "custom"', 'collections_to_save = (Collection("turns", "turn.*", 10),)'
    )
    source = source.replace("import Reads", "import Collection, Reads")
    install(tmp_path, "acme", {"SharpTurn": "acme_turns:SharpTurn"}, modules={"acme_turns": source})
    monkeypatch.syspath_prepend(tmp_path)
    with Registry().active():
        assert "sharp_turn" in dir(rule_configs)
        assert rule_configs.sharp_turn() == {
            "DebugRuleConfiguration": {
                "RuleConfigurationName": "SharpTurn",
                "RuleParameters": {"rule_to_invoke": "SharpTurn"},
            },
            "CollectionConfigurations": [
                {
                    "CollectionName": "turns",
                    "CollectionParameters": {"include_regex": "turn.*", "save_interval": "10"},
                }
            ],
        }
    vars(rule_configs).pop("sharp_turn")


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("CPUBottleneck", {"threshold": 200}, "threshold=200: out of range"),
        ("CPUBottleneck", {"patience": -1}, "patience=-1"),
        ("CPUBottleneck", {"patience": 0.5}, "not a whole number"),
        ("CPUBottleneck", {"patience": True}, "a boolean, not a number"),
        ("CPUBottleneck", {"threshold": "30"}, "text, where a value of its own type is needed"),
        ("CPUBottleneck", {"window": 3}, "window"),
        ("CPUBottleneck", {"nothing": 3}, "nothing"),
        ("Dataloader", {"min_threshold": 250, "max_threshold": 100}, "is above max_threshold"),
        ("StepOutlier", {"mode": 3}, "int, not text"),
        ("ProfilerReport", {"CPUBottleneckthreshold": 30}, "does not follow"),
        ("ProfilerReport", {"BadRule_threshold": 30}, "BadRule"),
        ("ProfilerReport", {"CPUBottleneck_bad_param": 30}, "bad_param"),
        ("ProfilerReport", {"CPUBottleneck_threshold": 200}, "out of range"),
        ("ProfilerReport", {"CPUBottleneck_threshold": "30"}, "text, where a value"),
        ("ProfilerReport", {"opt_out_telemetry": "False"}, "text, where a value"),
        ("ProfilerReport", {"StepOutlier_stddev": 4, "stepoutlier_stddev": 6}, "are one parameter"),
    ],
)
def test_mistakes(name: str, arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RuleConfigError) as caught:
        getattr(rule_configs, name)(**arguments)
    assert complaint in str(caught.value)
    for kind in (AssertionError, TypeError, ValueError, ParameterError):
        assert isinstance(caught.value, kind)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


TAKEN = {
    "CPUBottleneck(patience=0.5)",
    "CPUBottleneck(patience=True)",
    "StepOutlier(mode='SLEEP')",
    "ProfilerReport(two spellings)",
    "StopTraining(70 characters)",
    "SMS('+0')",
}
"""Mistakes that the original lets pass; `docs/sagemaker.md` lists them among the faults."""


@pytest.mark.parametrize("name", drive_sdk.MISTAKES)
def test_what_catches_the_exceptions_of_the_original_catches_ours(name: str) -> None:
    ours = drive_sdk.mistake(lambda: drive_sdk.MISTAKES[name](rule_configs))
    assert ours
    theirs = ORIGINAL["mistakes"][name]
    assert set(theirs) <= set(ours)
    assert (not theirs) == (name in TAKEN)


def test_all_mistakes_of_a_call_are_reported_together() -> None:
    with pytest.raises(RuleConfigError) as caught:
        rule_configs.BatchSize(window="x", patience=-1)
    assert len(caught.value.problems) == 2


def test_positional_in_declared_order_and_kept_as_given() -> None:
    made = rule_configs.StepOutlier(2.0, "EVAL")
    assert made.rule_parameters == {
        "stddev": 2.0,
        "mode": "EVAL",
        "n_outliers": 10,
        "scan_interval_us": 60_000_000,
        "rule_to_invoke": "StepOutlier",
    }
    assert isinstance(made.rule_parameters["stddev"], float)
    assert list(inspect.signature(rule_configs.StepOutlier).parameters) == list(made.rule_parameters)[:-1]
    with pytest.raises(RuleConfigError, match="too many positional"):
        rule_configs.OverallSystemUsage(1, 2)


def test_validation_without_assertions() -> None:
    code = (
        "from smdbg_core.sagemaker import rule_configs as c\n"
        "for call in (lambda: c.CPUBottleneck(threshold=900), lambda: c.CPUBottleneck(patience=-1),\n"
        "             lambda: c.SMS('5'), lambda: c.ProfilerReport(x=1)):\n"
        "    try:\n        call()\n    except AssertionError:\n        print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n" * 4


@pytest.mark.parametrize("given", [True, False])
def test_telemetry_is_sent_only_when_given(given: bool) -> None:
    made = rule_configs.ProfilerReport(opt_out_telemetry=given)
    assert made.rule_parameters == {"opt_out_telemetry": given, "rule_to_invoke": "ProfilerReport"}


@pytest.fixture
def modules() -> Iterator[None]:
    """The module table as it was."""
    before, names = dict(sys.modules), dict(vars(rule_configs))
    for name in [name for name in sys.modules if name.partition(".")[0] == "smdebug_rulesconfig"]:
        del sys.modules[name]
    yield
    sys.modules.clear()
    sys.modules.update(before)
    vars(rule_configs).clear()
    vars(rule_configs).update(names)


@pytest.mark.usefixtures("modules")
def test_install() -> None:
    rule_configs.install()
    rule_configs.install()
    import smdebug_rulesconfig
    from smdebug_rulesconfig.actions.actions import StopTraining
    from smdebug_rulesconfig.debugger_rules.builtin_rules import dead_relu
    from smdebug_rulesconfig.profiler_rules.rules import Dataloader

    assert smdebug_rulesconfig is rule_configs
    assert (StopTraining, dead_relu, Dataloader) == (
        rule_configs.StopTraining,
        rule_configs.dead_relu,
        rule_configs.Dataloader,
    )
    assert set(ORIGINAL["names"]) <= set(dir(rule_configs))


@pytest.mark.usefixtures("modules")
def test_install_after_the_original_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "smdebug_rulesconfig", type(sys)("smdebug_rulesconfig"))
    with pytest.raises(ConfigError, match="before the SDK is imported"):
        rule_configs.install()
