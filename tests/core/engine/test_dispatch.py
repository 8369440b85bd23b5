"""Dispatch: one notice for each change, whatever goes wrong around it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

from smdbg_core import (
    Action,
    ActionConfig,
    ActionError,
    ActionResult,
    ConfigError,
    Event,
    Finding,
    Meta,
    Reads,
    Report,
    RuleConfig,
    StepView,
    TensorRule,
    UnknownOutcomeError,
    Veto,
    evaluate,
    hookimpl,
)
from smdbg_core.cli.run import exit_status
from smdbg_core.discovery.hooks import Hooks
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.action_roster import ActionEntry
from smdbg_core.engine.dispatch import Dispatcher
from smdbg_core.engine.journal import Journal
from tests.builders import write_trial

SENT: list[Event] = []


class Page(Action):
    """Remembers what it was told."""

    fail: Annotated[str, Meta(description="What to raise.")] = ""
    recipient: Annotated[str, Meta(description="Whom to tell.")] = "nobody"

    def dispatch(self, event: Event, *, dry_run: bool = False) -> ActionResult:
        faults: dict[str, BaseException] = {
            "error": ActionError("no answer; try again"),
            "unknown": UnknownOutcomeError("no answer came"),
            "bug": ValueError("a bug"),
            "exit": SystemExit(3),
            "interrupt": KeyboardInterrupt(),
        }
        if self.fail:
            raise faults[self.fail]
        if dry_run:
            return ActionResult(detail="would page", requests=[{"to": self.recipient}])
        SENT.append(event)
        return ActionResult(detail=f"paged {self.recipient}")


class Once(Page):
    """Is not repeated when nobody knows."""

    retry_unknown: Annotated[bool, Meta(local=True)] = False


class Alarm(TensorRule):
    """Fires while the value is above zero."""

    limit: Annotated[float, Meta(description="Limit.")] = 0.0
    tensors: ClassVar[str] = "^x"

    def reads(self) -> Reads:
        return Reads(patterns=(self.tensors,), statistics=("mean",))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        for tensor in step.tensors():
            yield from self.judge(tensor, "mean", tensor.statistics.mean, ">", self.limit)


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    SENT.clear()


@pytest.fixture(scope="module")
def firing(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_trial(
        tmp_path_factory.mktemp("firing") / "run",
        {n: {"x": np.ones(2), "x2": np.ones(2)} for n in range(300)},
    )


@pytest.fixture(scope="module")
def flapping(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_trial(
        tmp_path_factory.mktemp("flapping") / "run", {n: {"x": np.full(2, n % 3 - 1.0)} for n in range(30)}
    )


def judge(path: str, tmp_path: Path, *actions: Any, rules: Any = None, **options: Any) -> Report:
    return evaluate(path, rules or [Alarm()], actions=actions, state=tmp_path / "state", **options)


class Hook(Registry):
    """A registry with hook plugins of the test."""

    def __init__(self, *plugins: object) -> None:
        super().__init__()
        self._plugins = [(f"acme==1[H{number}]", plugin) for number, plugin in enumerate(plugins)]

    def load_hooks(self) -> list[tuple[str, Any]]:
        return self._plugins


def test_three_hundred_firing_steps_give_one_notice(firing: str, tmp_path: Path) -> None:
    report = judge(firing, tmp_path, Page(), job_name="demo-1")
    (sent,) = SENT
    assert (sent.state, sent.count, sent.name, sent.job_name) == ("fired", 2, "Alarm", "demo-1")
    assert sent.finding is not None
    assert (sent.finding.step, sent.finding.subject) == (0, "x")
    assert sent.run == firing
    (record,) = report.actions
    assert (record.status, record.count, record.detail) == ("sent", 600, "paged nobody")
    assert record.event == sent.id
    assert record.plugin.endswith("test_dispatch:Page")
    with Journal(tmp_path / "state") as journal:
        (row,) = journal.rows()
    assert (row.status, row.findings, row.attempts) == ("sent", 600, 1)
    assert exit_status(report, named=True) == 1


def test_the_notice_goes_out_at_the_first_finding(firing: str, tmp_path: Path) -> None:
    seen: list[int] = []
    judge(firing, tmp_path, Page(), on_step=lambda done, _: seen.append(len(SENT)))
    assert seen[0] == 1


def test_a_rerun_sends_nothing_again_and_says_so(firing: str, tmp_path: Path) -> None:
    first = judge(firing, tmp_path, Page())
    again = judge(firing, tmp_path, Page())
    assert len(SENT) == 1
    assert again.actions[0].status == "already_sent"
    assert again.actions[0].event == first.actions[0].event
    judge(
        firing, tmp_path, Page(), rules=[RuleConfig(f"{__file__}:Alarm", "other", file=f"{__file__}:Alarm")]
    )
    assert [one.name for one in SENT] == ["Alarm", "other"]
    evaluate(firing, [Alarm()], actions=[Page()], state=tmp_path / "elsewhere")
    assert len(SENT) == 3
    assert SENT[2].id == SENT[0].id


def test_what_is_clean_dispatches_nothing_and_makes_no_state(firing: str, tmp_path: Path) -> None:
    report = judge(firing, tmp_path, Page(), rules=[Alarm(limit=5)])
    assert (report.actions, SENT) == ([], [])
    assert not (tmp_path / "state").exists()
    assert judge(firing, tmp_path).actions == []
    assert not (tmp_path / "state").exists()


def test_changes_of_state_within_the_interval_are_part_of_the_notice(flapping: str, tmp_path: Path) -> None:
    page = Page(states=["fired", "cleared"])
    report = judge(flapping, tmp_path, page)
    assert [one.state for one in SENT] == ["fired", "cleared"]
    told = [(one.state, one.status, one.count) for one in report.actions]
    assert told == [("fired", "sent", 10), ("cleared", "sent", 9)]
    assert report.actions[0].detail == (
        "paged nobody; it fired 9 more times, which a rate limit made part of this notice"
    )
    with Journal(tmp_path / "state") as journal:
        assert [(row.state, row.findings, row.through) for row in journal.rows()] == [
            ("fired", 10, 29.0),
            ("cleared", 9, 26.0),
        ]


def test_a_rerun_after_the_interval_adds_no_notice(flapping: str, tmp_path: Path) -> None:
    judge(flapping, tmp_path, Page())
    rerun = judge(flapping, tmp_path, Page(min_interval=0))
    assert len(SENT) == 1
    assert [(one.status, one.count) for one in rerun.actions] == [("already_sent", 10)]
    # A part of the run changes nothing of what is known of the whole.
    judge(flapping, tmp_path, Page(min_interval=0), stop_on_first=True)
    assert judge(flapping, tmp_path, Page(min_interval=0)).actions[0].count == 10
    assert len(SENT) == 1


def test_a_rule_that_never_rests_costs_little(tmp_path: Path) -> None:
    dispatcher = Dispatcher(Hooks(), "s3://bucket/job", state=tmp_path)
    watch = dispatcher.watch("R", "R", "p", "warning", [ActionEntry("page", "Page", "p", Page())])
    assert watch is not None
    for step in range(20_000):
        watch.judged([Finding(subject="a", message="m", step=step)] if step % 2 else [], clear=True)
    dispatcher.close()
    assert [(one.status, one.count) for one in dispatcher.records()] == [("sent", 10_000)]
    with Journal(tmp_path) as journal:
        assert len(journal.rows()) == 1


def test_without_an_interval_every_change_is_told(flapping: str, tmp_path: Path) -> None:
    judge(flapping, tmp_path, Page(min_interval=0))
    assert len(SENT) == len({one.id for one in SENT}) == 10


def test_notices_of_one_hour_are_limited(firing: str, tmp_path: Path) -> None:
    rules = [RuleConfig("", f"r{number}", file=f"{__file__}:Alarm") for number in range(5)]
    report = judge(firing, tmp_path, Page(max_per_hour=2), rules=rules)
    assert [one.status for one in report.actions] == ["sent"] * 2 + ["suppressed"] * 3
    assert "max_per_hour=2" in report.actions[4].detail


@pytest.mark.parametrize(
    ("fault", "status", "says"),
    [
        ("error", "failed", "no answer; try again"),
        ("unknown", "unknown", "no answer came"),
        ("bug", "failed", "test_dispatch:Page: ValueError: a bug"),
        ("exit", "failed", "SystemExit: 3"),
    ],
)
def test_a_failed_action_is_loud_and_loses_no_finding(
    firing: str, tmp_path: Path, fault: str, status: str, says: str
) -> None:
    report = judge(firing, tmp_path, Page(fail=fault))
    (record,) = report.actions
    assert record.status == status
    assert says in record.detail
    assert report.outcomes[0].status == "fired"
    assert len(report.outcomes[0].findings) == 2
    assert exit_status(report, named=True) == 3
    assert exit_status(report, named=True, fail_on="error") == 3
    # What failed is tried again by the next evaluation, and then it is done.
    assert judge(firing, tmp_path, Page()).actions[0].status == "sent"
    assert judge(firing, tmp_path, Page()).actions[0].status == "already_sent"


@pytest.mark.parametrize(("action", "resent"), [(Page, True), (Once, False)])
def test_a_row_in_flight_at_restart_has_an_unknown_outcome(
    firing: str, tmp_path: Path, action: type[Page], resent: bool
) -> None:
    with pytest.raises(KeyboardInterrupt):
        judge(firing, tmp_path, action(fail="interrupt"))
    with Journal(tmp_path / "state") as journal:
        (before,) = journal.rows()
    assert before.status == "in_flight"
    report = judge(firing, tmp_path, action())
    (record,) = report.actions
    assert record.status == ("sent" if resent else "unknown")
    assert len(SENT) == resent
    if resent:
        assert SENT[0] == before.recorded_event
        return
    assert f"smdbg journal retry {record.event[:12]}" in record.detail
    assert exit_status(report, named=True) == 3
    assert judge(firing, tmp_path, action()).actions[0].status == "unknown"
    assert SENT == []
    assert judge(firing, tmp_path, action(retry_unknown=True)).actions[0].status == "sent"


def wrapper(
    before: BaseException | None = None, after: BaseException | None = None, result: Any = "same"
) -> object:
    class Wrapper:
        @hookimpl(wrapper=True)
        def smdbg_dispatch_action(self, action: Action, event: Event) -> Generator[None, Any, Any]:
            if before is not None:
                raise before
            got = yield
            if after is not None:
                raise after
            return got if result == "same" else result

    return Wrapper()


def test_a_veto_is_recorded_with_its_reason(firing: str, tmp_path: Path) -> None:
    hook = Hook(wrapper(before=Veto("production jobs are not stopped")))
    report = judge(firing, tmp_path, Page(), registry=hook)
    assert (report.actions[0].status, report.actions[0].detail) == (
        "vetoed",
        "production jobs are not stopped",
    )
    assert SENT == []
    with Journal(tmp_path / "state") as journal:
        assert journal.rows()[0].detail == "production jobs are not stopped"
    assert exit_status(report, named=True) == 1
    assert judge(firing, tmp_path, Page()).actions[0].status == "sent"


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(2)])
def test_a_wrapper_that_fails_means_nothing_is_sent(
    firing: str, tmp_path: Path, error: BaseException
) -> None:
    report = judge(firing, tmp_path, Page(), registry=Hook(wrapper(), wrapper(before=error)))
    assert report.actions[0].status == "failed"
    assert "acme==1[H1]: failed in smdbg_dispatch_action" in report.actions[0].detail
    assert SENT == []
    assert exit_status(report, named=True) == 3


@pytest.mark.parametrize("fault", [{"after": ValueError("x")}, {"after": Veto("late")}, {"result": None}])
def test_a_wrapper_that_fails_too_late_does_not_hide_what_was_sent(
    firing: str, tmp_path: Path, fault: dict[str, Any]
) -> None:
    report = judge(firing, tmp_path, Page(), registry=Hook(wrapper(**fault)))
    assert (report.actions[0].status, len(SENT)) == ("sent", 1)
    assert any("smdbg_dispatch_action" in text or "late" in text for text in report.warnings)


def test_a_wrapper_cannot_hide_a_failure(firing: str, tmp_path: Path) -> None:
    class Hides:
        @hookimpl(wrapper=True)
        def smdbg_dispatch_action(self) -> Generator[None, Any, Any]:
            try:
                return (yield)
            except ActionError:
                raise ValueError("something else") from None

    report = judge(firing, tmp_path, Page(fail="error"), registry=Hook(Hides()))
    assert report.actions[0].detail == "no answer; try again"


def test_a_reroute_replaces_the_dispatch(firing: str, tmp_path: Path) -> None:
    class Reroute:
        @hookimpl(tryfirst=True)
        def smdbg_dispatch_action(self, event: Event) -> Any:
            return ActionResult(detail=f"told the desk of {event.name}")

    report = judge(firing, tmp_path, Page(), registry=Hook(Reroute()))
    assert report.actions[0].detail == "rerouted by a plugin: told the desk of Alarm"
    assert (report.actions[0].status, SENT) == ("sent", [])

    class Wrong:
        @hookimpl(tryfirst=True)
        def smdbg_dispatch_action(self) -> Any:
            return "done"

    wrong = evaluate(firing, [Alarm()], actions=[Page()], state=tmp_path / "other", registry=Hook(Wrong()))
    assert (wrong.actions[0].status, SENT) == ("failed", [])
    assert "returned str, not an ActionResult" in wrong.actions[0].detail


def test_a_dry_run_shows_everything_and_leaves_nothing(flapping: str, tmp_path: Path) -> None:
    report = judge(flapping, tmp_path, Page(recipient="me"), dry_run=True)
    assert [(one.status, one.count) for one in report.actions] == [("dry_run", 10)]
    assert report.actions[0].requests == [{"to": "me"}]
    assert SENT == []
    assert not (tmp_path / "state").exists()
    judge(flapping, tmp_path, Page())
    before = (tmp_path / "state" / "journal.sqlite3").read_bytes()
    assert judge(flapping, tmp_path, Page(), dry_run=True).actions[0].status == "already_sent"
    assert (tmp_path / "state" / "journal.sqlite3").read_bytes() == before
    vetoed = judge(
        flapping, tmp_path / "fresh", Page(), dry_run=True, registry=Hook(wrapper(before=Veto("no")))
    )
    assert vetoed.actions[0].status == "vetoed"


def test_a_journal_that_cannot_be_written_is_a_warning(firing: str, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    report = judge(firing, tmp_path, Page())
    assert (report.actions[0].status, len(SENT)) == ("sent", 1)
    assert any("a rerun dispatches them again" in text for text in report.warnings)


def test_actions_serve_profiler_rules(tmp_path: Path) -> None:
    dispatcher = Dispatcher(Hooks(), "s3://bucket/job", state=tmp_path)
    entry = ActionEntry("page", "Page", "p", Page())
    watch = dispatcher.watch("CPUBottleneck", "CPUBottleneck", "p", "warning", [entry])
    assert watch is not None
    finding = Finding(
        subject="cpu", node="algo-1", message="high", window_start_us=60_000_000, window_end_us=120_000_000
    )
    for _ in range(3):
        watch.judged([finding], clear=False)
    dispatcher.close()
    (record,) = dispatcher.records()
    assert (record.status, record.count, SENT[0].run) == ("sent", 3, "s3://bucket/job")
    assert "at: 60.000 to 120.000 s, algo-1" in SENT[0].text


def test_actions_of_a_rule_and_of_all_rules(firing: str, tmp_path: Path) -> None:
    file = f"{__file__}:Alarm"
    rules = [RuleConfig("", "mine", {}, (Once(),), file), RuleConfig("", "plain", file=file)]
    report = judge(firing, tmp_path, Page, rules=rules)
    assert [(one.rule, one.name) for one in report.actions] == [
        ("mine", "Once"),
        ("mine", "Page"),
        ("plain", "Page"),
    ]


def test_mistakes_with_actions_are_reported_with_all_others(firing: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        evaluate(
            firing,
            ["AllZero", RuleConfig("Nope")],
            actions=[
                "Webhok",
                "Log",
                ActionConfig("StopFile", "a"),
                ActionConfig("StopFile", "b", {"path": "x", "pth": 1}),
            ],
            parameters={"log": {"level": "loud"}, "AllZero": {"threshold": -1}, "email": {"topic": "x"}},
        )
    assert str(caught.value).splitlines() == [
        "no action 'Webhok'; did you mean 'Webhook'?",
        "Log: level='loud': no such choice; expected one of info, warning, error",
        "StopFile (a): path needs a value: text",
        "StopFile (b): no parameter 'pth'; did you mean 'path'?",
        "parameters are given for 'email', but that action does not take part",
        "AllZero: threshold=-1: out of range; expected a number >= 0 and <= 100",
        "no rule 'Nope'",
    ]
    with pytest.raises(ConfigError, match="two actions are named 'Page'"):
        evaluate(firing, [Alarm()], actions=[Page(), Page(recipient="other")])


def test_parameters_reach_actions_by_type_or_name(firing: str, tmp_path: Path) -> None:
    page = ActionConfig("StopFile", "page", {"min_interval": 5})
    report = judge(
        firing,
        tmp_path,
        page,
        "Log",
        dry_run=True,
        parameters={"PAGE": {"path": "y"}, "stopfile": {"path": "x"}},
    )
    assert report.actions[0].requests[0]["path"] == "y"
    assert (report.actions[0].name, report.actions[0].action) == ("page", "StopFile")


def test_a_guard_that_was_lost_still_stops_everything(firing: str, tmp_path: Path) -> None:
    class Guard:
        @hookimpl(wrapper=True)
        def smdbg_evaluate(self) -> Generator[None, Any, Any]:
            raise ValueError("a bug elsewhere")
            yield

        @hookimpl(wrapper=True)
        def smdbg_dispatch_action(self) -> Generator[None, Any, Any]:
            raise Veto("never")
            yield

    class Misspelt:
        @hookimpl(wrapper=True)
        def smdbg_dispatch_action(self, evnet: Event) -> Generator[None, Any, Any]:
            return (yield)

    for guard in (Guard(), Misspelt()):
        report = judge(firing, tmp_path, Page(), registry=Hook(guard))
        assert report.actions[0].status == "failed"
        assert "acme==1[H0]: it stands around dispatch" in report.actions[0].detail
        assert SENT == []
        assert report.outcomes[0].status == "fired"
