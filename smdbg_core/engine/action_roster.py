"""The roster of actions: which actions each rule has, made and checked before any data is opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from smdbg_core.action import Action
from smdbg_core.discovery.registry import Registry
from smdbg_core.errors import ConfigError, ParameterError, PluginError

__all__ = ["ActionConfig", "ActionEntry", "ActionRoster", "AskedAction"]

_KINDS = ("action",)


class ActionConfig(NamedTuple):
    """One configured action, as a configuration file or a call has it."""

    type: str
    """Name of the action: bare, or `distribution[Name]`."""

    name: str | None = None
    """Name of this instance; the action's by default."""

    parameters: Mapping[str, Any] = {}


AskedAction: TypeAlias = str | Action | type[Action] | ActionConfig
"""An action as a caller may name it."""


class ActionEntry(NamedTuple):
    """An action that takes part."""

    name: str
    type: str
    plugin: str
    action: Action


class ActionRoster:
    """All actions of one evaluation.

    Args:
        registry: Where names are looked up.
        everywhere: Actions of every rule.
        own: Actions that single rules have of their own.
        parameters: Values for rules and actions, by name in any case.

    Attributes:
        problems: Everything that is wrong with what was asked for.
        other_parameters: Those of `parameters` that are no action's.
    """

    def __init__(
        self,
        registry: Registry,
        everywhere: Iterable[AskedAction] = (),
        own: Iterable[AskedAction] = (),
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.problems: list[str] = []
        self._registry = registry
        self._parameters = {name.casefold(): values for name, values in (parameters or {}).items()}
        self._used: set[str] = set()
        self._entries: dict[str, ActionEntry] = {}
        self._failed: set[str] = set()
        self._everywhere = self._resolve_all(everywhere)
        self._resolve_all(own)
        self.other_parameters = {
            name: values for name, values in (parameters or {}).items() if not self._is_action(name)
        }

    def _is_action(self, name: str) -> bool:
        """Whether parameters of that name are an action's; complain if it does not take part."""
        key = name.casefold()
        if key in self._used or key in self._failed:
            return True
        specs = self._registry
        if any(spec.name.casefold() == key for spec in (*specs.rules(), *specs.profiler_rules())):
            return False
        if any(spec.name.casefold() == key for spec in specs.actions()):
            self.problems.append(f"parameters are given for {key!r}, but that action does not take part")
            return True
        return False

    def __bool__(self) -> bool:
        return bool(self._entries)

    def of(self, own: Iterable[AskedAction]) -> list[ActionEntry]:
        """The actions of a rule that has `own` ones, each once."""
        every = (*self._resolve_all(own), *self._everywhere)
        return list({entry.name: entry for entry in every}.values())

    def _resolve_all(self, asked: Iterable[AskedAction]) -> list[ActionEntry]:
        found = [self._resolve(one) for one in asked]
        return [entry for entry in found if entry is not None]

    def _resolve(self, asked: AskedAction) -> ActionEntry | None:
        if isinstance(asked, Action):
            name = type(asked).__name__
            return self._enter(ActionEntry(name, name, self._registry.identify(type(asked)), asked))
        if isinstance(asked, type):
            name = asked.__name__
            action = self._make(asked, name, self._given(name))
            identity = self._registry.identify(asked)
            return None if action is None else self._enter(ActionEntry(name, name, identity, action))
        config = asked if isinstance(asked, ActionConfig) else ActionConfig(str(asked))
        try:
            loaded = self._registry.resolve(config.type, _KINDS)
        except PluginError:
            raise
        except ConfigError as error:
            self._complain(config.name or config.type, str(error))
            return None
        spec = loaded.spec
        name = config.name or spec.name
        given = {**self._given(spec.name), **config.parameters, **(self._given(name) if config.name else {})}
        action = self._make(loaded.object, name, given)
        return None if action is None else self._enter(ActionEntry(name, spec.name, spec.identity, action))

    def _given(self, name: str) -> Mapping[str, Any]:
        key = name.casefold()
        if key in self._parameters:
            self._used.add(key)
        return self._parameters.get(key, {})

    def _make(self, action_class: type[Action], name: str, parameters: Mapping[str, Any]) -> Action | None:
        try:
            return action_class(**parameters)
        except ParameterError as error:
            owner = error.owner if name == error.owner else f"{error.owner} ({name})"
            self._complain(name, str(ParameterError(owner, error.problems)))
            return None

    def _complain(self, name: str, problem: str) -> None:
        """An action that several rules have is complained of once."""
        if name.casefold() not in self._failed:
            self._failed.add(name.casefold())
            self.problems.append(problem)

    def _enter(self, entry: ActionEntry) -> ActionEntry | None:
        known = self._entries.setdefault(entry.name.casefold(), entry)
        if known is entry or (
            type(known.action) is type(entry.action) and known.action.parameters == entry.action.parameters
        ):
            return known
        self._complain(
            entry.name, f"two actions are named {entry.name!r}: give each instance a name of its own"
        )
        return None
