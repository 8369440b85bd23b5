"""All rules over every shared trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from smdbg_core import Registry, evaluate

EXPECTED = {
    "vanishing_gradient": {"VanishingGradient", "WeightUpdateRatio", "PoorWeightInitialization"},
    "exploding": {"ExplodingTensor", "LossNotDecreasing", "WeightUpdateRatio"},
    "xgb_basic": {"FeatureImportanceOverweight", "Overfit"},
    "dtypes": {"ExplodingTensor"},
}
TRIALS = [
    "corrupt_events",
    "corrupt_index_truncated",
    "dtypes",
    "exploding",
    "healthy_mlp",
    "no_end_marker",
    "reductions_only",
    "save_all_step0",
    "tf_mirrored_style",
    "two_workers",
    "vanishing_gradient",
    "xgb_basic",
]
CORE = ["AllZero", "ExplodingTensor", "LossNotDecreasing", "UnchangedTensor", "VanishingGradient"]


def test_all_rules_are_installed() -> None:
    assert len([spec for spec in Registry().rules() if spec.distribution == "smdbg-builtin-rules"]) == 21


@pytest.mark.parametrize("trial", TRIALS)
def test_no_rule_fails(shared_data: Path, trial: str) -> None:
    report = evaluate(shared_data / "trials" / trial)
    assert len(report.outcomes) >= 21
    assert [outcome.name for outcome in report.outcomes if outcome.status == "error"] == []
    assert {outcome.name for outcome in report.fired} >= EXPECTED.get(trial, set())


def test_the_healthy_network_is_healthy(shared_data: Path) -> None:
    parameters = {name: {"collection_names": "weights"} for name in ("AllZero", "UnchangedTensor")}
    report = evaluate(shared_data / "trials/healthy_mlp", CORE, parameters=parameters)
    assert {outcome.status for outcome in report.outcomes} == {"clean"}


def test_first_layers_vanish(shared_data: Path) -> None:
    (outcome,) = evaluate(shared_data / "trials/vanishing_gradient", ["VanishingGradient"]).outcomes
    assert {"gradient/MLP_fc1.weight", "gradient/MLP_fc1.bias"} <= {
        finding.subject for finding in outcome.findings
    }


def test_the_first_infinity_is_named(shared_data: Path) -> None:
    (outcome,) = evaluate(shared_data / "trials/exploding", ["ExplodingTensor"]).outcomes
    first = outcome.findings[0]
    assert (first.subject, first.step, first.message) == (
        "MSELoss_output_0",
        39,
        "0 NaN and 1 infinite elements",
    )


def test_each_damaged_file_is_named_once(shared_data: Path) -> None:
    report = evaluate(shared_data / "trials/corrupt_events", CORE[1:2])
    damaged = [warning.split()[1].rstrip(":") for warning in report.warnings]
    assert len(damaged) == len(set(damaged)) == 10
    assert report.outcomes[0].coverage.points == 138
