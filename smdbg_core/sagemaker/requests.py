"""Writing: the members of a CreateTrainingJob request, from rules, collections and actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from smdbg_core.action import Action as ActingAction
from smdbg_core.discovery.loader import Loaded
from smdbg_core.discovery.policy import FIRST_PARTY
from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.action_roster import ActionConfig, AskedAction
from smdbg_core.engine.roster import RuleConfig
from smdbg_core.errors import ConfigError, ParameterError, ParameterProblem
from smdbg_core.parameters import Parameter
from smdbg_core.rule import ProfilerRule, Rule
from smdbg_core.sagemaker import collections as saved
from smdbg_core.sagemaker.actions import SMS, Action, ActionList, Email, StopTraining
from smdbg_core.sagemaker.encoding import encode, encode_parameter
from smdbg_core.sagemaker.limits import check_limits, require_job_name
from smdbg_core.sagemaker.saving import SavingPlan
from smdbg_core.sagemaker.settings import INTERVALS, Settings

__all__ = ["Request", "write_request"]

_ACTIONS: Final[Mapping[str, tuple[type[Action], str]]] = {
    "StopTraining": (StopTraining, "training_job_prefix"),
    "Email": (Email, "email_address"),
    "SMS": (SMS, "phone_number"),
}


class Request(NamedTuple):
    """Members of a CreateTrainingJob request, and what a user should know of them."""

    members: dict[str, Any]
    notices: list[str]


class _Planned(NamedTuple):
    config: RuleConfig
    loaded: Loaded
    rule: Rule

    @property
    def name(self) -> str:
        return self.config.name or self.loaded.spec.name


def write_request(
    rules: Iterable[RuleConfig],
    settings: Settings | None = None,
    *,
    registry: Registry | None = None,
    job_name: str | None = None,
) -> Request:
    """Write rules as the members of a CreateTrainingJob request; nothing that is given is changed.

    Args:
        rules: What was configured. Parameters are sent where they were given, and every value is a string.
        settings: How the job saves, and where its rules run.
        registry: Where names are looked up; by default what is installed.
        job_name: Name of the training job.

    Raises:
        ConfigError: Something that the service would refuse or misread; everything at once.
        PluginError: A plugin that was asked for is broken.
    """
    writer = _Writer(settings or Settings(), registry or Registry(), job_name)
    with writer.registry.active():
        return writer.write(list(rules))


class _Writer:
    def __init__(self, settings: Settings, registry: Registry, job_name: str | None) -> None:
        self.registry = registry
        self._settings = settings
        self._job_name = job_name
        self._problems: list[str] = []
        self._notices: list[str] = []

    def write(self, rules: list[RuleConfig]) -> Request:
        if self._job_name is not None:
            self._attempt(lambda: require_job_name(str(self._job_name)))
        planned = [one for config in rules if (one := self._plan(config)) is not None]
        debug = [one for one in planned if not isinstance(one.rule, ProfilerRule)]
        profiling = [one for one in planned if isinstance(one.rule, ProfilerRule)]
        image = self._attempt(self._settings.image) if planned else None
        members: dict[str, Any] = {"TrainingJobName": self._job_name} if self._job_name else {}
        members |= self._hook(debug)
        if debug:
            members["DebugRuleConfigurations"] = [self._rule(one, image) for one in debug]
        members |= self._profiler(bool(profiling))
        if profiling:
            members["ProfilerRuleConfigurations"] = [self._rule(one, image) for one in profiling]
        self._problems += check_limits(members)
        if self._problems:
            raise ConfigError("\n".join(dict.fromkeys(self._problems)))
        return Request(members, self._notices)

    def _attempt(self, call: Any) -> Any:
        try:
            return call()
        except ConfigError as error:
            self._problems += str(error).splitlines()
            return None

    def _plan(self, config: RuleConfig) -> _Planned | None:
        if config.file is not None:
            self._problems.append(
                f"{config.file}: SageMaker has built-in rules only; a rule from a file stays here"
            )
            return None
        loaded = self._attempt(lambda: self.registry.resolve(config.rule))
        rule = None if loaded is None else self._attempt(lambda: _make(loaded, config))
        if rule is None:
            return None
        if loaded.spec.distribution not in FIRST_PARTY:
            self._notices.append(
                f"{loaded.spec.identity} is none of the service's rules: the image has to bring it"
            )
        return _Planned(config, loaded, rule)

    def _rule(self, planned: _Planned, image: str | None) -> dict[str, Any]:
        name = planned.loaded.spec.name
        parameters = {"rule_to_invoke": name, **self._parameters(planned)}
        actions = self._actions(planned)
        if actions:
            parameters["action_json"] = actions
        written = {"RuleConfigurationName": planned.name, "RuleEvaluatorImage": image}
        if self._settings.rule_s3_output_path is not None:
            written["S3OutputPath"] = self._settings.rule_s3_output_path
        return {**written, "RuleParameters": parameters}

    def _parameters(self, planned: _Planned) -> dict[str, str]:
        """The parameters that were given, by the names that the service knows."""
        rule = planned.rule
        written: dict[str, str] = {}
        declared = [rule.find_parameter(spelling) for spelling in planned.config.parameters]
        for parameter in dict.fromkeys(one for one in declared if one is not None):
            if parameter.meta.local:
                self._notices.append(
                    f"{planned.name}: {parameter.name} stays here: SageMaker does not have it"
                )
                continue
            written |= self._attempt(lambda p=parameter: _encoded(p, rule.parameters[p.name])) or {}
        undeclared = rule.parameters.keys() - rule.__parameters__.keys()
        for name in (name for name in rule.parameters if name in undeclared):
            value = rule.parameters[name]
            if value is not None:
                written[name] = self._attempt(lambda v=value: encode(list(v) if isinstance(v, tuple) else v))
        return written

    def _actions(self, planned: _Planned) -> str | None:
        made = [self._action(planned.name, asked) for asked in planned.config.actions]
        actions = [one for one in made if one is not None]
        if not actions:
            return None
        if isinstance(planned.rule, ProfilerRule):
            self._problems.append(
                f"{planned.name}: SageMaker has no actions for profiler rules: leave them out"
            )
            return None
        if self._job_name is None:
            without = any(
                one.use_default_training_job_prefix for one in actions if isinstance(one, StopTraining)
            )
            if without:
                self._problems.append(
                    f"{planned.name}: StopTraining needs training_job_prefix, or the name of the job"
                )
                return None
        listed = ActionList(*actions)
        if self._job_name is not None:
            self._attempt(lambda: listed.update_training_job_prefix_if_not_specified(str(self._job_name)))
        try:
            return listed.serialize()
        except ConfigError as error:
            self._problems.append(f"{planned.name}: {error}")
            return None

    def _action(self, rule: str, asked: AskedAction) -> Action | None:
        if isinstance(asked, ActingAction):
            kind, given = type(asked).__name__, dict(asked.parameters)
        elif isinstance(asked, type):
            kind, given = asked.__name__, {}
        else:
            config = asked if isinstance(asked, ActionConfig) else ActionConfig(str(asked))
            loaded = self._attempt(lambda: self.registry.resolve(config.type, ("action",)))
            acting = None if loaded is None else self._attempt(lambda: loaded.object(**config.parameters))
            if acting is None:
                return None
            kind, given = loaded.spec.name, dict(acting.parameters)
        if kind not in _ACTIONS:
            self._notices.append(f"{rule}: the action {kind} stays here: SageMaker does not have it")
            return None
        action_class, parameter = _ACTIONS[kind]
        arguments = [given[parameter]] if given.get(parameter) is not None else []
        made: Action | None = self._attempt(lambda: action_class(*arguments))
        return made

    def _hook(self, debug: list[_Planned]) -> dict[str, Any]:
        settings = self._settings
        own = [
            ("sagemaker.collections", name, written)
            for name, parameters in settings.collections.items()
            if (written := self._attempt(lambda n=name, p=parameters: saved.write(n, p))) is not None
        ]
        settled = {name for _, name, _ in own}
        wanted = [one for planned in debug for one in self._wanted(planned) if one[1] not in settled]
        merged = self._attempt(lambda: saved.merge([*own, *wanted]))
        collections, notices = merged or ({}, [])
        saving = SavingPlan(collections)
        self._notices += [*notices, *(line for name in collections for line in saving.complaints(name))]
        if not (debug or collections or settings.hook_parameters):
            return {}
        if settings.s3_output_path is None:
            self._problems.append("a job that saves tensors needs sagemaker.s3_output_path")
        hook: dict[str, Any] = {"S3OutputPath": settings.s3_output_path or ""}
        if settings.local_path is not None:
            hook["LocalPath"] = settings.local_path
        parameters = self._encoded_table(settings.hook_parameters, "hook_parameters")
        hook |= {"HookParameters": parameters} if parameters else {}
        if collections:
            hook["CollectionConfigurations"] = [
                {"CollectionName": name} | ({"CollectionParameters": given} if given else {})
                for name, given in collections.items()
            ]
        return {"DebugHookConfig": hook}

    def _wanted(self, planned: _Planned) -> list[tuple[str, str, dict[str, str]]]:
        own = planned.config.collections
        if own is None:
            return [
                (planned.name, one.name, saved.parameters_of(one)) for one in planned.rule.collections_to_save
            ]
        written = [(n, self._attempt(lambda n=n, p=p: saved.write(n, p))) for n, p in own.items()]
        return [(planned.name, name, parameters) for name, parameters in written if parameters is not None]

    def _profiler(self, rules: bool) -> dict[str, Any]:
        settings = self._settings
        interval = settings.profiling_interval_ms
        if settings.disable_profiler and (rules or interval is not None or settings.profiling_parameters):
            what = "profiler rules" if rules else "profiling settings"
            self._problems.append(f"there are {what}, and sagemaker.disable_profiler: take one of them out")
        if interval is not None and interval not in INTERVALS:
            allowed = ", ".join(map(str, INTERVALS))
            self._problems.append(f"sagemaker.profiling_interval_ms: {interval} is none of {allowed}")
        if settings.disable_profiler:
            return {"ProfilerConfig": {"DisableProfiler": True}}
        asked = rules or interval is not None or settings.profiling_parameters
        if not asked and settings.disable_profiler is None:
            return {}
        config: dict[str, Any] = {}
        base = settings.profiler_s3_output_path or settings.s3_output_path
        if base is not None:
            config["S3OutputPath"] = base
        elif asked:
            self._problems.append("a job that is profiled needs sagemaker.s3_output_path")
        if interval is not None:
            config["ProfilingIntervalInMilliseconds"] = interval
        parameters = self._encoded_table(settings.profiling_parameters, "profiling_parameters")
        config |= {"ProfilingParameters": parameters} if parameters else {}
        if settings.disable_profiler is False:
            config["DisableProfiler"] = False
        return {"ProfilerConfig": config}

    def _encoded_table(self, table: Mapping[str, Any], name: str) -> dict[str, str]:
        written = {}
        for key, value in table.items():
            if value is not None:
                try:
                    written[key] = encode(value)
                except ConfigError as error:
                    self._problems.append(f"sagemaker.{name}.{key}: {error}")
        return written


def _make(loaded: Loaded, config: RuleConfig) -> Rule:
    try:
        rule: Rule = loaded.object(**config.parameters)
    except ParameterError as error:
        if config.name in (None, error.owner):
            raise
        raise ParameterError(f"{error.owner} ({config.name})", error.problems) from None
    problems = [
        ParameterProblem(group[0], "value", f"needs {' or '.join(group)}") for group in rule.missing()
    ]
    if problems:
        raise ParameterError(config.name or loaded.spec.name, problems)
    return rule


def _encoded(parameter: Parameter, value: Any) -> dict[str, str]:
    """Entries of a parameter: one, or one for each item where the service counts them."""
    counted = next((alias for alias in parameter.meta.aliases if alias.endswith("<n>")), None)
    if counted is not None and isinstance(value, tuple):
        return {counted.replace("<n>", str(number)): encode(item) for number, item in enumerate(value)}
    text = encode_parameter(parameter, value)
    return {} if text is None else {parameter.name: text}
