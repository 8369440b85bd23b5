"""Evidence: what is kept of an evaluation, and that nothing is where nobody asks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from smdbg_core import Artifact, Finding, Reads, RuleRun, StepView, TensorRule, TrialWriter, evaluate
from smdbg_core.evidence import Evidence, Limit
from tests.profiler_job import Job


class Large(TensorRule):
    """Fires when a tensor is large."""

    group: ClassVar = "test"

    def reads(self) -> Reads:
        return Reads(patterns=("^t",), statistics=("mean",))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            yield from self.judge(tensor, "mean", tensor.statistics.mean, ">", 5.0)

    def finish(self, run: RuleRun) -> Iterator[Artifact]:
        yield Artifact(path="a/b.json", content=b'{"x": 1}', media_type="application/json")
        yield Artifact(path="a/c.json", content=b"no", media_type="application/json")
        yield Artifact(path="a/d.bin", content=b"\0")


def trial(path: Path, steps: int = 10) -> str:
    with TrialWriter(path) as writer:
        for number in range(steps):
            with writer.step(number, mode="TRAIN") as step:
                step.add("t/a", np.full(3, float(number)))
                step.add("t/b", np.array([1.0, math.nan]) if number == 4 else np.ones(2))
                step.add("CrossEntropyLoss_output_0", 1 / (1 + number))
    return str(path)


def test_points_limits_and_violations(tmp_path: Path) -> None:
    report = evaluate(trial(tmp_path / "t"), [Large], evidence=True)
    evidence: Evidence = report.evidence
    (judged,) = evidence.judged["Large"]
    assert judged.statistic == "mean"
    assert judged.limits == [Limit(">", 5.0)]
    assert not judged.varies
    a, b = judged.points.tracks
    assert (a.subject.name, a.subject.mode) == ("t/a", "TRAIN")
    assert a.mean.tolist() == [float(number) for number in range(10)]
    assert a.violated
    assert not b.violated
    assert b.non_finite.tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert evidence.documents == {"Large": {"a/b.json": {"x": 1}}}
    assert report.documentation["Large"][0] == "Fires when a tensor is large."


def test_nothing_is_kept_unless_asked_for(tmp_path: Path) -> None:
    report = evaluate(trial(tmp_path / "t"), [Large])
    assert report.evidence is None
    assert report.documentation == {}


def test_the_verdict_is_the_same_with_and_without(tmp_path: Path) -> None:
    path = trial(tmp_path / "t")
    assert evaluate(path, [Large], evidence=True).outcomes == evaluate(path, [Large]).outcomes


def test_losses_are_kept_when_a_rule_measures_them(tmp_path: Path) -> None:
    evidence = evaluate(trial(tmp_path / "t", 30), ["LossNotDecreasing"], evidence=True).evidence
    (loss,) = evidence.losses.tracks
    assert loss.subject.name == "CrossEntropyLoss_output_0"
    assert loss.mean[0] == 1


def test_damaged_files_are_named(tmp_path: Path) -> None:
    path = Path(trial(tmp_path / "t"))
    victim = sorted(path.glob("events/*/*.tfevents"))[3]
    victim.write_bytes(victim.read_bytes()[:40])
    evidence = evaluate(str(path), [Large], evidence=True).evidence
    assert [file for file, _ in evidence.damage] == [str(victim.relative_to(path))]


def test_series_and_steps_of_profiler_output(tmp_path: Path) -> None:
    job = Job()
    values = {
        ("gpu0", "GPUUtilization"): [float(n % 90) for n in range(400)],
        ("cpu0", "CPUUtilization"): [50.0] * 400,
    }
    job.ticks(values)
    job.steps([1.0] * 100 + [9.0])
    report = evaluate(job.write(tmp_path), ["OverallSystemUsage", "StepOutlier"], evidence=True)
    evidence = report.evidence
    series = dict(evidence.series)
    (gpu,) = series["GPUUtilization"].tracks
    assert (gpu.subject.name, gpu.subject.node) == ("gpu0", "algo-1")
    assert (gpu.lowest.min(), gpu.highest.max()) == (0, 89)
    (steps,) = evidence.steps
    assert (steps.mode, steps.size, steps.quantiles["max"]) == ("TRAIN", 101, 9.0)
    assert sum(steps.histogram) == 101


def test_a_period_holds_for_evidence_too(tmp_path: Path) -> None:
    job = Job()
    job.ticks({("cpu0", "CPUUtilization"): [float(n) / 10 for n in range(600)]}, interval=1.0)
    from tests.profiler_job import T0

    report = evaluate(job.write(tmp_path), ["OverallSystemUsage"], period=(T0 + 120, T0 + 240), evidence=True)
    (cpu,) = dict(report.evidence.series)["CPUUtilization"].tracks
    assert (cpu.lowest.min(), cpu.highest.max()) == (12.0, 23.9)
