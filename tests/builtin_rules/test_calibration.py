"""The facts that public outputs of the service's jobs pin, with schedules made up to match them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from smdbg_builtin_rules.class_imbalance import ClassImbalance
from smdbg_builtin_rules.confusion import Confusion
from smdbg_builtin_rules.loss_not_decreasing import LossNotDecreasing
from smdbg_builtin_rules.overfit import Overfit
from smdbg_builtin_rules.overtraining import Overtraining
from smdbg_builtin_rules.poor_weight_initialization import PoorWeightInitialization
from smdbg_builtin_rules.vanishing_gradient import VanishingGradient
from smdbg_builtin_rules.weight_update_ratio import WeightUpdateRatio
from smdbg_core import TensorRule, TrialWriter, evaluate

Schedule = Iterator[tuple[int, str, int]]


def schedule(epochs: int, train: int, evaluation: int, every_train: int, every_eval: int) -> Schedule:
    """Global step, mode and mode step of the saved steps of a job."""
    seen = {"TRAIN": 0, "EVAL": 0}
    step = 0
    for _ in range(epochs):
        for mode, length, every in (("TRAIN", train, every_train), ("EVAL", evaluation, every_eval)):
            for _ in range(length):
                if seen[mode] % every == 0:
                    yield step, mode, seen[mode]
                seen[mode] += 1
                step += 1


def first_firing(
    folder: Path, rule: TensorRule, tensors: Any, steps: Schedule
) -> tuple[int, str, int] | None:
    """Where the rule fires first: global step, mode and mode step."""
    with TrialWriter(folder) as writer:
        for step, mode, mode_step in steps:
            with writer.step(step, mode=mode, mode_step=mode_step) as one:
                for name, value in tensors(step, mode, mode_step).items():
                    one.add(name, value)
    (outcome,) = evaluate(folder, [rule], stop_on_first=True).outcomes
    if not outcome.findings:
        return None
    first = min(outcome.findings, key=lambda finding: finding.step or 0)
    return first.step or 0, str(first.mode), first.mode_step or 0


def gap_in_phase(number: int, train: int) -> Any:
    """Losses that are equal in training and evaluation before the evaluation phase `number`."""

    def tensors(step: int, mode: str, mode_step: int) -> dict[str, Any]:
        late = mode == "EVAL" and step >= number * train
        return {"CrossEntropyLoss_output_0": np.float64(1.2 if late else 1.0)}

    return tensors


def test_o1_overfit_at_the_first_training_step_after_the_second_evaluation(tmp_path: Path) -> None:
    steps = schedule(5, 1875, 100, 100, 10)
    assert first_firing(tmp_path, Overfit(), gap_in_phase(2, 1875), steps) == (4000, "TRAIN", 3800)


def test_o2_overfit_after_the_sixth_evaluation(tmp_path: Path) -> None:
    steps = schedule(8, 1000, 200, 100, 10)
    assert first_firing(tmp_path, Overfit(), gap_in_phase(6, 1150), steps) == (7200, "TRAIN", 6000)


def test_o3_weight_update_ratio_at_the_first_comparable_step(tmp_path: Path) -> None:
    frozen = {"a.weight": np.ones(4)}
    steps = schedule(2, 1000, 200, 500, 500)
    assert first_firing(tmp_path, WeightUpdateRatio(), lambda *_: frozen, steps) == (500, "TRAIN", 500)


def test_o4_vanishing_gradient_is_judged_step_by_step(tmp_path: Path) -> None:
    def tensors(step: int, mode: str, mode_step: int) -> dict[str, Any]:
        return {"gradient/a": np.full(4, 1e-3 if step == 0 else 1e-9)}

    assert first_firing(tmp_path, VanishingGradient(), tensors, schedule(1, 1001, 0, 500, 1)) == (
        500,
        "TRAIN",
        500,
    )


def test_o5_class_imbalance_counts_all_modes(tmp_path: Path) -> None:
    rule = ClassImbalance(
        samples="3000",
        argmax="True",
        labels_regex="CrossEntropyLoss_input_1",
        predictions_regex="CrossEntropyLoss_input_0",
    )
    labels = np.zeros(64, np.int64)
    labels[:3] = 1
    batch = {
        "CrossEntropyLoss_input_1": labels,
        "CrossEntropyLoss_input_0": np.eye(2, dtype=np.float32)[labels],
    }
    steps = schedule(8, 416, 197, 100, 25)
    assert first_firing(tmp_path, rule, lambda *_: batch, steps) == (2389, "EVAL", 725)


def test_o6_loss_not_decreasing_checks_every_500_training_steps(tmp_path: Path) -> None:
    rule = LossNotDecreasing(num_steps="500", mode="TRAIN", tensor_regex="CrossEntropyLoss_output_0")

    def tensors(step: int, mode: str, mode_step: int) -> dict[str, Any]:
        return {"CrossEntropyLoss_output_0": np.float64(max(1 - mode_step / 5000, 0.5))}

    assert first_firing(tmp_path, rule, tensors, schedule(8, 416, 197, 100, 25)) == (4379, "TRAIN", 3000)


def test_o7_poor_weight_initialization_can_fire_at_once(tmp_path: Path) -> None:
    small = {"gradient/a": np.linspace(-1e-4, 1e-4, 100), "loss_output_0": np.float64(2.3)}
    assert first_firing(tmp_path, PoorWeightInitialization(), lambda *_: small, schedule(1, 2, 0, 1, 1)) == (
        0,
        "TRAIN",
        0,
    )


def rounds(count: int) -> Schedule:
    return ((step, "GLOBAL", step) for step in range(count))


def test_o8_every_round_is_compared_with_the_one_before(tmp_path: Path) -> None:
    errors = [0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.1, 0.05]
    rule = LossNotDecreasing(num_steps=1, use_losses_collection=False, tensor_regex="validation-merror")
    found = first_firing(
        tmp_path, rule, lambda step, *_: {"validation-merror": np.array([errors[step]])}, rounds(9)
    )
    assert found == (7, "GLOBAL", 7)


def test_o9_the_range_of_steps_is_honoured(tmp_path: Path) -> None:
    rule = Confusion(category_no=15, min_diag=0.7, max_off_diag=0.3, start_step=17, end_step=19)
    wrong = {"labels": np.arange(15.0), "predictions": np.zeros(15)}
    assert first_firing(tmp_path, rule, lambda *_: wrong, rounds(25)) == (17, "GLOBAL", 17)


def test_o10_overtraining_leaves_noisy_batches_of_few_epochs_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def tensors(step: int, mode: str, mode_step: int) -> dict[str, Any]:
        return {"CrossEntropyLoss_output_0": 1 - step / 20000 + 0.2 * rng.standard_normal()}

    assert first_firing(tmp_path, Overtraining(), tensors, schedule(6, 1000, 200, 100, 10)) is None
