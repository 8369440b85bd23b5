"""Checking a configuration or a job before it costs anything: what it comes to, and what it can never do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.action_roster import ActionRoster
from smdbg_core.engine.config import Config
from smdbg_core.engine.roster import Roster, RosterEntry, RuleConfig
from smdbg_core.errors import ConfigError
from smdbg_core.finite import finite
from smdbg_core.reads import Reads, ScanReads
from smdbg_core.rule import ProfilerRule, Rule
from smdbg_core.sagemaker import collections as saved
from smdbg_core.sagemaker.jobs import Job
from smdbg_core.sagemaker.saving import Decision, SavingPlan, glob_hint
from smdbg_core.sagemaker.settings import Settings

__all__ = ["Check", "RuleCheck", "Value", "check_plan"]


class Value(msgspec.Struct, frozen=True):
    """The effective value of one parameter."""

    name: str
    value: Any
    source: str
    """`default`, or where it was given."""


class RuleCheck(msgspec.Struct, kw_only=True):
    """What one rule comes to."""

    name: str
    rule: str
    plugin: str
    parameters: list[Value]
    actions: list[str]
    decides: Literal["yes", "no", "unknown"]
    why: str
    from_step: int | None
    """First step of a mode at which it can decide, under the saving plan."""

    service_status: str | None
    """What the service made of it, if the job's description says so."""

    problems: list[str]


class Check(msgspec.Struct, kw_only=True):
    """What a configuration comes to."""

    rules: list[RuleCheck]
    collections: dict[str, dict[str, str]]
    problems: list[str]
    """What is wrong besides single rules."""

    notices: list[str]

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and all(not r.problems and r.decides != "no" for r in self.rules)

    def document(self) -> dict[str, Any]:
        """The same as strict JSON has it."""
        return finite(msgspec.to_builtins(self))  # type: ignore[no-any-return]


def check_plan(
    plan: Config,
    job: Job | None = None,
    *,
    registry: Registry | None = None,
    framework: str | None = None,
    total_steps: int | None = None,
) -> Check:
    """Check a configuration, or a job.

    Args:
        plan: The configuration; of a job, `job.config()`.
        job: The job, if that is where it comes from: then exactly its collections are saved.
        registry: Where rules are looked up.
        framework: Framework of the training, if the configuration does not say it.
        total_steps: How long training is.

    Raises:
        ConfigError: Unknown rules, wrong parameters: what keeps it from being used at all.
    """
    registry = registry or Registry(plan.policy)
    settings = job.settings if job is not None else Settings.read(plan.sagemaker, plan.source)
    configs = plan.rule_configs()
    with registry.active():
        actions = ActionRoster(registry, (), [action for one in configs for action in one.actions])
        roster = Roster(registry, configs or None, problems=actions.problems)
    entries = [entry for entry in roster.entries if entry.named or not configs]
    given = {_name(config, registry): config for config in configs}
    problems: list[str] = []
    try:
        collections, notices = _collections(entries, given, settings, with_rules=job is None)
    except ConfigError as error:
        collections, notices, problems = {}, [], str(error).splitlines()
    hook = {key: str(value) for key, value in settings.hook_parameters.items()}
    saving = SavingPlan(collections, hook, total_steps)
    problems += [line for name in collections for line in saving.complaints(name)]
    framework = (framework or settings.framework or "").lower() or None
    checks = []
    for entry in entries:
        config = given.get(entry.name)
        decision = _decide(entry.rule, saving, settings)
        checks.append(
            RuleCheck(
                name=entry.name,
                rule=entry.rule_name,
                plugin=entry.plugin,
                parameters=list(_values(entry.rule, config, plan.source)),
                actions=[one.name for one in actions.of(entry.actions)],
                decides=decision.answer,
                why=decision.why,
                from_step=decision.from_step,
                service_status=job.statuses.get(entry.name) if job is not None else None,
                problems=list(_problems(entry.rule, framework)),
            )
        )
    shown = [*(job.notices if job is not None else ()), *roster.warnings, *notices]
    return Check(rules=checks, collections=collections, problems=problems, notices=shown)


def _name(config: RuleConfig, registry: Registry) -> str:
    """Name of the instance that a configuration makes."""
    if config.name is not None:
        return config.name
    if config.file is not None:
        return config.file.rpartition(":")[2]
    return registry.resolve(config.rule).spec.name


def _collections(
    entries: list[RosterEntry], given: Mapping[str, RuleConfig], settings: Settings, *, with_rules: bool
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """What is saved: what the job says, and unless it is a job's, what rules want besides."""
    if not with_rules:
        return {n: {k: str(v) for k, v in p.items()} for n, p in settings.collections.items()}, []
    wanted = [("sagemaker.collections", n, saved.write(n, p)) for n, p in settings.collections.items()]
    for entry in entries:
        config = given.get(entry.name)
        if config is not None and config.collections is not None:
            own = [(name, saved.write(name, parameters)) for name, parameters in config.collections.items()]
        else:
            own = [(one.name, saved.parameters_of(one)) for one in entry.rule.collections_to_save]
        wanted += [(entry.name, name, written) for name, written in own if name not in settings.collections]
    return saved.merge(wanted)


def _decide(rule: Rule, saving: SavingPlan, settings: Settings) -> Decision:
    missing = rule.missing()
    if missing:
        return Decision("no", "it needs a parameter: " + ", ".join(" or ".join(group) for group in missing))
    declared: Any = rule.reads()
    groups = declared if isinstance(declared, tuple) and not hasattr(declared, "_fields") else (declared,)
    if not isinstance(rule, ProfilerRule):
        return saving.decide([reads for reads in groups if isinstance(reads, Reads)])
    if settings.disable_profiler:
        return Decision("no", "the profiler is disabled")
    events = any(isinstance(r, ScanReads) and r.phases and not r.optional for r in groups)
    if events and not settings.profiling_parameters:
        return Decision(
            "unknown", "it reads framework events, and the plan does not say whether any are recorded"
        )
    return Decision("yes")


def _values(rule: Rule, config: RuleConfig | None, source: str) -> Iterator[Value]:
    spelled = {}
    for spelling in config.parameters if config is not None else ():
        parameter = rule.find_parameter(spelling)
        spelled[(parameter.name if parameter is not None else spelling).casefold()] = spelling
    for name, value in rule.parameters.items():
        place = "default"
        if name.casefold() in spelled:
            spelling = spelled[name.casefold()]
            place = (source or "given") + (f", as {spelling}" if spelling != name else "")
        yield Value(name, value, place)


def _problems(rule: Rule, framework: str | None) -> Iterator[str]:
    for name, parameter in rule.__parameters__.items():
        if parameter.conversion.format == "regex" and not rule.is_default(name):
            value = rule.parameters[name]
            for pattern in (value,) if isinstance(value, str) else value or ():
                hint = glob_hint(pattern)
                if hint:
                    yield f"{name}: {hint}"
    if framework is not None and framework not in rule.frameworks:
        yield f"it is for {', '.join(rule.frameworks)}, and the training is {framework}'s"
