"""The kit finds what is wrong with a plugin."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest

from smdbg_actions.log import Log
from smdbg_actions.stop_file import StopFile
from smdbg_core import (
    Action,
    ActionResult,
    Event,
    Finding,
    Meta,
    Place,
    Reads,
    RuleRun,
    StepView,
    TensorRule,
    evaluate,
)
from smdbg_core.testing import (
    ContractError,
    ProfilerBuilder,
    TrialBuilder,
    action_checks,
    check_action,
    check_rule,
    example_event,
    rule_checks,
)

FIRES = TrialBuilder().steps(range(3), {"a": [5.0, 6.0]})
CLEAN = TrialBuilder().steps(range(3), {"a": [1.0, 1.0]})


class Large(TensorRule):
    """Fires when a value is large.

    Why it matters: it is an example.
    What to do: nothing.
    """

    limit: Annotated[float, Meta(gt=0, description="More than this fires.")] = 3.0

    def reads(self) -> Reads:
        return Reads(patterns=("^a",), statistics=("max_abs",))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            yield from self.judge(tensor, "max_abs", tensor.statistics.max_abs, ">", self.limit)


def failed(rule: TensorRule, fires: Any = FIRES, clean: Any = CLEAN) -> set[str]:
    found = set()
    for check in rule_checks(rule, fires=fires, clean=clean):
        try:
            check()
        except Exception:
            found.add(check.name)
    return found


def test_a_good_rule_passes() -> None:
    check_rule(Large(), fires=FIRES, clean=CLEAN)
    assert failed(Large()) == set()


def test_examples_must_do_what_they_say() -> None:
    assert failed(Large(), fires=CLEAN) == {"fires-on-its-example"}
    assert failed(Large(), clean=FIRES) == {"clean-on-its-example"}
    with pytest.raises(
        ContractError, match=r"Large fails 1 checks:\n  fires-on-its-example: the outcome is clean"
    ):
        check_rule(Large(), fires=CLEAN, clean=CLEAN)


class Undocumented(Large):
    """Fires."""

    extra: Annotated[float, Meta()] = 3.0


class Leaking(Large):
    """Fires when a value is large, and remembers it in the wrong place.

    Why it matters: state of one run must not reach another.
    What to do: create it in `start`.
    """

    _seen: ClassVar[list[str]] = []

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        self._seen.append("x")
        for tensor in step.tensors():
            yield from self.judge(
                tensor, "max_abs", tensor.statistics.max_abs + len(self._seen), ">", self.limit
            )


class Fragile(Large):
    """Fires when a value is large, if it is not empty.

    Why it matters: data is not always what one expects.
    What to do: skip what cannot be judged.
    """

    def reads(self) -> Reads:
        return Reads(patterns=("^a",), values=True)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            yield from self.judge(tensor, "first", float(tensor.values[0]), ">", self.limit)


class Hasty(Large):
    """Fires at the end, whatever there was.

    Why it matters: missing is not low.
    What to do: judge only what is there.
    """

    def finish(self, run: RuleRun) -> Iterator[Finding]:
        yield self.finding(Place("everything", None, None, {}), "too late")


class Unpicklable(Large):
    """Fires when a value is large; holds what cannot travel.

    Why it matters: measuring may run elsewhere.
    What to do: keep such things out of the constructor.
    """

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self._socket = lambda: None


def test_a_bad_rule_fails_where_it_is_bad() -> None:
    assert failed(Undocumented()) == {"documentation"}
    assert {"deterministic", "state-stays-within-a-run"} <= failed(Leaking())
    assert {"survives-empty", "survives-zero-dimensional"} <= failed(Fragile())
    assert "nothing-selected" in failed(Hasty())
    assert "pickles" in failed(Unpicklable())


class Lenient(Large):
    """Fires when a value is large; takes anything as its limit.

    Why it matters: a mistake should be told at once.
    What to do: leave conversion to the framework.
    """

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValueError:
            super().__init__()


def test_values_that_are_swallowed_are_found() -> None:
    assert "bad-values-are-refused" in failed(Lenient())


class Chatty(Action):
    """Sends even when it should not."""

    port: Annotated[int, Meta(gt=0, description="Where to.")] = 9

    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        with socket.socket() as opened:
            opened.connect(("127.0.0.1", self.port))
        return ActionResult(detail="")


@pytest.mark.parametrize("action", [Log(), StopFile(path="stop")], ids=lambda action: type(action).__name__)
def test_our_local_actions_pass(action: Action) -> None:
    check_action(action)


def test_a_bad_action_fails() -> None:
    names = set()
    for check in action_checks(Chatty()):
        try:
            check()
        except Exception:
            names.add(check.name)
    assert {"dry-run-says-what-it-would-do", "dry-run-opens-no-connection"} <= names


def test_an_example_event_can_be_changed() -> None:
    assert example_event(state="cleared").state == "cleared"
    assert example_event().finding is not None


def test_builders_write_what_they_are_told(tmp_path: Path) -> None:
    report = evaluate(FIRES.write(tmp_path / "trial"), [Large()])
    assert report.run.steps == 3
    job = ProfilerBuilder().series("MemoryUsedPercent", [1.0, 2.0]).write(tmp_path / "job")
    assert evaluate(job, ["OverallSystemUsage"]).outcomes[0].status == "clean"


class Started(Large):
    """Fires when a value is large; keeps its state where it belongs.

    Why it matters: it is an example.
    What to do: nothing.
    """

    def start(self, run: RuleRun) -> None:
        self._count = 0

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        self._count += 1
        yield from super().evaluate(step)


def test_state_from_start_is_fine() -> None:
    assert failed(Started()) == set()
