"""Hook calling: vetoes, reroutes, and the isolation of faults."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from smdbg_core import Event, Finding, ParameterProblem, PluginExecutionError, Veto, hookimpl, hookspecs
from smdbg_core.action import ActionResult
from smdbg_core.discovery.hooks import Hooks

FOUND = Finding(subject="a", message="m")


class Rule:
    """Stands for a rule."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.parameters: dict[str, Any] = {}
        self.error = error
        self.calls = 0

    def evaluate(self, view: object) -> Iterator[Finding]:
        self.calls += 1
        if self.error is not None:
            raise self.error
        yield FOUND

    def finish(self, run: object) -> tuple[Finding, ...]:
        return (FOUND,)


def evaluate(hooks: Hooks, rule: Rule) -> tuple[Finding, ...]:
    return hooks.evaluate(rule, None, None)  # type: ignore[arg-type]


def wrapper(
    before: BaseException | None = None, after: BaseException | None = None, result: Any = "same"
) -> object:
    class Wrapper:
        @hookimpl(wrapper=True)
        def smdbg_evaluate(self, rule: Any) -> Generator[None, Any, Any]:
            if before is not None:
                raise before
            found = yield
            if after is not None:
                raise after
            return found if result == "same" else result

    return Wrapper()


def test_the_core_calls_the_rule() -> None:
    assert evaluate(Hooks(), Rule()) == (FOUND,)
    assert Hooks().finish(Rule(), None) == (FOUND,)  # type: ignore[arg-type]


def test_a_veto_comes_through_and_the_rule_does_not_run() -> None:
    rule = Rule()
    with pytest.raises(Veto, match="not now"):
        evaluate(Hooks([("acme==1[V]", wrapper(before=Veto("not now")))]), rule)
    assert rule.calls == 0


@pytest.mark.parametrize(
    "fault", [{"before": ValueError("x")}, {"after": ValueError("x")}, {"after": Veto("late")}]
)
def test_a_wrapper_that_fails_is_named_and_the_result_kept(fault: dict[str, BaseException]) -> None:
    hooks = Hooks([("acme==1[Bad]", wrapper(**fault)), ("acme==1[Good]", wrapper())])
    rule = Rule()
    assert evaluate(hooks, rule) == (FOUND,)
    assert rule.calls == 1
    assert hooks.order == ["acme==1[Good]"]
    (problem,) = hooks.problems
    assert problem.startswith("acme==1[Bad]: failed in smdbg_evaluate")
    assert evaluate(hooks, rule) == (FOUND,)


@pytest.mark.parametrize("error", [ValueError("mine"), SystemExit(3)])
def test_a_rule_that_fails_is_not_blamed_on_wrappers(error: BaseException) -> None:
    hooks = Hooks([("acme==1[W]", wrapper())])
    with pytest.raises(type(error)):
        evaluate(hooks, Rule(error))
    assert hooks.order == ["acme==1[W]"]


def test_a_wrapper_may_drop_findings_but_not_return_anything_else() -> None:
    assert evaluate(Hooks([("a==1[W]", wrapper(result=()))]), Rule()) == ()
    hooks = Hooks([("a==1[W]", wrapper(result=5))])
    assert evaluate(hooks, Rule()) == (FOUND,)
    assert "returned int, not findings" in hooks.problems[0]


def test_a_reroute_replaces_the_call() -> None:
    class Reroute:
        @hookimpl(tryfirst=True)
        def smdbg_evaluate(self) -> tuple[Finding, ...]:
            return (Finding(subject="other", message="m"),)

    rule = Rule()
    assert evaluate(Hooks([("a==1[R]", Reroute())]), rule)[0].subject == "other"
    assert rule.calls == 0


def test_plugins_that_do_not_fit_are_refused_and_named() -> None:
    class Renamed:
        @hookimpl
        def smdbg_run_finished(self, reprot: Any) -> None: ...

    class Unknown:
        @hookimpl
        def smdbg_no_such_hook(self) -> None: ...

    class Hostile:
        @property
        def smdbg_evaluate(self) -> None:
            raise RuntimeError("no")

    hooks = Hooks([("a==1[Renamed]", Renamed()), ("a==1[Unknown]", Unknown()), ("a==1[Hostile]", Hostile())])
    assert evaluate(hooks, Rule()) == (FOUND,)
    assert "reprot" in hooks.problems[0]
    assert "no such hook: smdbg_no_such_hook" in hooks.problems[1]
    assert hooks.order in ([], ["a==1[Hostile]"])


