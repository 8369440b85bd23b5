"""One healthy and one faulty training, from recipe to table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from smdbg_core import open_trial
from tests.detection.boosting import BoostedInjection, boost, boosted_recipe
from tests.detection.faults import FAULTS
from tests.detection.recipes import recipe_of
from tests.detection.report import embed, recommended, render, to_json
from tests.detection.runs import Judged, judge_faulty, judge_healthy
from tests.detection.training import Injection, train

SMALL = {"samples": 600, "epochs": 6, "saved_steps": 20}


def test_a_healthy_and_a_faulty_run_end_to_end() -> None:
    recipe = replace(recipe_of("tuning", 0, "plain"), classes=4, **SMALL)
    ((defaults, recommended),), dropped = judge_healthy(recipe)
    assert (defaults.fault, recommended.fired, dropped.total()) == (None, frozenset(), 0)
    fault = next(one for one in FAULTS if one.name == "optimiser step skipped")
    verdicts = judge_faulty(fault, "tuning", 0)
    assert verdicts is not None
    assert all(verdict.fired & set(fault.rules) for verdict in verdicts)
    judged = Judged(tuple([one] for one in verdicts), dropped)
    text = render(judged, "tuning")
    assert "| optimiser step skipped | LossNotDecreasing, UnchangedTensor, WeightUpdateRatio | 1.00" in text
    assert json.loads(to_json(judged, "tuning"))["settings"]["recommended"]["recall"]["hits"] == 1


def test_what_the_oracle_cannot_label_is_left_out_and_counted() -> None:
    recipe = replace(recipe_of("tuning", 0, "plain"), rate=0.0, **SMALL)
    found, dropped = judge_healthy(recipe)
    assert (found, dict(dropped)) == ([], {"healthy: plain": 1})


def test_recordings_look_like_those_of_the_pytorch_hook(tmp_path: Path) -> None:
    recipe = replace(
        recipe_of("tuning", 0, "frozen backbone by intent"), activation="relu", records="labels", **SMALL
    )
    train(recipe, Injection(), tmp_path / "run")
    trial = open_trial(str(tmp_path / "run"))
    names = trial.tensor_names()
    assert {"Net_fc1.weight", "relu1_input_0", "relu1_output_0", "CrossEntropyLoss_output_0"} <= set(names)
    assert "gradient/Net_fc1.weight" not in names, "frozen by intent"
    assert "gradient/Net_fc2.weight" in names
    assert trial.tensor_names(collection="losses") == ["CrossEntropyLoss_output_0"]
    assert trial.steps(mode="EVAL")


def test_boosting_is_recorded_with_its_trees(tmp_path: Path) -> None:
    pytest.importorskip("xgboost")
    recipe = replace(boosted_recipe("tuning", 0), rounds=6, every=2)
    assert boost(recipe, BoostedInjection(), tmp_path / "run") > 0.3
    trial = open_trial(str(tmp_path / "run"))
    assert {"trees/Node", "trees/ID", "labels", "predictions"} <= set(trial.tensor_names())
    assert trial.steps() == [0, 2, 4]


def test_tables_go_between_the_markers_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "detection.md").read_text(encoding="utf-8")
    changed = embed(page, "| a |")
    assert "| a |" in changed
    assert embed(changed, "| b |") == embed(page, "| b |")
    assert recommended() in page, "out of date: run make detection"
    with pytest.raises(ValueError, match="no <!-- begin"):
        embed("nothing", "")
