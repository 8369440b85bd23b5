"""The engine: rosters, ranges, sharing, isolation, and one result from every executor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smdbg_core import (
    Artifact,
    Compare,
    ConfigError,
    Finding,
    MissingDataError,
    Outcome,
    ProfilerRule,
    Reads,
    Registry,
    RuleConfig,
    RuleRun,
    ScanReads,
    ScanWindow,
    StepView,
    TensorRule,
    TrialWriter,
    evaluate,
    open_run,
    statistic,
)
from smdbg_core.discovery.finder import PluginSpec
from smdbg_core.report.json import render_json
from tests.builders import write_trial
from tests.distributions import RULE, install

STEPS = {
    n: ("EVAL" if n % 4 == 3 else "TRAIN", {"gradient/a": np.full(3, 1e-9), "w": np.arange(2.0) + n})
    for n in range(12)
}


@pytest.fixture
def trial(tmp_path: Path) -> str:
    return write_trial(tmp_path / "trial", STEPS)


class Recorder(TensorRule):
    """Fires at every step, and remembers what it saw."""

    group = "custom"

    def reads(self) -> Reads:
        return Reads(everything=True, statistics=("mean", ("quantiles", 0.5)))

    def start(self, run: RuleRun) -> None:
        self.seen: list[tuple[int, str]] = []

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            self.seen.append((step.step, tensor.name))
            yield from self.judge(tensor, "mean", tensor.statistics.mean, ">", -1.0)


def outcome(path: str, rule: Any, **options: Any) -> Outcome:
    (one,) = evaluate(path, [rule], **options).outcomes
    return one


def test_every_executor_gives_the_same_report(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with TrialWriter(tmp_path / "t") as writer:
        for number in range(8):
            with writer.step(number, mode="TRAIN") as step:
                step.add("a.weight", rng.standard_normal(300_000).astype(np.float32))
                step.add(
                    "gradient/a.weight", rng.standard_normal(90_000).astype(np.float32) * np.float32(1e-9)
                )
                for small in range(20):
                    step.add(f"gradient/s{small}", rng.standard_normal(40).astype(np.float32))
                step.add("loss_output_0", np.float32(1 / (number + 1)))
    path = tmp_path / "t"
    alone = render_json(evaluate(path))
    with ThreadPoolExecutor(2) as threads:
        assert render_json(evaluate(path, executor=threads)) == alone
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        assert render_json(evaluate(path, executor=processes)) == alone


@statistic("test_spread")
def spread(values: np.ndarray, scale: float) -> float:
    return float(np.ptp(values)) * scale


class Spread(Recorder):
    """Measures with a statistic of its own."""

    def reads(self) -> Reads:
        return Reads(patterns=("^w$",), statistics=(("test_spread", 2.0),))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            yield from self.judge(tensor, "spread", tensor.measure("test_spread", 2.0), ">", 1.0)


def test_statistics_of_plugins_reach_other_processes(trial: str) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        found = outcome(trial, Spread(), executor=processes)
    assert (found.status, found.reason, found.findings[0].value) == ("fired", None, 2.0)


def test_ranges_and_modes(trial: str) -> None:
    def steps(**options: Any) -> int:
        return outcome(trial, Recorder(), **options).coverage.steps

    assert steps() == 12
    assert steps(steps=(2, 5)) == 3
    assert steps(steps=(None, 5)) == 5
    assert steps(mode="eval") == 3
    assert outcome(trial, Recorder(start_step=4, end_step=6)).coverage.steps == 2
    assert outcome(trial, Recorder(exclude="^w$")).coverage.tensors == 1
    assert outcome(trial, Recorder(), steps=(90, None)).status == "not_evaluated"


def test_stop_on_first(trial: str) -> None:
    assert outcome(trial, Recorder(), stop_on_first=True).coverage.steps == 1


def test_findings_are_capped_and_told_at_once(trial: str) -> None:
    told: list[tuple[str, int | None]] = []
    found = outcome(trial, Recorder(), max_findings=1, on_finding=lambda name, f: told.append((name, f.step)))
    assert (len(found.findings), found.findings_truncated) == (1, 3)
    assert len(told) == 24


def test_one_object_serves_many_runs(trial: str) -> None:
    rule = Recorder()
    first, second = outcome(trial, rule), outcome(trial, rule)
    assert first == second
    assert not hasattr(rule, "seen")


class Failing(TensorRule):
    """Raises at a step."""

    def reads(self) -> Reads:
        return Reads(everything=True, statistics=("mean",))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        if step.step == 5:
            raise SystemExit("stop everything")
        for tensor in step.tensors():
            yield from self.judge(tensor, "mean", tensor.statistics.mean, ">", 1e9)


def test_a_rule_that_raises_costs_only_itself(trial: str) -> None:
    report = evaluate(trial, [Failing(), "VanishingGradient"])
    failed = report.outcome("Failing")
    assert failed.status == "error"
    assert str(failed.reason).startswith("at step 5: SystemExit: stop everything (")
    assert "Traceback" in str(failed.traceback)
    assert failed.plugin.endswith("test_evaluate:Failing")
    assert report.outcome("VanishingGradient").coverage.steps == 12


class Careless(Failing):
    """Yields what is no finding."""

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        yield "oops"  # type: ignore[misc]


class Timed(ProfilerRule):
    """A rule over profiler output."""

    def reads(self) -> ScanReads:
        return ScanReads()

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        return iter(())


def test_what_is_no_finding_is_an_error(trial: str) -> None:
    assert "it yielded str, neither a Finding nor an Artifact" in str(outcome(trial, Careless()).reason)


def test_profiler_rules_need_profiler_output(trial: str) -> None:
    assert outcome(trial, Timed()).reason == "not measured: the run has no profiler output"


class Undeclared(Failing):
    """Asks for what it did not declare."""

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            yield from self.judge(tensor, "std", tensor.statistics.maen, ">", 1e9)


def test_undeclared_statistics_are_explained(trial: str) -> None:
    assert "'maen' is not in `reads().statistics`; did you mean 'mean'" in str(
        outcome(trial, Undeclared()).reason
    )


class Looking(TensorRule):
    """Looks at everything a view offers."""

    def reads(self) -> Reads:
        return Reads(
            patterns=("^w$",), compare=(Compare("closeness", (0.0, 0.0), last=2),), statistics=("min",)
        )

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for name, (tensor,) in step.by_tensor():
            earlier = tensor.compare(Compare("closeness", (0.0, 0.0), last=2))
            previous = tensor.previous()
            seen = {
                "name": name,
                "steps": tensor.steps(),
                "values": tensor.values.tolist(),
                "writeable": tensor.values.flags.writeable,
                "shape": tensor.shape,
                "dtype": tensor.dtype.name,
                "median": tensor.measure("quantiles", 0.5),
                "earlier": [one.mode_step for one in earlier],
                "previous": previous and (previous.mode_step, previous.statistics.max, previous.shape),
                "time": step.wall_time is not None,
            }
            yield self.finding(tensor, repr(seen))


def test_views(trial: str) -> None:
    found = outcome(trial, Looking(), steps=(4, 5))
    (finding,) = found.findings
    assert finding.message == repr(
        {
            "name": "w",
            "steps": [0, 1, 2, 3],
            "values": [4.0, 5.0],
            "writeable": False,
            "shape": (2,),
            "dtype": "float64",
            "median": (4.5,),
            "earlier": [1, 2],
            "previous": (2, 3.0, (2,)),
            "time": True,
        }
    )


class Future(Looking):
    """Looks ahead."""

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        step.tensors()[0].at(step.mode_step + 1)
        return iter(())


def test_nobody_looks_ahead(trial: str) -> None:
    assert "is not saved, or later than" in str(outcome(trial, Future()).reason)


class Writing(Failing):
    """Writes files."""

    path: str = "sub/file.txt"

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        return iter(())

    def finish(self, run: RuleRun) -> Iterable[Artifact]:
        yield Artifact(path=self.path, content=b"x")


def test_artifacts(trial: str, tmp_path: Path) -> None:
    assert outcome(trial, Writing(), output=tmp_path / "out").artifacts == ["sub/file.txt"]
    assert (tmp_path / "out/sub/file.txt").read_bytes() == b"x"
    with pytest.raises(ConfigError, match="leads out of the output folder"):
        evaluate(trial, [Writing(path="../x")], output=tmp_path / "out")


class Parent(Failing):
    """Needs another rule."""

    def finish(self, run: RuleRun) -> Iterable[Finding]:
        yield Finding(subject="all", message=",".join(sorted(run.outcomes)))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        return iter(())

    def children(self) -> tuple[TensorRule, ...]:
        return (Recorder(),)


class Grandparent(Parent):
    """Needs a rule that needs another."""

    def children(self) -> tuple[TensorRule, ...]:
        return (Parent(), Recorder(start_step=3))


def test_report_rules_see_the_outcomes_of_others_which_run_once(trial: str) -> None:
    report = evaluate(trial, [Grandparent(), Recorder()])
    assert [one.name for one in report.outcomes] == [
        "Grandparent",
        "Recorder",
        "Parent",
        "Grandparent.Recorder",
    ]
    assert report.outcome("Grandparent").findings[0].message == "Grandparent.Recorder,Parent"
    assert report.outcome("Parent").findings[0].message == "Recorder"


def test_rules_by_name_class_object_and_configuration(trial: str) -> None:
    report = evaluate(
        trial,
        [
            "vanishinggradient",
            Recorder,
            RuleConfig("VanishingGradient", "strict", {"threshold": "1e-12"}),
            "smdbg-builtin-rules[ExplodingTensor]",
        ],
    )
    assert [(o.name, o.rule, o.status) for o in report.outcomes] == [
        ("VanishingGradient", "VanishingGradient", "fired"),
        ("Recorder", "Recorder", "fired"),
        ("strict", "VanishingGradient", "clean"),
        ("ExplodingTensor", "ExplodingTensor", "clean"),
    ]


def test_all_mistakes_of_a_call_come_together(trial: str) -> None:
    rules = [
        "VanishingGradeint",
        RuleConfig("AllZero", None, {"tresh": 1}),
        "AllZero",
        "UnchangedTensor",
        Recorder(),
        Recorder(),
    ]
    with pytest.raises(ConfigError) as caught:
        evaluate(trial, rules, parameters={"Nope": {"a": 1}})
    text = str(caught.value)
    for part in (
        "did you mean 'VanishingGradient'",
        "AllZero: no parameter 'tresh'",
        "AllZero: needs collection_names or tensor_regex",
        "UnchangedTensor: needs collection_names or tensor_regex",
        "2 rules are named 'recorder'",
        "parameters are given for 'nope'",
    ):
        assert part in text


def test_rules_that_lack_parameters_are_not_evaluated_when_all_run(trial: str) -> None:
    report = evaluate(trial)
    assert report.outcome("AllZero").reason == "needs a parameter: collection_names or tensor_regex"
    given = evaluate(trial, parameters={"allzero": {"tensor_regex": "w"}})
    assert given.outcome("AllZero").status == "clean"


def test_rules_of_other_frameworks_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    path = write_trial(tmp_path / "x", {0: {"train-rmse": 1.0, "trees/Node": np.arange(3)}})
    report = evaluate(path)
    assert str(report.outcome("VanishingGradient").reason).startswith("not applicable: for tensorflow")
    named = evaluate(path, ["VanishingGradient"])
    assert named.warnings == [
        "VanishingGradient is for tensorflow, mxnet, pytorch; the tensors look like xgboost's"
    ]


def test_a_rule_from_a_file(trial: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RULE.format(name="Mine").replace("1e30", "-1e30"))
    (one,) = evaluate(trial, [RuleConfig("", None, file=f"{tmp_path}/mine.py:Mine")]).outcomes
    assert (one.rule, one.status) == ("Mine", "fired")
    for bad in ("mine.py", f"{tmp_path}/no.py:X", f"{tmp_path}/mine.py:Nope"):
        with pytest.raises(ConfigError):
            evaluate(trial, [RuleConfig("", None, file=bad)])


def test_statistics_of_a_file_reach_other_processes(trial: str, tmp_path: Path) -> None:
    source = RULE.format(name="Wide").replace('"mean"', '"file_span"').replace("1e30", "0.5")
    source = source.replace("tensor.statistics.mean", 'tensor.measure("file_span")')
    source += (
        "from smdbg_core import statistic\n"
        "@statistic('file_span')\n"
        "def file_span(values):\n"
        "    return float(values.max() - values.min())\n"
    )
    (tmp_path / "wide.py").write_text(source)
    config = RuleConfig("", None, file=f"{tmp_path}/wide.py:Wide")
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        (one,) = evaluate(trial, [config], executor=processes).outcomes
    assert (one.status, one.reason, one.findings[0].value) == ("fired", None, 1.0)


def test_an_open_run_can_be_judged(trial: str) -> None:
    assert evaluate(open_run(trial), [Recorder()]).outcomes[0].status == "fired"
    with pytest.raises(MissingDataError, match="no such folder"):
        evaluate(trial + "/no")


def test_plugins_may_object_to_parameters_before_data_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "from smdbg_core import ParameterProblem, hookimpl\n"
        "@hookimpl\n"
        "def smdbg_validate_parameters(rule_class, parameters, run):\n"
        "    if parameters.get('patience', 9) < 3:\n"
        "        return [ParameterProblem('patience', 'value', f'patience below 3 for {run}')]\n"
    )
    install(
        tmp_path / "site",
        "house",
        {"rules": "house_rules"},
        group="smdbg.plugins",
        modules={"house_rules": source},
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(ConfigError, match="Overfit: patience below 3 for nowhere"):
        evaluate("nowhere", ["Overfit"])


def test_a_veto_leaves_points_out_and_says_so(
    trial: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "from smdbg_core import Veto, hookimpl\n"
        "@hookimpl(wrapper=True)\n"
        "def smdbg_evaluate(view):\n"
        "    if view.step < 4:\n"
        "        raise Veto('warming up')\n"
        "    return (yield)\n"
    )
    install(
        tmp_path / "site",
        "vetoer",
        {"v": "vetoer_hooks"},
        group="smdbg.plugins",
        modules={"vetoer_hooks": source},
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = outcome(trial, Recorder())
    assert found.coverage.steps == 8
    assert found.coverage.skipped == {"vetoed: warming up": 4}


def test_no_registry_of_ones_own_is_needed_for_ones_own_rules(trial: str) -> None:
    registry = Registry(specs=[PluginSpec("rule", "Recorder", f"{__name__}:Recorder", "mine", "3")])
    (one,) = evaluate(trial, registry=registry).outcomes
    assert one.plugin == "mine==3[Recorder]"


def test_memory_stays_flat(tmp_path: Path) -> None:
    import tracemalloc

    with TrialWriter(tmp_path / "t") as writer:
        for number in range(60):
            with writer.step(number) as step:
                step.add("gradient/a", np.full(200_000, 0.1, np.float32))
    peaks = []
    tracemalloc.start()

    def note(done: int, total: int) -> None:
        peaks.append(tracemalloc.get_traced_memory()[0])

    evaluate(tmp_path / "t", ["VanishingGradient"], on_step=note)
    tracemalloc.stop()
    assert max(peaks[20:]) - min(peaks[20:]) < 2**20
