"""`check_rule`: the whole contract of a rule."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from smdbg_core.engine.evaluate import evaluate
from smdbg_core.engine.follow import follow
from smdbg_core.outcomes import Outcome
from smdbg_core.rule import ProfilerRule, Rule
from smdbg_core.testing.clock import FakeClock
from smdbg_core.testing.contract import Check, common_checks, require, run_checks
from smdbg_core.testing.profiler_builder import ProfilerBuilder
from smdbg_core.testing.trial_builder import TrialBuilder

__all__ = ["Example", "check_rule", "rule_checks"]

Example: TypeAlias = TrialBuilder | ProfilerBuilder
"""A trial or a profiler output, not written yet."""

_ODD: dict[str, Callable[[], Any]] = {
    "nan": lambda: np.array([np.nan, 1.0, -1.0, 0.5]),
    "infinities": lambda: np.array([np.inf, -np.inf, 0.0, 1.0]),
    "empty": lambda: np.empty((0, 4)),
    "zero-dimensional": lambda: np.array(3.0),
    "huge": lambda: np.array([1e308, -1e308, 1e308]),
    "integers": lambda: np.arange(8, dtype=np.int64).reshape(2, 4),
    "truths": lambda: np.array([True, False, True]),
    "half": lambda: np.array([1.0, 65504.0, -2.0], np.float16),
    "text": lambda: np.array(["a", "b"]),
}


def check_rule(rule: Rule, *, fires: Example | None, clean: Example) -> None:
    """Check the whole contract of a rule.

    Args:
        rule: The rule, configured so that the examples say something.
        fires: Data on which it fires; `None` for a rule that only measures.
        clean: Data that it judges and on which it stays silent.

    Raises:
        ContractError: Everything that does not hold, together.
    """
    run_checks(type(rule), rule_checks(rule, fires=fires, clean=clean))


def rule_checks(rule: Rule, *, fires: Example | None, clean: Example) -> list[Check]:
    """The properties of the contract one by one, to be parametrized over.

    @pytest.mark.parametrize("check", rule_checks(MyRule(), fires=..., clean=...), ids=str)
    def test_contract(check):
        check()
    """
    return [*_checks(rule, fires, clean)]


def _checks(rule: Rule, fires: Example | None, clean: Example) -> Iterator[Check]:
    yield from common_checks(type(rule), lambda: rule)
    yield Check("clean-on-its-example", lambda: _expect(rule, clean, "clean"))
    if fires is not None:
        yield Check("fires-on-its-example", lambda: _expect(rule, fires, "fired"))
    example = clean if fires is None else fires
    yield Check("deterministic", lambda: _same(_judge(rule, example), _judge(rule, example), "a second time"))
    yield Check("state-stays-within-a-run", lambda: _check_state(rule, example, clean))
    yield Check("input-stays-as-it-was", lambda: _check_input(rule, example))
    yield Check("live-equals-later", lambda: _check_live(rule, example))
    yield Check("measured-anywhere", lambda: _check_executor(rule, example))
    yield Check("nothing-selected", lambda: _check_nothing(rule))
    if isinstance(example, TrialBuilder):
        yield Check("order-of-workers", lambda: _check_workers(rule, example))
        for name, value in _ODD.items():
            yield Check(f"survives-{name}", lambda value=value: _check_odd(rule, example, value()))  # type: ignore[misc]
    else:
        yield Check("survives-single-samples", lambda: _check_single(rule))


def _judge(rule: Rule, example: Example, **options: Any) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        workers = {"workers": options.pop("workers")} if "workers" in options else {}
        path = example.write(Path(folder) / "run", **workers)
        report = evaluate(path, [rule], **options)
        return report.outcome(type(rule).__name__)


def _expect(rule: Rule, example: Example, status: str) -> None:
    outcome = _judge(rule, example)
    require(outcome.status == status, _said(outcome, status))


def _said(outcome: Outcome, wanted: str) -> str:
    why = outcome.reason or "; ".join(finding.message for finding in outcome.findings[:2])
    return f"the outcome is {outcome.status}, not {wanted}" + (f": {why}" if why else "")


def _same(one: Outcome, other: Outcome, when: str) -> None:
    require(one == other, f"the outcome differs {when}: {one.status} and {other.status}")


def _check_state(rule: Rule, example: Example, clean: Example) -> None:
    before = copy.deepcopy(rule.__dict__)
    first = _judge(rule, example)
    _judge(rule, clean)
    _same(first, _judge(rule, example), "after another run; create state in `start`")
    require(rule.__dict__ == before, "a run changes the object that was given; the engine works on a copy")


def _check_input(rule: Rule, example: Example) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(example.write(Path(folder) / "run"))
        before = {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
        evaluate(path, [rule])
        after = {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}
        require(before == after, "files of the run are not what they were before it was judged")


def _check_live(rule: Rule, example: Example) -> None:
    """Follow a copy that comes file by file, tensors and events before the index that tells of them."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(example.write(Path(folder) / "source"))
        target = Path(folder) / "run"
        clock = FakeClock()
        files = sorted(source.rglob("*"), key=lambda file: ("end" in file.name, file.name, str(file)))
        for number, file in enumerate(file for file in files if file.is_file()):
            place = target / file.relative_to(source)
            clock.at(number, lambda file=file, place=place: _arrive(file, place))  # type: ignore[misc]
        live = follow(target, [rule], clock=clock, poll=1, idle_timeout=60)
        name = type(rule).__name__
        _same(live.outcome(name), evaluate(target, [rule]).outcome(name), "when the run is followed")


def _arrive(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_suffix(".tmp")
    shutil.copyfile(file, draft)
    draft.rename(place)


def _check_executor(rule: Rule, example: Example) -> None:
    with ThreadPoolExecutor(2) as pool:
        _same(_judge(rule, example), _judge(rule, example, executor=pool), "when threads measure")


def _check_nothing(rule: Rule) -> None:
    empty: Example = (
        ProfilerBuilder().series("zzz", [1.0, 2.0], device="zzz")
        if isinstance(rule, ProfilerRule)
        else TrialBuilder().steps(range(3), {"zzz": ["text"]})
    )
    outcome = _judge(rule, empty)
    require(outcome.status == "not_evaluated", "with nothing to judge, " + _said(outcome, "not_evaluated"))
    require(bool(outcome.reason), "with nothing to judge, the outcome gives no reason")


def _check_workers(rule: Rule, example: TrialBuilder) -> None:
    names = ("worker_0", "worker_1")
    one, other = (_judge(rule, example, workers=order) for order in (names, names[::-1]))
    _same(one, other, "when workers write in another order")


def _check_odd(rule: Rule, example: TrialBuilder, value: Any) -> None:
    odd = TrialBuilder()
    for number, mode in example.numbers:
        odd.step(number, dict.fromkeys(example.names, value), mode=mode)
    outcome = _judge(rule, odd)
    require(outcome.status != "error", _said(outcome, "a verdict") + f"\n{outcome.traceback or ''}")


def _check_single(rule: Rule) -> None:
    single = ProfilerBuilder()
    for measure in ("GPUUtilization", "GPUMemoryUtilization", "CPUUtilization", "I/OWaitPercentage"):
        single.series(measure, [0.0])
    single.series("MemoryUsedPercent", [0.0]).steps([0.0])
    outcome = _judge(rule, single)
    require(outcome.status != "error", _said(outcome, "a verdict") + f"\n{outcome.traceback or ''}")
