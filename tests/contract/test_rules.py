"""Every rule that is installed keeps the contract."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest

from smdbg_builtin_rules.all_zero import AllZero
from smdbg_builtin_rules.check_input_images import CheckInputImages
from smdbg_builtin_rules.class_imbalance import ClassImbalance
from smdbg_builtin_rules.confusion import Confusion
from smdbg_builtin_rules.create_xgboost_report import CreateXgboostReport
from smdbg_builtin_rules.dead_relu import DeadRelu
from smdbg_builtin_rules.exploding_tensor import ExplodingTensor
from smdbg_builtin_rules.feature_importance_overweight import FeatureImportanceOverweight
from smdbg_builtin_rules.loss_not_decreasing import LossNotDecreasing
from smdbg_builtin_rules.nlp_sequence_ratio import NLPSequenceRatio
from smdbg_builtin_rules.overfit import Overfit
from smdbg_builtin_rules.overtraining import Overtraining
from smdbg_builtin_rules.poor_weight_initialization import PoorWeightInitialization
from smdbg_builtin_rules.saturated_activation import SaturatedActivation
from smdbg_builtin_rules.similar_across_runs import SimilarAcrossRuns
from smdbg_builtin_rules.stalled_training_rule import StalledTrainingRule
from smdbg_builtin_rules.tensor_variance import TensorVariance
from smdbg_builtin_rules.tree_depth import TreeDepth
from smdbg_builtin_rules.unchanged_tensor import UnchangedTensor
from smdbg_builtin_rules.vanishing_gradient import VanishingGradient
from smdbg_builtin_rules.weight_update_ratio import WeightUpdateRatio
from smdbg_core import Registry, Rule
from smdbg_core.discovery.policy import FIRST_PARTY
from smdbg_core.testing import Check, Example, ProfilerBuilder, TrialBuilder, rule_checks
from smdbg_profiler_rules.batch_size import BatchSize
from smdbg_profiler_rules.cpu_bottleneck import CPUBottleneck
from smdbg_profiler_rules.dataloader import Dataloader
from smdbg_profiler_rules.gpu_memory_increase import GPUMemoryIncrease
from smdbg_profiler_rules.io_bottleneck import IOBottleneck
from smdbg_profiler_rules.load_balancing import LoadBalancing
from smdbg_profiler_rules.low_gpu_utilization import LowGPUUtilization
from smdbg_profiler_rules.max_initialization_time import MaxInitializationTime
from smdbg_profiler_rules.overall_framework_metrics import OverallFrameworkMetrics
from smdbg_profiler_rules.overall_system_usage import OverallSystemUsage
from smdbg_profiler_rules.profiler_report import ProfilerReport
from smdbg_profiler_rules.step_outlier import StepOutlier


def at(*values: object, name: str, every: int = 1, mode: str = "TRAIN") -> TrialBuilder:
    """One tensor, with these values at successive steps."""
    built = TrialBuilder(mode=mode)
    for number, value in enumerate(values):
        built.step(number * every, {name: value})
    return built


def losses(train: list[float], validation: list[float]) -> TrialBuilder:
    built = TrialBuilder()
    for number, (one, other) in enumerate(zip(train, validation, strict=True)):
        built.step(2 * number, {"loss_output_0": one}).step(
            2 * number + 1, {"loss_output_0": other}, mode="EVAL"
        )
    return built


def images(value: float) -> TrialBuilder:
    return at(np.full((500, 1, 2, 2), value), name="hybridsequential0_input_0")


def labels(*counts: int) -> TrialBuilder:
    values = np.repeat(np.arange(len(counts)), counts)
    return TrialBuilder().step(0, {"labels": values, "predictions": values})


def classes(truth: list[int], said: list[int]) -> TrialBuilder:
    return TrialBuilder().step(0, {"labels": np.array(truth), "predictions": np.array(said)})


def tree(nodes: int) -> TrialBuilder:
    return TrialBuilder().step(
        0, {"trees/Node": np.arange(nodes), "trees/ID": [f"0-{n}" for n in range(nodes)]}
    )


def importance(*values: float) -> TrialBuilder:
    built = {f"feature_importance/weight/f{n}": value for n, value in enumerate(values)}
    return TrialBuilder().step(0, built)


def relu(dead: int) -> TrialBuilder:
    values = np.zeros((200, 4))
    values[:, dead:] = 1.0
    return at(values, name="relu_output_0")


def padded(share: float) -> TrialBuilder:
    tokens = np.ones(100, int)
    tokens[: int(100 * share)] = 0
    return at(tokens, name="embedding0_input_0")


def gpu(value: float, samples: int = 20, **more: float) -> ProfilerBuilder:
    built = ProfilerBuilder().series("GPUUtilization", [value] * samples)
    for measure, other in more.items():
        names = {"cpu": "CPUUtilization", "wait": "I/OWaitPercentage", "memory": "GPUMemoryUtilization"}
        built.series(names[measure], [other] * samples)
    return built


def balanced(one: float, other: float) -> ProfilerBuilder:
    built = ProfilerBuilder().series("GPUUtilization", [one] * 20)
    return built.series("GPUUtilization", [other] * 20, device="gpu1")


def loading(processes: int) -> ProfilerBuilder:
    built = ProfilerBuilder()
    for core in range(4):
        built.series("CPUUtilization", [50.0, 50.0], device=f"cpu{core}")
    for second in range(12):
        for pid in range(processes):
            built.event("DataLoaderIter", second, second + 0.5, pid=pid)
    return built


def beginning(seconds: float) -> ProfilerBuilder:
    return (
        ProfilerBuilder().series("CPUUtilization", [5.0] * 300, interval=1.0).steps([1.0] * 20, start=seconds)
    )


def _elsewhere(value: float) -> str:
    folder = Path(tempfile.mkdtemp(prefix="smdbg-other-"))
    return at([value, 2.0], name="w").write(folder)


FALLING = [1.0, 0.8, 0.6, 0.5, 0.4, 0.3]
EXAMPLES: list[tuple[Rule, Example | None, Example]] = [
    (AllZero(tensor_regex="a"), at(np.zeros(4), name="a"), at(np.ones(4), name="a")),
    (CheckInputImages(), images(0.9), images(0.0)),
    (ClassImbalance(), labels(990, 10), labels(300, 300)),
    (Confusion(), classes([0, 1, 2], [1, 2, 0]), classes([0, 1, 2], [0, 1, 2])),
    (DeadRelu(), relu(4), relu(1)),
    (ExplodingTensor(), at([np.nan], name="a"), at([1.0], name="a")),
    (FeatureImportanceOverweight(), importance(0.1, 0.6, 0.3), importance(*[0.1] * 10)),
    (
        LossNotDecreasing(),
        at(1.0, 1.0, name="loss_output_0", every=10, mode="GLOBAL"),
        at(1.0, 0.5, name="loss_output_0", every=10, mode="GLOBAL"),
    ),
    (NLPSequenceRatio(token_values="0"), padded(0.9), padded(0.1)),
    (Overfit(patience=1), losses(FALLING, [2.0] * 6), losses(FALLING, FALLING)),
    (
        Overtraining(patience_train=2, patience_validation=2),
        losses([1.0] * 12, [1.0] * 12),
        losses(FALLING, FALLING),
    ),
    (
        PoorWeightInitialization(),
        at(*[2.3] * 10, name="loss_output_0"),
        at(*[2.3 - 0.1 * number for number in range(10)], name="loss_output_0"),
    ),
    (
        SaturatedActivation(),
        at(np.full((2, 3), 50.0), name="tanh_input_0"),
        at(np.zeros((2, 3)), name="tanh_input_0"),
    ),
    (
        TensorVariance(tensor_regex="a", max_threshold=10),
        at([0.0, 10.0], name="a"),
        at([0.0, 1.0], name="a"),
    ),
    (TreeDepth(depth=2), tree(15), tree(3)),
    (UnchangedTensor(tensor_regex="a"), at(*[[1.0, 2.0]] * 4, name="a"), at([1.0], [2.0], [3.0], name="a")),
    (VanishingGradient(), at([1e-9], name="gradient/a"), at([0.1], name="gradient/a")),
    (WeightUpdateRatio(), at([0.01], [5.0], name="a.weight"), at([1.0], [1.01], name="a.weight")),
    (BatchSize(window=4, patience=4), gpu(10, cpu=20, memory=20), gpu(10, cpu=20, memory=90)),
    (CPUBottleneck(patience=4), gpu(1, cpu=99), gpu(90, cpu=99)),
    (IOBottleneck(patience=4), gpu(1, wait=80), gpu(1, wait=10)),
    (
        GPUMemoryIncrease(window=3, patience=4),
        ProfilerBuilder().series("GPUMemoryUtilization", [10.0] * 10 + [60.0] * 4),
        ProfilerBuilder().series("GPUMemoryUtilization", [10.0] * 14),
    ),
    (LoadBalancing(patience=5), balanced(10, 90), balanced(50, 50)),
    (LowGPUUtilization(window=4, patience=4), gpu(10), gpu(90)),
    (Dataloader(), loading(1), loading(4)),
    (MaxInitializationTime(threshold=1), beginning(100), beginning(20)),
    (OverallFrameworkMetrics(), None, ProfilerBuilder().steps([1.0, 2.0])),
    (OverallSystemUsage(), None, gpu(50, cpu=50)),
    (
        StepOutlier(scan_interval_us=10**10),
        ProfilerBuilder().steps([1.0] * 300 + [20.0] * 11),
        ProfilerBuilder().steps([1.0] * 300),
    ),
    (ProfilerReport(LowGPUUtilization_patience=4), gpu(10), gpu(90)),  # type: ignore[call-arg]
]


def checks() -> list[object]:
    return [
        pytest.param(check, id=f"{type(rule).__name__}-{check.name}")
        for rule, fires, clean in EXAMPLES
        for check in rule_checks(rule, fires=fires, clean=clean)
    ]


@pytest.mark.parametrize("check", checks())
def test_contract(check: Check) -> None:
    check()


@pytest.mark.parametrize("check", ["clean", "fires"])
def test_comparing_runs(check: str) -> None:
    """Its other run must lie somewhere."""
    rule = SimilarAcrossRuns(other_trial=_elsewhere(1.0))
    checks = rule_checks(rule, fires=at([9.0, 2.0], name="w"), clean=at([1.0, 2.0], name="w"))
    (wanted,) = [one for one in checks if one.name == f"{check}-on-its-example"]
    wanted()


def test_all_rules_are_here() -> None:
    registry = Registry()
    names = {
        spec.name
        for spec in (*registry.rules(), *registry.profiler_rules())
        if spec.distribution in FIRST_PARTY
    }
    covered = {type(rule).__name__ for rule, _, _ in EXAMPLES}
    # One needs another run, one judges the time of writing, one writes files instead of judging; each has
    # tests of its own.
    special = {SimilarAcrossRuns, StalledTrainingRule, CreateXgboostReport}
    assert names == covered | {rule.__name__ for rule in special}
