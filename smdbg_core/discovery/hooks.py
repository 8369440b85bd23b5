"""Hook calling: the core's own implementations, and the isolation of everybody else's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any

import pluggy

from smdbg_core import hookspecs
from smdbg_core.errors import PluginExecutionError, SmdbgError, Veto
from smdbg_core.findings import Artifact, Finding
from smdbg_core.hookspecs import PROJECT, hookimpl
from smdbg_core.runs.run import Run, open_run

if TYPE_CHECKING:
    from smdbg_core.action import Action, ActionResult, Event
    from smdbg_core.errors import ParameterProblem
    from smdbg_core.rule import Rule
    from smdbg_core.rule_run import RuleRun

__all__ = ["Hooks"]


class _Core:
    """The implementations that come last: they call the object itself.

    They remember what it did, so that the fault of a wrapper around it can be told from its own.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin a new call."""
        self.ran = False
        self.result: tuple[Any, ...] = ()
        self.failure: BaseException | None = None
        self.dispatched: object = None

    def _collect(self, produce: Callable[[], Iterable[Any]]) -> tuple[Any, ...]:
        self.ran = True
        try:
            found = tuple(produce() or ())
            for item in found:
                if not isinstance(item, Finding | Artifact):
                    message = f"it yielded {type(item).__name__}, neither a Finding nor an Artifact"
                    raise TypeError(message)
            self.result = found
        except (Exception, SystemExit) as error:
            self.failure = error
            raise
        return self.result

    @hookimpl(trylast=True)
    def smdbg_open_run(self, uri: str, options: dict[str, Any]) -> Run:
        return open_run(uri, **options)

    @hookimpl(trylast=True)
    def smdbg_evaluate(self, rule: Any, view: Any) -> tuple[Any, ...]:
        return self._collect(lambda: rule.evaluate(view))

    @hookimpl(trylast=True)
    def smdbg_finish(self, rule: Rule, run: RuleRun) -> tuple[Any, ...]:
        return self._collect(lambda: rule.finish(run))

    @hookimpl(trylast=True)
    def smdbg_dispatch_action(self, action: Action, event: Event, dry_run: bool) -> ActionResult:
        self.ran = True
        try:
            self.dispatched = action.dispatch(event, dry_run=dry_run)
        except (Exception, SystemExit) as error:
            self.failure = error
            raise
        return self.dispatched


class Hooks:
    """The registered plugins and the calls to them.

    Args:
        plugins: Pairs of identity (`distribution==version[Name]`) and object, in the order of
            registration.

    Attributes:
        problems: What went wrong with plugins, in words, in the order in which it happened.
    """

    def __init__(self, plugins: Iterable[tuple[str, object]] = ()) -> None:
        self.problems: list[str] = []
        self._lost_guards: list[str] = []
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._core = _Core()
        self._manager.register(self._core, name="smdbg-core")
        for identity, plugin in plugins:
            self.register(identity, plugin)

    @property
    def order(self) -> list[str]:
        """Identities of the registered plugins, in the order of registration."""
        return [name for name, plugin in self._manager.list_name_plugin() if plugin not in (None, self._core)]

    def has(self, hook: str) -> bool:
        """Whether any plugin implements a hook."""
        return any(
            impl.plugin is not self._core for impl in getattr(self._manager.hook, hook).get_hookimpls()
        )

    def register(self, identity: str, plugin: object) -> None:
        """Add a plugin; one that does not fit the hook specifications is refused and named."""
        with warnings.catch_warnings(record=True) as deprecated:
            warnings.simplefilter("always")
            complaint = self._register(identity, plugin)
        self.problems += [
            f"{identity}: {one.message}" for one in deprecated if issubclass(one.category, DeprecationWarning)
        ]
        if complaint is not None:
            self._mourn(identity, plugin)
            self.problems.append(f"{identity}: not registered: {complaint}")

    @classmethod
    def complaint(cls, plugin: object) -> str | None:
        """Why a plugin does not fit the hook specifications, `None` if it does."""
        return cls()._register("plugin", plugin)

    def _register(self, identity: str, plugin: object) -> str | None:
        try:
            self._manager.register(plugin, name=identity)
            unknown = self._unknown_hooks(plugin)
            complaint = f"no such hook: {', '.join(unknown)}" if unknown else None
        except pluggy.PluginValidationError as error:
            # The first of its lines names the plugin, in another spelling than ours.
            complaint = "; ".join(str(error).splitlines()[1:]) or str(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - isolation: attributes of a plugin may do anything
            complaint = _describe(error)
        if complaint is not None and self._manager.get_plugin(identity) is not None:
            self._manager.unregister(name=identity)
        return complaint

    def _unknown_hooks(self, plugin: object) -> list[str]:
        callers = self._manager.get_hookcallers(plugin) or []
        return sorted(caller.name for caller in callers if not caller.has_spec())

    def open_run(self, uri: str, **options: Any) -> Run:
        """Open a run with the first plugin that knows how.

        Raises:
            PluginExecutionError: A plugin failed while it opened the run.
        """
        return self._first("smdbg_open_run", uri=uri, options=options)  # type: ignore[no-any-return]

    def render_report(self, report: Any, format: str) -> str | None:  # noqa: A002 - the option's name
        """Render a report with the first plugin that knows the format; `None` if nobody does."""
        return self._first("smdbg_render_report", report=report, format=format)  # type: ignore[no-any-return]

    def dispatch_action(self, action: Action, event: Event, dry_run: bool) -> ActionResult:
        """Carry out an action; a wrapper that fails before its yield means that nothing is sent.

        The same holds for a wrapper that failed elsewhere, and was refused or unregistered for it.

        A wrapper that fails after the action was carried out is named in `problems`, and the result kept.

        Raises:
            Veto: A wrapper stopped it.
            ActionError: The action failed.
            PluginExecutionError: A wrapper failed, or returned something else than a result.
            Exception: Whatever else the action raised.
        """
        from smdbg_core.action import ActionResult

        if self._lost_guards:
            message = "it stands around dispatch and is not registered any more, so nothing is sent"
            raise PluginExecutionError(self._lost_guards[0], message)
        core = self._core
        core.forget()
        try:
            result = self._first("smdbg_dispatch_action", action=action, event=event, dry_run=dry_run)
        except (SmdbgError, Exception, SystemExit) as error:
            if core.failure is not None and error is not core.failure:
                self.problems.append(f"a wrapper of smdbg_dispatch_action hid a failure: {_describe(error)}")
                raise core.failure from None
            if error is core.failure or not isinstance(core.dispatched, ActionResult):
                raise
            self.problems.append(f"{_describe(error)}; the action had been carried out")
            return core.dispatched
        if isinstance(result, ActionResult):
            if core.ran or dry_run:
                return result
            return ActionResult(detail=f"rerouted by a plugin: {result.detail}", requests=result.requests)
        if isinstance(core.dispatched, ActionResult):
            self.problems.append(
                f"a wrapper of smdbg_dispatch_action returned {type(result).__name__}: ignored"
            )
            return core.dispatched
        owner = "the action" if core.ran else "a plugin"
        message = f"{owner} returned {type(result).__name__}, not an ActionResult"
        raise PluginExecutionError("smdbg_dispatch_action", message)

    def _first(self, hook: str, **arguments: Any) -> Any:
        try:
            return getattr(self._manager.hook, hook)(**arguments)
        except SmdbgError:
            raise
        except (Exception, SystemExit) as error:
            culprit = self._blame(hook, error)
            if culprit is None:
                raise
            raise PluginExecutionError(culprit, f"failed in {hook}: {_describe(error)}") from error

    def validate_parameters(self, rule: Rule, run: str) -> list[ParameterProblem]:
        """What plugins object to in a rule's parameters; a plugin that fails is named in `problems`."""
        found: list[ParameterProblem] = []
        for results in self._each(
            "smdbg_validate_parameters", rule_class=type(rule), parameters=rule.parameters, run=run
        ):
            found.extend(problem for result in results for problem in result or ())
        return found

    def notify(self, hook: str, **arguments: Any) -> None:
        """Tell every plugin; one that fails is named in `problems`, the others are told all the same."""
        for _ in self._each(hook, **arguments):
            pass

    def _each(self, hook: str, **arguments: Any) -> Iterable[list[Any]]:
        """The results of one hook, plugin by plugin, so that the failure of one costs only itself."""
        owners = [impl.plugin for impl in getattr(self._manager.hook, hook).get_hookimpls()]
        for owner in dict.fromkeys(id(plugin) for plugin in owners):
            others = [plugin for plugin in owners if id(plugin) != owner]
            try:
                yield self._manager.subset_hook_caller(hook, others)(**arguments)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - isolation
                plugin = next(plugin for plugin in owners if id(plugin) == owner)
                self.problems.append(
                    f"{self._manager.get_name(plugin)}: failed in {hook}: {_describe(error)}"
                )

    def evaluate(self, rule: Rule, view: Any, run: RuleRun) -> tuple[Finding, ...]:
        """Judge one point; see `smdbg_evaluate`.

        Raises:
            Veto: A wrapper left the point out.
            Exception: Whatever the rule raised.
        """
        return self._around("smdbg_evaluate", rule=rule, view=view, run=run)

    def finish(self, rule: Rule, run: RuleRun) -> tuple[Finding | Artifact, ...]:
        """Judge the end of the data; see `smdbg_finish`."""
        return self._around("smdbg_finish", rule=rule, run=run)

    def _around(self, hook: str, **arguments: Any) -> tuple[Any, ...]:
        self._core.forget()
        try:
            result: object = getattr(self._manager.hook, hook)(**arguments)
        except (Exception, SystemExit) as error:
            core = self._core
            if error is core.failure or (isinstance(error, Veto) and not core.ran):
                raise
            culprit = self._blame(hook, error)
            if culprit is None:
                raise
            self._unregister(culprit, f"failed in {hook}: {_describe(error)}")
            if core.failure is not None:
                raise core.failure from None
            # The rule has not run yet when the wrapper failed before its yield.
            return tuple(core.result) if core.ran else self._around(hook, **arguments)
        core_result: tuple[Any, ...] = self._core.result
        if isinstance(result, tuple | list) and all(isinstance(item, Finding | Artifact) for item in result):
            return tuple(result)
        self.problems.append(f"a wrapper of {hook} returned {type(result).__name__}, not findings: ignored")
        return core_result

    def _mourn(self, identity: str, plugin: object) -> None:
        """Remember a plugin that stood around dispatch: what it would have stopped must not go out."""
        if "smdbg_dispatch_action" in {*dir(plugin)}:
            self._lost_guards.append(identity)

    def _unregister(self, identity: str, why: str) -> None:
        self._mourn(identity, self._manager.unregister(name=identity))
        self.problems.append(f"{identity}: {why}; the plugin is unregistered, results of rules are kept")

    def _blame(self, hook: str, error: BaseException) -> str | None:
        """Identity of the plugin in whose code the exception was raised, `None` if in no plugin's."""
        owners: dict[CodeType, list[object]] = {}
        for impl in getattr(self._manager.hook, hook).get_hookimpls():
            if impl.plugin is not self._core and hasattr(impl.function, "__code__"):
                owners.setdefault(impl.function.__code__, []).append(impl.plugin)
        culprit: object | None = None
        entry: TracebackType | None = error.__traceback__
        while entry is not None:
            candidates = owners.get(entry.tb_frame.f_code)
            if candidates:
                # Plugins may share a function, as objects of one class do.
                values = entry.tb_frame.f_locals.values()
                culprit = next((one for one in candidates if any(one is v for v in values)), candidates[0])
            entry = entry.tb_next
        return None if culprit is None else self._manager.get_name(culprit)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
