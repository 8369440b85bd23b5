"""The registry: what is installed, what may be used, and under which name."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

from smdbg_core.discovery.finder import PluginSpec, find
from smdbg_core.discovery.identity import Identity
from smdbg_core.discovery.loader import SLOW_SECONDS, Loaded, load, unmet_requirements
from smdbg_core.discovery.policy import FIRST_PARTY, Policy
from smdbg_core.errors import (
    ConfigError,
    PluginConflictError,
    PluginContractError,
    PluginError,
    PluginIncompatibleError,
)
from smdbg_core.spelling import nearest

__all__ = ["PluginState", "Registry"]

_RULES = ("rule", "profiler rule")
_CURRENT: ContextVar[Registry | None] = ContextVar("current registry", default=None)


class PluginState(NamedTuple):
    """A plugin, and what became of it."""

    spec: PluginSpec
    state: str
    """`found`, `loaded`, `disabled`, `conflict`, `incompatible` or `broken`."""

    cause: str | None
    """Why it is in that state, or what is odd about it although it works."""

    seconds: float | None
    """How long the import took, if it was tried; that of modules which plugins share counts for the first."""


class Registry:
    """The plugins of this environment. Finding them imports nothing; each is loaded when it is asked for.

    Args:
        policy: Which may take part; the environment adds to it.
        specs: Plugins to use instead of those that are installed.
    """

    def __init__(self, policy: Policy | None = None, specs: Iterable[PluginSpec] | None = None) -> None:
        self.policy = Policy.from_environment(policy)
        self._specs = find() if specs is None else sorted(specs, key=lambda s: (s.distribution, s.name))
        self._loaded: dict[PluginSpec, Loaded | PluginError] = {}
        self._seconds: dict[PluginSpec, float] = {}
        self._against = {spec: self.policy.reason_against(spec) for spec in self._specs}
        self._conflicts = self._find_conflicts()
        self._problems = self.policy.misspelt(self._specs)
        self._problems += [f"{spec.identity}: {why}" for spec, why in self._conflicts.items()]
        self.policy.require(self._specs)
        if self.policy.strict and self._problems:
            raise ConfigError("\n".join(self._problems))

    @staticmethod
    def current() -> Registry:
        """The registry of the evaluation that is under way, else one of what is installed.

        Rules that are made of other rules look these up here.
        """
        return _CURRENT.get() or Registry()

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make this registry the current one within a `with` statement."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def _find_conflicts(self) -> dict[PluginSpec, str]:
        """Plugins that cannot have their bare name; the order of installation plays no part."""
        claims: dict[tuple[str, str], list[PluginSpec]] = {}
        for spec in self._specs:
            if self._against[spec] is None and spec.kind != "hooks":
                space = "rule" if spec.kind in _RULES else spec.kind
                claims.setdefault((space, spec.name.casefold()), []).append(spec)
        conflicts = {}
        for claimants in claims.values():
            owners = [spec for spec in claimants if spec.distribution in FIRST_PARTY]
            for spec in claimants if len(claimants) > 1 else ():
                others = ", ".join(other.identity for other in claimants if other is not spec)
                if not owners:
                    conflicts[spec] = f"{spec.name} is claimed by {others} too: say {spec.qualified}"
                elif spec is not owners[0]:
                    conflicts[spec] = f"{spec.name} belongs to {owners[0].identity}: say {spec.qualified}"
        return conflicts

    def rules(self) -> list[PluginSpec]:
        """Debugger rules that may take part, sorted by distribution, then name."""
        return self._of("rule")

    def profiler_rules(self) -> list[PluginSpec]:
        """Profiler rules that may take part."""
        return self._of("profiler rule")

    def actions(self) -> list[PluginSpec]:
        """Actions that may take part."""
        return self._of("action")

    def _of(self, kind: str) -> list[PluginSpec]:
        return [spec for spec in self._specs if spec.kind == kind and self._against[spec] is None]

    def has_bare_name(self, spec: PluginSpec) -> bool:
        """Whether the plugin can be called by its name alone."""
        return spec not in self._conflicts

    def shortest_name(self, spec: PluginSpec) -> str:
        """The name by which the plugin can be called: the bare one, if it has that."""
        return spec.name if self.has_bare_name(spec) else spec.qualified

    def resolve(self, name: str, kinds: Iterable[str] = _RULES) -> Loaded:
        """Load the plugin of that name, in any spelling that lists show.

        Args:
            name: `Name` in any case, `distribution[Name]` or `distribution==version[Name]`.
            kinds: Kinds of plugin to look among.

        Raises:
            ConfigError: There is no such plugin, or it is disabled.
            PluginConflictError: Several have this name.
            PluginError: It cannot be used.
        """
        kinds = tuple(kinds)
        identity = Identity.parse(name)
        among = [spec for spec in self._specs if spec.kind in kinds]
        meant = [
            spec
            for spec in among
            if identity is not None
            and identity.name is not None
            and spec.name.casefold() == identity.name
            and identity.means(spec.distribution, spec.name)
        ]
        allowed = [spec for spec in meant if self._against[spec] is None]
        if identity is not None and identity.distribution is None and len(allowed) > 1:
            owned = [spec for spec in allowed if self.has_bare_name(spec)]
            if not owned:
                spellings = " or ".join(spec.qualified for spec in allowed)
                raise PluginConflictError(allowed[0].name, f"several plugins have this name: say {spellings}")
            allowed = owned
        if allowed:
            return self.load(allowed[0])
        if meant:
            message = f"{meant[0].identity} is not used: {self._against[meant[0]]}"
            raise ConfigError(message)
        raise ConfigError(self._unknown(name, kinds, among))

    def _unknown(self, name: str, kinds: tuple[str, ...], among: list[PluginSpec]) -> str:
        noun = "rule" if kinds == _RULES else " or ".join(kinds)
        if not among:
            return (
                f'no {noun} {name!r}: no {noun}s are installed; pip install "smdbg-core[all]" installs them'
            )
        return f"no {noun} {name!r}{nearest(name, (spec.name for spec in among))}"

    def load(self, spec: PluginSpec) -> Loaded:
        """Load one plugin, once.

        Raises:
            PluginError: It cannot be used; the same every time.
        """
        known = self._loaded.get(spec)
        if known is None:
            started = time.perf_counter()
            try:
                known = load(spec)
            except PluginError as error:
                known = error
            self._seconds[spec] = time.perf_counter() - started
            if self._seconds[spec] > SLOW_SECONDS:
                self._problems.append(f"{spec.identity}: importing it took {self._seconds[spec]:.1f} s")
            if isinstance(known, Loaded):
                self._problems += [f"{spec.identity}: {text}" for text in _oddities(spec)]
            self._loaded[spec] = known
        if isinstance(known, PluginError):
            raise known
        return known

    def _try(self, spec: PluginSpec) -> PluginError | None:
        """Load a plugin and say why it cannot be used, `None` if it can."""
        try:
            loaded = self.load(spec)
        except PluginError as error:
            return error
        if spec.kind != "hooks":
            return None
        from smdbg_core.discovery.hooks import Hooks  # lists without hook plugins need no NumPy

        complaint = Hooks.complaint(loaded.object)
        return None if complaint is None else PluginContractError(spec.identity, complaint)

    def load_hooks(self) -> list[tuple[str, Any]]:
        """Load all hook-only plugins: identity and object, in the order of registration.

        One that does not fit the hook specifications is among them: `Hooks` refuses it, and knows then what
        it would have stood around.

        Raises:
            ConfigError: A required plugin of any kind cannot be used.
            PluginError: For the first that cannot be used, in strict mode.
        """
        required = [
            spec for spec in self._specs if self._against[spec] is None and self.policy.requires(spec)
        ]
        broken = [f"required plugin {error}" for spec in required if (error := self._try(spec)) is not None]
        if broken:
            raise ConfigError("\n".join(broken))
        loaded = []
        for spec in self._of("hooks"):
            error = self._try(spec)
            if error is not None and self.policy.strict:
                raise error
            known = self._loaded[spec]
            if isinstance(known, Loaded):
                loaded.append((spec.identity, known.object))
            else:
                self._problems.append(str(known))
        return loaded

    def problems(self) -> list[str]:
        """What is wrong with plugins that nobody asked for, a line each."""
        return list(dict.fromkeys(self._problems))

    def identify(self, plugin_class: type) -> str:
        """Identity of the plugin that provides a class; its module, if none does."""
        value = f"{plugin_class.__module__}:{plugin_class.__qualname__}"
        for spec in self._specs:
            if spec.value == value:
                return spec.identity
        return value

    def states(self, *, load_all: bool = False) -> list[PluginState]:
        """Every plugin that is installed and what became of it, sorted by distribution, then name.

        Args:
            load_all: Whether to load those that may take part first.
        """
        return [self._state(spec, load_all) for spec in self._specs]

    def _state(self, spec: PluginSpec, load_first: bool) -> PluginState:
        against = self._against[spec]
        if against is not None:
            return PluginState(spec, "disabled", against, None)
        error = self._try(spec) if load_first or spec in self._loaded else None
        seconds = self._seconds.get(spec)
        if error is not None:
            incompatible = isinstance(error, PluginIncompatibleError)
            return PluginState(spec, "incompatible" if incompatible else "broken", error.message, seconds)
        if spec in self._conflicts:
            return PluginState(spec, "conflict", self._conflicts[spec], seconds)
        if spec not in self._loaded:
            return PluginState(spec, "found", None, None)
        return PluginState(spec, "loaded", "; ".join(_oddities(spec)) or None, seconds)


def _oddities(spec: PluginSpec) -> list[str]:
    """What is odd about a plugin that works."""
    if spec.distribution in FIRST_PARTY:
        return []
    return [f"it requires {text}" for text in unmet_requirements(spec.requirements)]
