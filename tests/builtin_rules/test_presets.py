"""The recommended values of all rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from smdbg_core import Registry, TensorRule, evaluate
from tests.builtin_rules.test_trials import EXPECTED
from tests.detection.judging import PARAMETERS

RULES = [
    Registry().load(spec).object for spec in Registry().rules() if spec.distribution == "smdbg-builtin-rules"
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_presets_are_valid(rule: type[TensorRule]) -> None:
    assert rule.presets.keys() <= {"recommended"}
    for values in rule.presets.values():
        made = rule(**values)
        for name, value in values.items():
            assert made.parameters[name] == value, "in its final form"
            assert not made.is_default(name)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_presets_keep_the_names_of_other_frameworks(rule: type[TensorRule]) -> None:
    for values in rule.presets.values():
        assert not [name for name in values if rule.__parameters__[name].meta.also]


def test_the_healthy_network_is_clean(shared_data: Path) -> None:
    report = evaluate(shared_data / "trials/healthy_mlp", parameters=PARAMETERS, preset="recommended")
    assert [outcome.name for outcome in report.fired] == []
    assert len(report.outcomes) >= 21


@pytest.mark.parametrize("trial", ["vanishing_gradient", "exploding"])
def test_sick_networks_still_fire(shared_data: Path, trial: str) -> None:
    report = evaluate(shared_data / "trials" / trial, parameters=PARAMETERS, preset="recommended")
    fired = {outcome.name for outcome in report.fired}
    assert fired & EXPECTED[trial]
    assert [outcome.name for outcome in report.outcomes if outcome.status == "error"] == []
