"""What data can be judged and what cannot, and why: checks, each with the fix where there is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import msgspec

from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.evaluate import evaluate
from smdbg_core.engine.profile import Profile
from smdbg_core.errors import DataError
from smdbg_core.outcomes import Outcome
from smdbg_core.runs.profiler import Profiler
from smdbg_core.runs.run import Run, open_run
from smdbg_core.runs.trial import Trial

__all__ = ["Check", "Diagnosis", "examine"]

_FIXES = (
    ("the run has no saved tensors", "save tensors with TrialWriter or a hook of SageMaker Debugger"),
    ("the run has no profiler output", "run training under `smdbg capture -- COMMAND`"),
    ("samples of GPU", "capture on a machine with NVIDIA GPUs, with nvidia-ml-py installed"),
    ("no samples of", "run training under `smdbg capture -- COMMAND`"),
    ("when the job began", "run training under `smdbg capture -- COMMAND`"),
    ("framework events", "time the steps with TimelineWriter, or profile with torch.profiler"),
    ("needs a parameter", "give it: --param RULE.PARAMETER=VALUE"),
    ("patience", "record for longer, or set a smaller patience"),
    ("fewer", "record for longer"),
)
"""What helps against a reason, by words of it; the first that fits."""

_KINDS = {
    "metrics": "file of system metrics",
    "trace": "file of timelines",
    "tensorflow": "trace of TensorFlow",
    "pytorch": "trace of PyTorch",
}
_SHOWN = 8


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    status: Literal["pass", "note", "fail"]
    """`note`: something is missing or odd that need not be wrong."""

    subject: str
    message: str
    fix: str | None = None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All checks of one path."""

    path: str
    checks: list[Check]
    judged: list[str]
    """Rules that can judge the data."""

    unjudged: list[str]
    """Rules that cannot; a check of each says why."""


def examine(path: str, registry: Registry | None = None) -> Diagnosis:
    """Say what of the data at a path can be judged.

    The data is read once for its shape and once by all rules, so that what is said about a rule is
    what `evaluate` does. What cannot be opened is a failed check, not an exception.

    Args:
        path: A run, as `evaluate` takes it.
        registry: Where rules are found; by default those that are installed.
    """
    try:
        run = open_run(path)
    except DataError as error:
        fix = "give the folder of a trial or of profiler output, or a file of metrics or trace events"
        failed = Check(status="fail", subject="path", message=str(error), fix=fix)
        return Diagnosis(path=path, checks=[failed], judged=[], unjudged=[])
    checks = [Check(status="pass", subject="path", message=f"{run.uri}: {' and '.join(run.has)}")]
    checks += [Check(status="fail", subject="path", message=problem) for problem in run.problems]
    if run.trial is not None:
        checks += _trial(run.trial)
    if run.profiler is not None:
        checks += _profiler(run.profiler)
    outcomes = evaluate(run, registry=registry).outcomes
    checks += _damage(run)
    checks += _rules(outcomes)
    judged = [outcome.name for outcome in outcomes if _is_judged(outcome)]
    unjudged = [outcome.name for outcome in outcomes if not _is_judged(outcome)]
    return Diagnosis(path=path, checks=checks, judged=judged, unjudged=unjudged)


def _trial(trial: Trial) -> Iterator[Check]:
    steps = trial.steps()
    yield Check(
        status="pass" if steps else "fail",
        subject="steps",
        message=", ".join(f"{len(trial.steps(mode=mode))} {mode}" for mode in trial.modes) or "none saved",
    )
    yield _end(trial.ended)
    incomplete = trial.incomplete_steps()
    if incomplete:
        text = f"{len(incomplete)} steps lack the files of some workers, the first is {incomplete[0]}"
        yield Check(status="note", subject="workers", message=text)
    else:
        yield Check(status="pass", subject="workers", message=_few(list(trial.workers)))
    collections = [
        f"{name} ({len(trial.tensor_names(collection=name))})" for name in trial.collections if name != "all"
    ]
    yield Check(
        status="pass" if collections else "note",
        subject="collections",
        message=_few(collections) if collections else "none; rules find tensors by their names",
    )
    yield Check(status="pass", subject="tensors", message=f"{len(trial.tensor_names())} names")


