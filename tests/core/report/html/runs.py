"""Small runs, evaluated with evidence, for tests of pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smdbg_core import Report, TrialWriter, evaluate
from smdbg_core.runs.trial.collections import Collection
from tests.profiler_job import Job

__all__ = ["HOSTILE", "boosting_run", "hostile_run", "profiler_run", "tensor_run"]

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=2>",
    '"><svg onload=window.pwned=3>',
    "$$\\frac{1}{2}$$ \\[x\\] \\(y\\)",
    "a'b\"c`${window.pwned=4}`{{7*7}}{% x %}",
    "@y{0} $x \n\t\x00 \udcff \u202e \U0001f600 &lt;b&gt;",
)
"""Names that would run, load or break something if they were not escaped."""


def tensor_run(folder: Path, *, names: tuple[str, ...] = ()) -> Report:
    """Gradients that vanish in the first layers, and a loss in two modes."""
    rng = np.random.default_rng(0)
    with TrialWriter(folder) as writer:
        for number in range(40):
            mode = "EVAL" if number % 10 == 9 else "TRAIN"
            with writer.step(number, mode=mode) as step:
                step.add("CrossEntropyLoss_output_0", 1.0 / (1 + number))
                for layer in range(6):
                    scale = 10.0 ** (layer * 3 - 12)
                    step.add(f"gradient/Net_fc{layer}.weight", scale * rng.standard_normal(50))
                for name in names:
                    step.add(f"gradient/{name}", np.full(4, 1e-9 if number != 20 else np.nan))
    return evaluate(folder, evidence=True)


def profiler_run(folder: Path, *, node: str = "algo-1") -> Report:
    """Two unequal GPUs, a CPU core, data loading, and a step that takes long."""
    job = Job()
    ticks = 2600
    values = {
        ("gpu0", "GPUUtilization"): [90.0 + n % 5 for n in range(ticks)],
        ("gpu1", "GPUUtilization"): [10.0 + n % 5 for n in range(ticks)],
        ("gpu0", "GPUMemoryUtilization"): [60.0] * ticks,
        ("gpu1", "GPUMemoryUtilization"): [60.0] * ticks,
        ("cpu0", "CPUUtilization"): [40.0 + n % 7 for n in range(ticks)],
        ("cpu0", "I/OWaitPercentage"): [1.0] * ticks,
        ("MemoryUsedPercent", ""): [30.0] * ticks,
        ("ReceiveBytesPerSecond", "Algorithm"): [1e6] * ticks,
    }
    job.ticks(values, node=node)
    job.steps([1.0] * 200 + [30.0] * 14 + [1.0] * 100, start=5.0)
    for second in range(40):
        job.event("DataLoaderIter", 6.0 + second, 6.4 + second, pid=1)
        job.event("Forward-SubModuleInternal", 6.0 + second, 6.2 + second)
        job.event("Backward-SubModuleInternal", 6.2 + second, 6.6 + second)
    return evaluate(job.write(folder), evidence=True)


def boosting_run(folder: Path, objective: str = "binary:logistic") -> Report:
    """A boosting run of any objective, with labels and predictions."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 80).astype(np.float32)
    if objective.startswith("reg"):
        labels = rng.uniform(0, 10, 80).astype(np.float32)
    metrics = Collection("metrics", ["^[a-z]+-"])
    with TrialWriter(folder, collections=[metrics]) as writer:
        for number in range(0, 40, 5):
            with writer.step(number) as step:
                if number == 0:
                    step.add("hyperparameters/objective", np.array([objective]))
                step.add("train-logloss", 0.7 / (1 + number))
                step.add("validation-logloss", 0.7 / (1 + number / 2))
                for kind in ("weight", "gain", "cover"):
                    step.add(f"feature_importance/{kind}/f0", 0.7)
                    step.add(f"feature_importance/{kind}/f1", 0.3)
                step.add("labels", labels)
                noise = rng.normal(0, 0.3, 80)
                predictions = (
                    labels + noise
                    if objective.startswith("reg")
                    else np.clip(labels * 0.6 + 0.2 + noise, 0, 1)
                )
                step.add("predictions", predictions.astype(np.float32))
    return evaluate(folder, evidence=True)


def hostile_run(folder: Path) -> Report:
    """A run whose tensors have hostile names."""
    names = tuple(name.replace("\x00", "").replace("\udcff", "") for name in HOSTILE)
    return tensor_run(folder, names=names)


def spoiled(report: Report) -> Report:
    """The report with hostile texts in every field that data or plugins can fill."""
    import msgspec

    text = " ".join(HOSTILE)
    outcomes: list[Any] = []
    for outcome in report.outcomes:
        findings = [
            msgspec.structs.replace(one, subject=text, message=text, worker=text, node=text, mode=text)
            for one in outcome.findings
        ]
        outcomes.append(
            msgspec.structs.replace(
                outcome,
                reason=text,
                plugin=text,
                findings=findings,
                parameters={text: text},
                traceback=text,
                artifacts=[text],
            )
        )
    run = msgspec.structs.replace(report.run, uri=text, nodes=[text], workers=[text], modes={text: 3})
    documentation = dict.fromkeys(report.documentation, (text, text, text))
    evidence = report.evidence._replace(damage=[(text, text)])
    return msgspec.structs.replace(
        report, outcomes=outcomes, run=run, warnings=[text], documentation=documentation, evidence=evidence
    )
