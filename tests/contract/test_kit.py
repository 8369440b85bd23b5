"""The kit finds what is wrong with a plugin."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from smdbg_actions.log import Log
from smdbg_actions.stop_file import StopFile
from smdbg_core import (
    Action,
    ActionResult,
    Event,
    Finding,
    Meta,
    Place,
    ProfilerRule,
    Reads,
    RuleRun,
    ScanReads,
    ScanWindow,
    StepView,
    TensorRule,
    evaluate,
    statistic,
)
from smdbg_core.testing import (
    ContractError,
    FakeClock,
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


class large_rule(Large):
    """Fires when a value is large; is called as no rule may be.

    Why it matters: names are looked up without regard to case.
    What to do: begin with a capital, and leave underscores out.
    """


class Schemaless(Large):
    """Fires when a value is large; keeps its parameters to itself.

    Why it matters: forms are made from the schema.
    What to do: leave it to the framework.
    """

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {"properties": {}}


class Deaf(Large):
    """Fires when a value is large; takes text for another value.

    Why it matters: the command line gives text.
    What to do: leave conversion to the framework.
    """

    def __init__(self, **values: Any) -> None:
        super().__init__(**{name: "7" if isinstance(value, str) else value for name, value in values.items()})


@statistic("thread_of_test")
def thread_of_test(values: NDArray[Any]) -> float:
    """Where it was measured."""
    return float(threading.get_ident())


class Threaded(Large):
    """Fires when a value is large, or when it was measured elsewhere.

    Why it matters: any executor may measure.
    What to do: let statistics be pure functions.
    """

    def reads(self) -> Reads:
        return Reads(patterns=("^a",), statistics=("thread_of_test",))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            yield from self.judge(tensor, "thread", tensor.measure("thread_of_test"), ">", 0)


class Clockwise(Large):
    """Fires when a value is large, or when the first worker was the first to write.

    Why it matters: workers write when they can.
    What to do: judge what was written.
    """

    def start(self, run: RuleRun) -> None:
        self._folder = Path(run.uri)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        files = sorted(self._folder.glob("index/*/*"), key=lambda file: file.stat().st_mtime_ns)
        first = float(files[0].name.endswith("worker_0.json"))
        for tensor in step.tensors():
            yield from self.judge(tensor, "first", first, ">", 0.5)


class Destructive(Large):
    """Fires when a value is large, and tidies up.

    Why it matters: others read the run as well.
    What to do: leave it alone.
    """

    def start(self, run: RuleRun) -> None:
        self._folder = Path(run.uri)

    def finish(self, run: RuleRun) -> Iterator[Finding]:
        (self._folder / "training_job_end.ts").write_text("read")
        yield from ()


class Impatient(Large):
    """Fires when a value is large, or when nothing came for a moment.

    Why it matters: the same data is to give the same verdict.
    What to do: wait for a time that is a parameter.
    """

    def idle(self, clock: float) -> Iterator[Finding]:
        yield self.finding(Place("silence", None, None, {}), "nothing comes")


@pytest.mark.parametrize(
    ("rule", "check"),
    [
        (large_rule(), "name"),
        (Schemaless(), "schema"),
        (Deaf(), "parameters-from-text"),
        (Threaded(), "measured-anywhere"),
        (Clockwise(), "order-of-workers"),
        (Destructive(), "input-stays-as-it-was"),
        (Impatient(), "live-equals-later"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_each_property_has_a_rule_that_fails_it(rule: TensorRule, check: str) -> None:
    assert check in failed(rule)


class Picky(Large):
    """Fires when a value is large; data of one kind is too much for it.

    Why it matters: every kind comes.
    What to do: skip what cannot be judged.
    """

    dislikes: Annotated[
        Literal[
            "nan", "infinities", "empty", "zero-dimensional", "huge", "integers", "truths", "half", "text"
        ],
        Meta(description="The kind."),
    ] = "nan"

    def reads(self) -> Reads:
        return Reads(patterns=("^a",), values=True, strings=True)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            values = tensor.values
            number = values.dtype.kind == "f"
            kinds = {
                "nan": number and bool(np.isnan(values).any()),
                "infinities": number and bool(np.isinf(values).any()),
                "empty": not values.size,
                "zero-dimensional": not values.ndim,
                "huge": number and bool((np.abs(values) > 1e300).any()),
                "integers": values.dtype.kind == "i",
                "truths": values.dtype.kind == "b",
                "half": values.dtype == np.float16,
                "text": values.dtype.kind not in "fib",
            }
            if kinds[self.dislikes]:
                raise ValueError(self.dislikes)
            if number and values.size:
                yield from self.judge(tensor, "max", float(values.max()), ">", self.limit)


@pytest.mark.parametrize(
    "kind", ["nan", "infinities", "empty", "zero-dimensional", "huge", "integers", "truths", "half", "text"]
)
def test_each_kind_of_odd_data_has_a_rule_that_does_not_survive_it(kind: Any) -> None:
    names = failed(Picky(dislikes=kind))
    assert f"survives-{kind}" in names
    alike = {"huge": {"survives-infinities"}, "infinities": {"survives-huge"}}.get(kind, set())
    assert {name for name in names if name.startswith("survives-")} <= {f"survives-{kind}", *alike}


class Paired(ProfilerRule):
    """Fires when the second sample is large.

    Why it matters: there may be one.
    What to do: look before.
    """

    def reads(self) -> ScanReads:
        return ScanReads(series=("GPUUtilization",))

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        for series in window.series("GPUUtilization"):
            yield from self.judge(series, "second", float(series.values[1]), ">", 50)


def test_a_profiler_rule_that_needs_two_samples_is_found() -> None:
    fires = ProfilerBuilder().series("GPUUtilization", [1.0, 90.0])
    clean = ProfilerBuilder().series("GPUUtilization", [1.0, 9.0])
    assert failed(Paired(), fires, clean) == {"survives-single-samples"}  # type: ignore[arg-type]


class Moody(Action):
    """Says something else each time, and knows one state only."""

    _times: ClassVar[list[int]] = []

    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        self._times.append(0)
        if event.state == "cleared":
            raise ValueError(event.state)
        return ActionResult(detail="would", requests=[{"time": len(self._times)}])


def test_each_property_has_an_action_that_fails_it() -> None:
    names = set()
    for check in action_checks(Moody()):
        try:
            check()
        except Exception:
            names.add(check.name)
    assert {"dry-run-is-deterministic", "dry-run-takes-cleared-events"} <= names


def test_the_clock_lets_things_happen_at_their_time() -> None:
    clock = FakeClock()
    seen: list[float] = []
    clock.at(3, lambda: seen.append(clock.now))
    clock.at(1, lambda: seen.append(clock.now))
    clock.sleep(2)
    assert (seen, clock.monotonic()) == ([1], 2)
    clock.at(0, lambda: seen.append(clock.now))
    clock.sleep(2)
    assert (seen, clock.monotonic()) == ([1, 2, 3], 4)