def test_one_failing_listener_costs_only_itself() -> None:
    told: list[str] = []

    class Bad:
        @hookimpl
        def smdbg_run_finished(self) -> None:
            raise ValueError("x")

    class Good:
        @hookimpl
        def smdbg_run_finished(self, report: Any) -> None:
            told.append(report)

    hooks = Hooks([("a==1[Good]", Good()), ("a==1[Bad]", Bad()), ("b==1[Good]", Good())])
    hooks.notify("smdbg_run_finished", report="r")
    assert told == ["r", "r"]
    assert hooks.problems == ["a==1[Bad]: failed in smdbg_run_finished: ValueError: x"]


def test_objections_to_parameters_are_collected() -> None:
    class Strict:
        @hookimpl
        def smdbg_validate_parameters(self, parameters: dict[str, Any]) -> list[ParameterProblem]:
            return [ParameterProblem("p", "value", "too low")]

    hooks = Hooks([("a==1[S]", Strict()), ("b==1[S]", Strict())])
    assert len(hooks.validate_parameters(Rule(), "run")) == 2  # type: ignore[arg-type]


class Action:
    """Stands for an action."""

    sent = 0

    def dispatch(self, event: Event, *, dry_run: bool) -> ActionResult:
        self.sent += 1
        return ActionResult(detail="sent")


EVENT = Event(id="1", run="r", rule="R", name="R", plugin="p", state="fired", time=0.0)


def test_a_failing_wrapper_around_dispatch_means_nothing_is_sent() -> None:
    class Bad:
        @hookimpl(wrapper=True)
        def smdbg_dispatch_action(self) -> Generator[None, Any, Any]:
            raise ValueError("x")
            yield

    class Stop:
        @hookimpl(wrapper=True)
        def smdbg_dispatch_action(self) -> Generator[None, Any, Any]:
            raise Veto("production")
            yield

    action: Any = Action()
    assert Hooks().dispatch_action(action, EVENT, dry_run=False).detail == "sent"
    with pytest.raises(PluginExecutionError, match=r"a==1\[Bad\]: failed in smdbg_dispatch_action"):
        Hooks([("a==1[Bad]", Bad())]).dispatch_action(action, EVENT, dry_run=False)
    with pytest.raises(Veto, match="production"):
        Hooks([("a==1[Stop]", Stop())]).dispatch_action(action, EVENT, dry_run=False)
    assert action.sent == 1


def test_formats_of_plugins() -> None:
    class Renderer:
        @hookimpl
        def smdbg_render_report(self, format: str) -> str | None:  # noqa: A002
            return "text" if format == "mine" else None

    hooks = Hooks([("a==1[R]", Renderer())])
    assert hooks.has("smdbg_render_report")
    assert not Hooks().has("smdbg_render_report")
    assert hooks.render_report(None, "mine") == "text"
    assert hooks.render_report(None, "other") is None


def test_deprecated_hooks_and_arguments_work_and_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mechanism that the stability policy promises."""

    def smdbg_old(report: object) -> None:
        """A hook that is to go."""

    def smdbg_run_finished(report: object, verdict: object) -> None:
        """A hook of which an argument is to go."""

    marked = hookspecs.hookspec(
        warn_on_impl=DeprecationWarning("smdbg_old goes with 0.4: use smdbg_run_finished")
    )
    monkeypatch.setattr(hookspecs, "smdbg_old", marked(smdbg_old), raising=False)
    argument = hookspecs.hookspec(
        warn_on_impl_args={"verdict": DeprecationWarning("`verdict` goes with 0.4: use report.fired")}
    )
    monkeypatch.setattr(hookspecs, "smdbg_run_finished", argument(smdbg_run_finished))
    seen: list[object] = []

    class Old:
        @hookimpl
        def smdbg_old(self, report: object) -> None:
            seen.append(report)

        @hookimpl
        def smdbg_run_finished(self, verdict: object) -> None:
            seen.append(verdict)

    class New:
        @hookimpl
        def smdbg_run_finished(self, report: object) -> None:
            seen.append(report)

    hooks = Hooks([("old==1[x]", Old()), ("new==1[x]", New())])
    assert sorted(hooks.problems) == [
        "old==1[x]: `verdict` goes with 0.4: use report.fired",
        "old==1[x]: smdbg_old goes with 0.4: use smdbg_run_finished",
    ]
    hooks.notify("smdbg_run_finished", report=1, verdict=2)
    assert sorted(seen) == [1, 2]  # type: ignore[type-var]
