"""The roster: which rules judge a run, under which names, and which cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from smdbg_core.discovery.loader import load_file
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.action_roster import AskedAction
from smdbg_core.errors import ConfigError, ParameterError, ParameterProblem, PluginError
from smdbg_core.rule import Rule

__all__ = ["Roster", "RosterEntry", "RuleConfig"]


class RuleConfig(NamedTuple):
    """One configured rule, as a configuration file or the command line has it."""

    rule: str
    """Name of the rule: bare, or `distribution[Name]`."""

    name: str | None = None
    """Name of this instance; the rule's by default."""

    parameters: Mapping[str, Any] = {}
    actions: tuple[AskedAction, ...] = ()
    """Actions of this rule, besides those that every rule has."""

    file: str | None = None
    """Instead of a name: `path/to/file.py:ClassName`."""

    collections: Mapping[str, Mapping[str, Any]] | None = None
    """What a job must save for it, by name of the collection, instead of what the rule says."""


class RosterEntry(NamedTuple):
    """A rule that takes part."""

    name: str
    rule_name: str
    plugin: str
    rule: Rule
    named: bool
    """Whether somebody asked for this rule; otherwise it runs because it is there."""

    actions: tuple[AskedAction, ...] = ()
    children: tuple[str, ...] = ()
    """Names of the entries whose outcomes this rule needs."""