def _profiler(profiler: Profiler) -> Iterator[Check]:
    kinds = Counter(_KINDS[file.kind] for file in profiler.files)
    layout = ", ".join(_counted(count, kind) for kind, count in kinds.items()) or "no files"
    yield Check(status="pass" if kinds else "fail", subject="layout", message=layout)
    if profiler.ignored:
        text = f"{len(profiler.ignored)} files are not read, such as {profiler.ignored[0]}"
        yield Check(status="note", subject="layout", message=text)
    if profiler.count("metrics") or profiler.count("trace"):
        yield _end(profiler.ended)
    profile = Profile(profiler)
    for node in profile.nodes.values():
        interval = f"every {node.interval:.3g} s" if node.interval is not None else "once"
        text = f"{node.ticks} ticks {interval} of {_few(sorted(node.measures))}"
        yield Check(status="pass", subject=node.name, message=text)
        if node.lost:
            text = f"{node.lost} of {node.ticks + node.lost} ticks are missing"
            yield Check(
                status="note", subject=node.name, message=text, fix="look for a machine that stood still"
            )
    if not profile.nodes:
        fix = "run training under `smdbg capture -- COMMAND`"
        yield Check(status="note", subject="system metrics", message="none", fix=fix)
    for worker, phases in profile.workers.items():
        steps = [f"{count} {phase[14:]} steps" for phase, count in phases.items() if _is_step(phase)]
        others = [f"{phase} ({count})" for phase, count in phases.most_common() if not _is_step(phase)]
        text = "; ".join(filter(None, [", ".join(steps) or "no steps", _few(others)]))
        yield Check(status="pass" if steps else "note", subject=worker, message=text)
    if not profile.workers:
        fix = "time the steps with TimelineWriter, or profile with torch.profiler"
        yield Check(status="note", subject="framework events", message="none", fix=fix)
    if profile.dropped:
        text = f"{profile.dropped} samples have no finite value, or no time"
        yield Check(status="note", subject="samples", message=text)


def _is_step(phase: str) -> bool:
    return phase.startswith("Step:ModeKeys.")


def _end(ended: bool) -> Check:
    if ended:
        return Check(status="pass", subject="end marker", message="there: the job has ended")
    text = "none: the job runs, or ended without leaving one"
    return Check(status="note", subject="end marker", message=text)


def _damage(run: Run) -> Iterator[Check]:
    found = [
        *(run.trial.damage if run.trial is not None else ()),
        *(run.profiler.damage if run.profiler is not None else ()),
    ]
    for damage in found[:_SHOWN]:
        place = damage.file if damage.offset is None else f"{damage.file} at byte {damage.offset}"
        text = f"{place}: {damage.kind}: {damage.detail}; all else is read"
        yield Check(status="fail", subject="damage", message=text)
    if len(found) > _SHOWN:
        yield Check(status="fail", subject="damage", message=f"and {len(found) - _SHOWN} more places")
    if not found:
        yield Check(status="pass", subject="damage", message="none")


def _rules(outcomes: list[Outcome]) -> Iterator[Check]:
    """One check for each rule; rules for a kind of data that is not there share one."""
    together: dict[str, list[str]] = {}
    for outcome in outcomes:
        reason = outcome.reason or ""
        if outcome.status == "error":
            yield Check(status="fail", subject=outcome.name, message=reason)
        elif _is_judged(outcome):
            yield Check(status="pass", subject=outcome.name, message=_coverage(outcome))
        elif reason.startswith("not measured: the run has no"):
            together.setdefault(reason, []).append(outcome.name)
        else:
            yield Check(status="note", subject=outcome.name, message=reason, fix=_fix(reason))
    for reason, names in together.items():
        yield Check(status="note", subject=f"{len(names)} rules", message=reason, fix=_fix(reason))


def _is_judged(outcome: Outcome) -> bool:
    return outcome.status in ("fired", "clean")


def _coverage(outcome: Outcome) -> str:
    coverage = outcome.coverage
    counts = {
        "point": coverage.points,
        "tensor": coverage.tensors,
        "step": coverage.steps,
        "series": coverage.series,
        "window": coverage.windows,
    }
    text = ", ".join(_counted(count, what) for what, count in counts.items() if count)
    return f"can be judged: {text}" if text else "can be judged"


def _fix(reason: str) -> str | None:
    return next((fix for words, fix in _FIXES if words in reason), None)


def _counted(count: int, noun: str) -> str:
    word, space, rest = noun.partition(" ")
    return f"{count} {word if count == 1 or word == 'series' else word + 's'}{space}{rest}"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
