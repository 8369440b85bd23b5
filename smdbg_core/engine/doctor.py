"""What data can be judged and what cannot, and why: checks, each with the fix where there is one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

import msgspec

from smdbg_core.discovery.hooks import Hooks
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.evaluate import evaluate
from smdbg_core.engine.profile import Profile
from smdbg_core.engine.whereabouts import runs_near
from smdbg_core.errors import DataAccessError, DataError
from smdbg_core.outcomes import Outcome
from smdbg_core.runs.profiler import Profiler
from smdbg_core.runs.trial import Trial

__all__ = ["Check", "Diagnosis", "examine"]

_FIXES = (
    ("the run has no saved tensors", "save tensors with TrialWriter or a hook of SageMaker Debugger"),
    ("the run has no profiler output", "run training under `smdbg capture -- COMMAND`"),
    ("samples of GPU", "capture on a machine with NVIDIA GPUs, with nvidia-ml-py installed"),
    ("no samples of", "run training under `smdbg capture -- COMMAND`"),
    ("when the job began", "run training under `smdbg capture -- COMMAND`"),
    ("framework events", "time the steps with TimelineWriter, or profile with torch.profiler"),
    ("patience", "record for longer, or set a smaller patience"),
    ("fewer", "record for longer"),
    ("too few", "save more often (save_interval of the collection), or train for longer"),
    ("nothing matched", "save such tensors, or name yours: smdbg explain {rule} lists the parameters"),
    ("raw value not saved", "save whole tensors, not only reductions (reduction_config of the collection)"),
    ("damaged record", "copy the damaged files again; see damage above"),
    ("not applicable", "nothing: the rule is for other training"),
)
"""What helps against a reason, by words of it; the first that fits."""

_KINDS = {
    "metrics": "file of system metrics",
    "trace": "file of timelines",
    "tensorflow": "trace of TensorFlow",
    "pytorch": "trace of PyTorch",
}
_NOWHERE = (
    ("is empty", "start the job with the hook or TrialWriter writing here, or wait for its first saved step"),
    (
        "no object below this prefix",
        "look for a misspelt prefix: aws s3 ls shows what there is; or wait for the job",
    ),
    ("no step was saved", "let the job run to its first saved step, or save more often (save_interval)"),
    ("without index files", "copy the folder index of the trial as well"),
    ("no index file can be read", "copy the folder index anew from where the job wrote it"),
    ("no such folder", "look for a misspelt path"),
)
"""What helps where nothing can be opened, by words of the complaint; the first that fits."""

_EXPLAIN = "smdbg explain {rule} says what it reads"
_GIVE = "give the folder of a trial or of profiler output, or a file of metrics or trace events"
_RIGHTS = "let this user read it: chmod -R a+rX for files, s3:ListBucket and s3:GetObject on S3"
_COPY = "copy the file again from where the job wrote it; if it is damaged there too, it stays lost"
_DAMAGED = "damaged: "
_NEEDED = re.compile(r"needs a parameter: (\w+)")
_LISTED = re.compile(r"; collections with tensors: .*?(?=; did you mean|$)", re.DOTALL)
"""What the reason of each rule repeats, and the checks of collections and tensors say once."""

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
    registry = registry or Registry()
    try:
        run = Hooks(registry.load_hooks()).open_run(path, steps=None)
    except DataError as error:
        return Diagnosis(path=path, checks=[_not_opened(path, error)], judged=[], unjudged=[])
    checks = [Check(status="pass", subject="path", message=f"{run.uri}: {' and '.join(run.has)}")]
    checks += [Check(status="fail", subject="path", message=problem) for problem in run.problems]
    if run.trial is not None:
        checks += _trial(run.trial)
    if run.profiler is not None:
        checks += _profiler(run.profiler)
    report = evaluate(run, registry=registry)
    outcomes = report.outcomes
    checks += _damage(report.warnings)
    checks += _rules(outcomes)
    judged = [outcome.name for outcome in outcomes if _is_judged(outcome)]
    unjudged = [outcome.name for outcome in outcomes if not _is_judged(outcome)]
    return Diagnosis(path=path, checks=checks, judged=judged, unjudged=unjudged)


def _not_opened(path: str, error: DataError) -> Check:
    """Why a path is no run, and what to give or do instead."""
    near = runs_near(path)
    if near:
        fix = f"give {' or '.join(near)}"
    elif isinstance(error, DataAccessError):
        fix = _RIGHTS
    else:
        fix = next((fix for words, fix in _NOWHERE if words in error.message), _GIVE)
    return Check(status="fail", subject="path", message=str(error), fix=fix)


def _files(trial: Trial) -> Iterator[Check]:
    """The files of a trial, and which of them have no counterpart: what crashed or still writes left them."""
    names = {folder: list(trial.storage.names(folder)) for folder in ("collections", "events", "index")}
    unfinished = [name for folder in names.values() for name in folder if name.endswith((".tmp", ".temp"))]
    events = {name for name in names["events"] if name not in unfinished}
    indexed = {file.event_file for step in trial.steps() for file in trial.files(step)}
    counts = [
        _counted(sum(name not in unfinished for name in files), f"file in {folder}")
        for folder, files in names.items()
    ]
    yield Check(status="pass", subject="layout", message=", ".join(counts))
    alone = sorted(events - indexed)
    if alone:
        count = _counted(len(alone), "file in events")
        text = f"{count} without an index file that can be used, such as {alone[0]}"
        fix = "if the job has ended, copy the folder index anew, or rerun the job; their steps are not judged"
        yield Check(status="note" if not trial.ended else "fail", subject="layout", message=text, fix=fix)
    if unfinished:
        text = f"{_counted(len(unfinished), 'file')} not finished, such as {unfinished[0]}"
        fix = "nothing while the job runs; after its end they are what a crash left"
        yield Check(status="note", subject="layout", message=text, fix=fix)


def _trial(trial: Trial) -> Iterator[Check]:
    yield from _files(trial)
    steps = trial.steps()
    yield Check(
        status="pass" if steps else "fail",
        subject="steps",
        message=", ".join(f"{len(trial.steps(mode=mode))} {mode}" for mode in trial.modes) or "none saved",
    )
    yield _end(trial.ended)
    incomplete = trial.incomplete_steps()
    if incomplete:
        first = incomplete[0]
        silent = sorted(set(trial.workers) - {file.worker for file in trial.files(first)})
        lack = _few(silent) or f"some of {trial.num_workers} workers"
        text = f"{_counted(len(incomplete), 'step')} without the files of {lack}, from step {first} on"
        fix = "wait if the job runs; else look why the worker stopped"
        yield Check(status="note", subject="workers", message=text, fix=fix)
    else:
        yield Check(status="pass", subject="workers", message=_few(list(trial.workers)))
    collections = [
        f"{name} ({len(trial.tensor_names(collection=name))})" for name in trial.collections if name != "all"
    ]
    yield Check(
        status="pass" if collections else "note",
        subject="collections",
        message=_few(collections) if collections else "none; rules find tensors by their names",
        fix=None if collections else "copy the folder collections of the trial as well, if it has one",
    )
    names = trial.tensor_names()
    few = f": {_few(names)}" if names else ""
    status: Literal["pass", "fail"] = "pass" if names else "fail"
    yield Check(status=status, subject="tensors", message=f"{_counted(len(names), 'name')}{few}")


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
    fix = "while the job runs: smdbg run PATH --follow; else nothing"
    return Check(status="note", subject="end marker", message=text, fix=fix)


def _damage(warnings: list[str]) -> Iterator[Check]:
    """What the rules met that could not be read; a file that was refused is a matter of rights."""
    found = [text.removeprefix(_DAMAGED) for text in dict.fromkeys(warnings) if text.startswith(_DAMAGED)]
    refused = [text for text in found if ": unreadable: " in text]
    damaged = [text for text in found if text not in refused]
    for subject, texts, fix in (("rights", refused, _RIGHTS), ("damage", damaged, _COPY)):
        shown = texts[:_SHOWN] if len(texts) > _SHOWN + 1 else texts
        messages = [f"{text}; all else is read" for text in shown]
        if len(texts) > len(shown):
            messages.append(f"and {len(texts) - len(shown)} more files")
        for message in messages:
            last = message is messages[-1]
            yield Check(status="fail", subject=subject, message=message, fix=fix if last else None)
        if not texts:
            message = "none" if subject == "damage" else "all files can be read"
            yield Check(status="pass", subject=subject, message=message)


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
            message = _LISTED.sub("", reason)
            yield Check(status="note", subject=outcome.name, message=message, fix=_fix(reason, outcome.name))
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


def _fix(reason: str, rule: str = "RULE") -> str:
    needed = _NEEDED.match(reason)
    if needed is not None:
        return f"give it: --param {rule}.{needed[1]}=VALUE"
    return next((fix for words, fix in _FIXES if words in reason), _EXPLAIN).format(rule=rule)


def _counted(count: int, noun: str) -> str:
    word, space, rest = noun.partition(" ")
    return f"{count} {word if count == 1 or word == 'series' else word + 's'}{space}{rest}"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
