"""Rules written for smdebug, of every kind that is met in the field."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core import ConfigError, Outcome, ParameterError, PluginError, RuleConfig, evaluate
from tests.builders import write_trial
from tests.command import Command

RULES = '''
import numpy as np
from smdebug import modes
from smdebug.exceptions import (
    NoMoreData, RuleEvaluationConditionMet, StepUnavailable, TensorUnavailable, TensorUnavailableForStep,
)
from smdebug.rules.rule import Rule
from smdebug.rules import invoke_rule
from smdebug.trials import create_trial
from smdebug.analysis.utils import no_refresh
import smdebug.pytorch as smd


class SmallGradients(Rule):
    """One argument for the base, text for a threshold, a reduction, a collection."""

    def __init__(self, base_trial, threshold="0.01"):
        super().__init__(base_trial)
        self.threshold = float(threshold)

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(collection="gradients"):
            if self.base_trial.tensor(name).reduction_value(step, "mean", abs=True) < self.threshold:
                return True
        return False


class RisingLoss(Rule):
    """Three arguments for the base, looks back, a mode, numpy."""

    def __init__(self, base_trial, action_str, patience=2, other_trials=None):
        super().__init__(base_trial, action_str, other_trials)
        self.patience = patience
        self.logger.info("made")

    def invoke_at_step(self, step):
        mode, mode_step = self.base_trial._global_to_mode[step]
        if mode != modes.TRAIN:
            return False
        for name in self.base_trial.tensor_names(regex=".*loss"):
            tensor = self.base_trial.tensor(name)
            steps = tensor.prev_steps(mode_step, self.patience + 1, mode=modes.TRAIN)
            values = [float(np.mean(tensor.value(s, mode=modes.TRAIN))) for s in steps]
            if len(values) > self.patience and all(b > a for a, b in zip(values, values[1:])):
                return True
        return False


class Required(Rule):
    """Says what it needs."""

    def __init__(self, base_trial, name):
        super().__init__(base_trial, other_trials=None)
        self.name = name

    def set_required_tensors(self, step):
        self.req_tensors.add(self.name, steps=[step])

    def invoke_at_step(self, step):
        for tensor in self.req_tensors.get():
            assert self.req_tensors.get_tensor_steps(tensor.name) == [step]
            if np.isnan(tensor.value(step_num=step, worker=None)).any():
                raise RuleEvaluationConditionMet(self.rule_name, step, end_of_rule=True)


class Collector(Rule):
    """Only collects."""

    def __init__(self, base_trial):
        super().__init__(base_trial)
        self.seen = []

    def invoke_at_step(self, step):
        from smdebug.core.tensor import StepState
        assert self.base_trial.has_passed_step(step) == StepState.AVAILABLE
        assert self.base_trial.has_passed_step(step + 1000) != StepState.AVAILABLE
        self.seen.append(step)
        assert self.base_trial.steps() == self.seen
        assert self.base_trial.workers() == ["worker_0"]
        with no_refresh(self.trials):
            return False


class NoRuleAtAll:
    """Does not derive from Rule."""

    def __init__(self, base_trial, limit=5):
        self.base_trial = base_trial
        self.limit = limit

    def invoke_at_step(self, step):
        tensor = self.base_trial.tensor("a.weight")
        return [None] * self.limit and tensor.shape(step) == (2, 2) and tensor.value(step).max() > self.limit


class Future(Rule):
    def invoke_at_step(self, step):
        assert max(self.base_trial.steps()) == step
        assert "later" not in self.base_trial.tensor_names() or step >= 4
        self.base_trial.tensor("a.weight").value(step + 1)


class Compared(Rule):
    def __init__(self, base_trial, other_trials=None):
        super().__init__(base_trial, other_trials=other_trials)

    def invoke_at_step(self, step):
        other = self.other_trials[0].tensor("a.weight").value(step)
        return not np.allclose(other, self.base_trial.tensor("a.weight").value(step))


class Profiled(Rule):
    def invoke(self, step):
        self.base_trial.wait_for_data(1, 0)

    def invoke_at_step(self, step):
        pass


class Raises(Rule):
    def invoke_at_step(self, step):
        return 1 / 0


class Answers(Rule):
    """Asks everything, and compares with what must come."""

    def __init__(self, base_trial, start_step=2, names=("a.weight",), table=np.zeros(2), **more):
        super().__init__(base_trial)
        self.start_step = start_step
        self.names = names

    def invoke_at_step(self, step):
        trial = self.base_trial
        assert self.start_step == 2 and self.names == ("a.weight",)
        assert trial.name == "trial" and trial.num_workers == 1 and trial.worker_set == {"worker_0"}
        weight = trial.tensor("a.weight")
        assert list(weight.values()) == trial.steps() == weight.steps()
        assert weight.workers(step) == ["worker_0"]
        assert weight.reduction_values(step) == {}
        if step:
            assert weight.reduction_value(step, "l2") == 2.0 * step
            assert weight.reduction_value(step, "variance") == 0
            assert weight.prev_steps(step, 2) == [step - 1, step]
        try:
            weight.value(step, worker="worker_9")
            raise SystemError
        except Exception as error:
            assert type(error).__name__ == "InvalidWorker" and error.worker == "worker_9"
        try:
            weight.reduction_value(step, "mode")
            raise SystemError
        except ValueError:
            pass
        assert trial.has_tensor("later") == (step >= 4)
        assert ("later" in trial.tensor_names(mode=modes.EVAL)) == (step == 5)
        assert trial.tensor_names(mode=modes.PREDICT) == []
        assert modes.EVAL in trial.modes() or step < 5
        assert trial.global_step(modes.TRAIN, 0) == 0
        assert trial.mode_modestep(step) == trial._global_to_mode[step]
        mine = trial.collection("mine")
        mine.include("weight$")
        mine.add_tensor_name("gradient/a")
        assert trial.tensor_names(collection="mine") == ["a.weight", "gradient/a"]
        assert trial.inputs(step) == [] and trial.labels(step) == []
        self.req_tensors.clear()
        self.req_tensors.add("a|g", steps=[step], should_match_regex=True)
        assert self.req_tensors.get_names() == ["a.weight", "gradient/a"]
        return False


class Ended(Rule):
    def invoke_at_step(self, step):
        if step == 3:
            raise NoMoreData(99, modes.GLOBAL, step)


class Invoked(Rule):
    """Runs another rule as notebooks do."""

    def invoke_at_step(self, step):
        inner = Collector(create_trial(self.base_trial.path))
        inner.invoke_at_step = lambda at: inner.seen.append(at)
        try:
            invoke_rule(inner)
        except NoMoreData:
            pass
        return len(inner.seen) == 6
'''


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "custom_rules.py"
    file.write_text(RULES)
    return file


@pytest.fixture
def trial(tmp_path: Path) -> str:
    steps: dict[int, Any] = {}
    losses = [5.0, 4.0, 4.5, 5.0, 6.0, 1.0]
    for step in range(6):
        content = {
            "gradient/a": np.full((2, 2), 1e-4 if step in (1, 2, 4) else 1.0),
            "a.weight": np.full((2, 2), float(step)),
            "my_loss": np.array(losses[step]),
        }
        if step >= 4:
            content["later"] = np.array([np.nan if step == 5 else 0.0])
        steps[step] = ("EVAL" if step == 5 else "TRAIN", content)
    return write_trial(tmp_path / "trial", steps)


@pytest.fixture
def judge(rules: Path, trial: str) -> Callable[..., Outcome]:
    def run(rule: str, **parameters: Any) -> Outcome:
        config = RuleConfig(rule, parameters=parameters, file=f"{rules}:{rule}")
        return evaluate(trial, [config]).outcomes[0]

    return run


def places(outcome: Outcome) -> list[tuple[int | None, int | None]]:
    return [(finding.step, finding.last_step) for finding in outcome.findings]


def test_a_condition_is_an_episode_and_says_what_was_looked_at(judge: Callable[..., Outcome]) -> None:
    outcome = judge("SmallGradients")
    assert (outcome.status, places(outcome)) == ("fired", [(1, 2), (4, 4)])
    assert "gradient/a" in outcome.findings[0].message
    assert outcome.coverage.points == 6
    assert judge("SmallGradients", threshold="0.00001").status == "clean"
    assert judge("SmallGradients", threshold=0.00001).status == "clean"


def test_it_looks_back_within_a_mode(judge: Callable[..., Outcome]) -> None:
    assert places(judge("RisingLoss")) == [(3, 4)]
    assert places(judge("RisingLoss", patience="1")) == [(2, 4)]
    assert judge("RisingLoss", patience=4).status == "clean"


def test_required_tensors_decide_which_steps_are_judged(judge: Callable[..., Outcome]) -> None:
    outcome = judge("Required", name="later")
    assert places(outcome) == [(5, 5)]
    assert outcome.coverage.skipped == {"not saved: TensorUnavailable": 4}
    nothing = judge("Required", name="nowhere")
    assert nothing.status == "not_evaluated"
    assert "TensorUnavailable" in (nothing.reason or "")


def test_kinds_of_the_field(judge: Callable[..., Outcome], trial: str) -> None:
    assert judge("Collector").status == "clean"
    assert places(judge("NoRuleAtAll", limit="4")) == [(5, 5)]
    assert judge("NoRuleAtAll").status == "clean"
    assert judge("Invoked").status == "fired"


def test_the_future_is_not_seen(judge: Callable[..., Outcome]) -> None:
    outcome = judge("Future")
    assert outcome.status == "error"
    assert "StepNotYetAvailable" in (outcome.reason or "")


def test_other_trials(judge: Callable[..., Outcome], trial: str, tmp_path: Path) -> None:
    assert judge("Compared", other_trials=trial).status == "clean"
    steps = {step: ("TRAIN", {"a.weight": np.full((2, 2), 2.0)}) for step in range(6)}
    other = write_trial(tmp_path / "other", steps)
    assert judge("Compared", other_trials=other).status == "fired"


def test_errors_name_the_place(judge: Callable[..., Outcome], rules: Path) -> None:
    outcome = judge("Raises")
    assert outcome.status == "error"
    assert "ZeroDivisionError" in (outcome.reason or "")
    assert "custom_rules.py" in (outcome.reason or "")


def test_what_cannot_be_adapted_says_so(judge: Callable[..., Outcome], rules: Path, trial: str) -> None:
    with pytest.raises(ConfigError, match=r"overrides `invoke`.*write a ProfilerRule"):
        judge("Profiled")
    with pytest.raises((ConfigError, ParameterError), match=r"treshold.*threshold"):
        judge("SmallGradients", treshold="1")
    with pytest.raises((ConfigError, ParameterError), match="patience"):
        judge("RisingLoss", patience="many")
    rules.write_text("from smdebug.profiler.analysis import MetricsHistogram\n")
    with pytest.raises(Exception, match=r"no module 'smdebug.profiler'; of smdebug there are"):
        judge("SmallGradients")


def test_nothing_of_it_is_left_behind(judge: Callable[..., Outcome]) -> None:
    installed = type(sys)("smdebug")
    sys.modules["smdebug"] = installed
    try:
        judge("SmallGradients")
        assert sys.modules["smdebug"] is installed
    finally:
        del sys.modules["smdebug"]
    judge("SmallGradients")
    assert [name for name in sys.modules if name.partition(".")[0] == "smdebug"] == []
    with pytest.raises(ImportError):
        __import__("smdebug")


def test_from_the_command_line(rules: Path, trial: str, capsys: pytest.CaptureFixture[str]) -> None:
    smdbg = Command(capsys)
    done = smdbg(
        "run", trial, "--rule", f"{rules}:SmallGradients", "--param", "SmallGradients.threshold=1e-9"
    )
    assert done.status == 0, done.err
    done = smdbg("run", trial, "--rule", f"{rules}:SmallGradients")
    assert done.status == 1
    assert "the condition of SmallGradients is met" in done.out.replace("\n    ", " ")
    code = f"from smdbg_core.cli.main import main; main(['run', {trial!r}, '--rule', '{rules}:RisingLoss'])"
    process = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (1, "")


def test_every_question_is_answered(judge: Callable[..., Outcome]) -> None:
    outcome = judge("Answers")
    assert (outcome.status, outcome.coverage.points) == ("clean", 6), outcome.traceback
    assert judge("Ended").coverage.skipped == {"the rule ended itself: NoMoreData": 1}
    assert judge("Ended").coverage.points == 3


def test_names_that_are_not_offered_say_what_is(judge: Callable[..., Outcome], rules: Path) -> None:
    rules.write_text("from smdebug.pytorch import SaveConfig\n")
    with pytest.raises(PluginError, match=r"cannot import SaveConfig from smdebug.pytorch: here it has Coll"):
        judge("Answers")


def test_an_adapted_rule_lives_like_any_other(
    rules: Path, trial: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "smdbg.toml"
    config.write_text(
        '[[rules]]\nfile = "custom_rules.py:SmallGradients"\nname = "small"\nthreshold = 1e-3\n'
    )
    smdbg = Command(capsys)
    done = smdbg("run", trial, "--config", config, "--follow", "--poll", "0.05", "--format", "json")
    assert json.loads(done.out)["outcomes"][0]["name"] == "small"
    assert json.loads(done.out)["outcomes"][0]["status"] == "fired"
    (first,) = json.loads(smdbg("run", trial, "--config", config, "--stop-on-first", "--format", "json").out)[
        "outcomes"
    ][0]["findings"]
    assert (first["step"], first["count"]) == (1, 1)
