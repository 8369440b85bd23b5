"""Presets: values that rules bring along, below what is given and above the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest

from smdbg_core import (
    ConfigError,
    Finding,
    Meta,
    Reads,
    Regex,
    RuleConfig,
    StepView,
    TensorRule,
    evaluate,
)
from tests.builders import write_trial


class Level(TensorRule):
    """Fires above a level."""

    presets: ClassVar = {"recommended": {"level": 5, "names": "a"}, "strict": {"level": 0.5}}

    level: Annotated[float, Meta(description="Largest mean.", aliases=("limit",))] = 1.0
    names: tuple[Regex, ...] = ()

    def reads(self) -> Reads:
        return Reads(everything=True, statistics=("mean",))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            yield from self.judge(tensor, "mean", tensor.statistics.mean, ">", self.level)


@pytest.fixture
def trial(tmp_path: Path) -> str:
    return write_trial(tmp_path / "trial", {0: {"a": 2.0}})


def parameters(trial: str, rule: Any, **options: Any) -> dict[str, Any]:
    (outcome,) = evaluate(trial, [rule], **options).outcomes
    return outcome.parameters


def test_values_of_a_preset_take_effect_and_are_reported(trial: str) -> None:
    assert evaluate(trial, [Level]).outcomes[0].status == "fired"
    (outcome,) = evaluate(trial, [Level], preset="recommended").outcomes
    assert outcome.status == "clean"
    assert (outcome.parameters["level"], outcome.parameters["names"]) == (5.0, ("a",))
    assert parameters(trial, Level, preset="strict")["level"] == 0.5


@pytest.mark.parametrize("spelling", ["level", "LEVEL", "limit"])
def test_what_is_given_counts_more_however_it_is_spelt(trial: str, spelling: str) -> None:
    given = {"Level": {spelling: 3}}
    found = parameters(trial, Level, parameters=given, preset="recommended")
    assert (found["level"], found["names"]) == (3.0, ("a",))


def test_objects_stay_as_they_are(trial: str) -> None:
    assert parameters(trial, Level(), preset="strict")["level"] == 1.0


def test_configurations_and_files_take_part(trial: str, tmp_path: Path) -> None:
    config = RuleConfig("VanishingGradient", parameters={"patience": 7})
    found = parameters(trial, config, preset="recommended")
    assert (found["patience"], found["ratio_threshold"]) == (7, 1e-4)
    (tmp_path / "mine.py").write_text(
        "from smdbg_core import Reads, TensorRule\n"
        "class Mine(TensorRule):\n"
        "    presets = {'house': {'start_step': 3}}\n"
        "    def reads(self): return Reads(everything=True)\n"
        "    def evaluate(self, step): return iter(())\n"
    )
    mine = RuleConfig("Mine", file=f"{tmp_path}/mine.py:Mine")
    assert parameters(trial, mine, preset="house")["start_step"] == 3


def test_a_rule_without_the_preset_keeps_its_defaults(trial: str) -> None:
    assert parameters(trial, "ExplodingTensor", preset="recommended")["only_nan"] is False


def test_an_unknown_preset_is_a_mistake(trial: str) -> None:
    with pytest.raises(ConfigError, match="no preset 'recomended'; there are recommended, strict"):
        evaluate(trial, [Level], preset="recomended")
    with pytest.raises(ConfigError, match=r"there are recommended$"):
        evaluate(trial, preset="mild")


@pytest.mark.parametrize(
    ("values", "says"), [({"levle": 1}, "no parameter 'levle'"), ({"level": "high"}, "level='high'")]
)
def test_a_preset_that_cannot_work_is_refused_at_class_creation(values: dict[str, object], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        type("Wrong", (Level,), {"presets": {"recommended": values}, "__annotations__": {}})


def test_required_parameters_may_be_left_to_the_user() -> None:
    class Demanding(Level):
        """Fires above a level that has no default."""

        presets: ClassVar = {"recommended": {"names": "a"}}
        level: float

    assert Demanding(level=1).level == 1