class Roster:
    """All rules of one evaluation.

    Args:
        registry: Where names are looked up.
        rules: Names, classes, objects or configurations; `None` for every registered rule.
        parameters: Values for rules that run without being configured, by rule name in any case.
        problems: What else is wrong with what was asked for, to be reported together.
        preset: Values of rules to begin with, by the name under which rules bring them along.

    Attributes:
        warnings: Plugins that could not take part although nobody asked for them.

    Raises:
        ConfigError: An unknown rule, two instances of one name, wrong parameters; all of them together.
        PluginError: A plugin that was asked for is broken.
    """

    def __init__(
        self,
        registry: Registry,
        rules: Iterable[str | Rule | type[Rule] | RuleConfig] | None = None,
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
        problems: Iterable[str] = (),
        preset: str | None = None,
    ) -> None:
        self.warnings: list[str] = []
        self._registry = registry
        self._preset = preset
        self._parameters = {name.casefold(): values for name, values in (parameters or {}).items()}
        self._used: set[str] = set()
        self._problems = list(problems)
        self._presets: set[str] = set()
        self.entries = list(self._all() if rules is None else self._asked(rules))
        self._add_children()
        self._check_preset()
        self._check_names()
        if self._problems:
            raise ConfigError("\n".join(self._problems))

    def _all(self) -> Iterator[RosterEntry]:
        for spec in (*self._registry.rules(), *self._registry.profiler_rules()):
            try:
                loaded = self._registry.resolve(spec.qualified)
            except PluginError as error:
                if self._registry.policy.strict:
                    raise
                self.warnings.append(str(error))
                continue
            name = self._registry.shortest_name(spec)
            rule = self._make(loaded.object, self._given(name, spec.qualified))
            if rule is not None:
                yield RosterEntry(name, spec.name, spec.identity, rule, named=False)

    def _asked(self, rules: Iterable[str | Rule | type[Rule] | RuleConfig]) -> Iterator[RosterEntry]:
        for asked in rules:
            if isinstance(asked, Rule):
                name = type(asked).__name__
                self._presets |= type(asked).presets.keys()
                yield from self._entry(name, None, asked, ())
            elif isinstance(asked, type) and issubclass(asked, Rule):
                rule = self._make(asked, self._given(asked.__name__))
                if rule is not None:
                    yield from self._entry(asked.__name__, None, rule, ())
            else:
                yield from self._configured(
                    asked if isinstance(asked, RuleConfig) else RuleConfig(str(asked))
                )

    def _configured(self, config: RuleConfig) -> Iterator[RosterEntry]:
        if config.file is not None:
            rule_class = load_file(config.file)
            given = self._given(rule_class.__name__)
            rule = self._make(rule_class, {**given, **config.parameters}, config.name)
            if rule is not None:
                yield from self._entry(rule_class.__name__, config.name, rule, config.actions, config.file)
            return
        try:
            loaded = self._registry.resolve(config.rule)
        except PluginError:
            raise
        except ConfigError as error:
            self._problems.append(str(error))
            return
        spec = loaded.spec
        shortest = self._registry.shortest_name(spec)
        given = self._given(shortest, spec.qualified)
        rule = self._make(loaded.object, {**given, **config.parameters}, config.name)
        if rule is not None:
            name = config.name or shortest
            yield from self._required(RosterEntry(name, spec.name, spec.identity, rule, True, config.actions))

    def _entry(
        self,
        rule_name: str,
        name: str | None,
        rule: Rule,
        actions: tuple[AskedAction, ...],
        file: str | None = None,
    ) -> Iterator[RosterEntry]:
        identity = file or self._registry.identify(type(rule))
        yield from self._required(RosterEntry(name or rule_name, rule_name, identity, rule, True, actions))

    def _required(self, entry: RosterEntry) -> Iterator[RosterEntry]:
        problems = [
            ParameterProblem(group[0], "value", f"needs {' or '.join(group)}")
            for group in entry.rule.missing()
        ]
        if problems:
            self._problems.append(str(ParameterError(entry.name, problems)))
        else:
            yield entry

    def _given(self, *spellings: str) -> Mapping[str, Any]:
        """Parameters that were given under any spelling of a rule's name; the last counts most."""
        names = [spelling.casefold() for spelling in spellings]
        self._used.update(names)
        return {key: value for name in names for key, value in self._parameters.get(name, {}).items()}

    def _make(
        self, rule_class: type[Rule], parameters: Mapping[str, Any], name: str | None = None
    ) -> Rule | None:
        try:
            return rule_class(**self._from_preset(rule_class, parameters), **parameters)
        except ParameterError as error:
            text = (
                str(error)
                if name in (None, error.owner)
                else str(ParameterError(f"{error.owner} ({name})", error.problems))
            )
            self._problems.append(text)
            return None

    def _from_preset(self, rule_class: type[Rule], given: Mapping[str, Any]) -> dict[str, Any]:
        """What the preset says about parameters that were not given, however they are spelt."""
        self._presets |= rule_class.presets.keys()
        values = rule_class.presets.get(self._preset, {}) if self._preset is not None else {}
        taken = {rule_class.find_parameter(spelling) for spelling in given}
        return {name: v for name, v in values.items() if rule_class.find_parameter(name) not in taken}

    def _check_preset(self) -> None:
        """A preset that no rule knows is a mistake; rules that take no part may know it."""
        if self._preset is None or self._preset in self._presets:
            return
        for spec in (*self._registry.rules(), *self._registry.profiler_rules()):
            try:
                self._presets |= self._registry.resolve(spec.qualified).object.presets.keys()
            except PluginError:
                continue
        if self._preset not in self._presets:
            listed = f"; there are {', '.join(sorted(self._presets))}" if self._presets else ""
            self._problems.append(f"no preset {self._preset!r}{listed}")

    def _add_children(self) -> None:
        """Let rules that others need take part, once however many ask for them."""
        for number, entry in enumerate(self.entries):  # grows while it is walked: children may have some
            names = []
            for child in entry.rule.children():
                known = next((one for one in self.entries if _same(one.rule, child)), None)
                if known is None:
                    kind = type(child).__name__
                    taken = any(one.name == kind for one in self.entries)
                    name = f"{entry.name}.{kind}" if taken else kind
                    identity = self._registry.identify(type(child))
                    known = RosterEntry(name, kind, identity, child, named=False)
                    self.entries.append(known)
                names.append(known.name)
            self.entries[number] = entry._replace(children=tuple(names))

    def _check_names(self) -> None:
        counts = Counter(entry.name.casefold() for entry in self.entries)
        for name, count in counts.items():
            if count > 1:
                self._problems.append(
                    f"{count} rules are named {name!r}: give each instance a `name` of its own"
                )
        for name in self._parameters.keys() - self._used:
            self._problems.append(f"parameters are given for {name!r}, but that rule does not take part")


def _same(one: Rule, other: Rule) -> bool:
    return type(one) is type(other) and one.parameters == other.parameters
