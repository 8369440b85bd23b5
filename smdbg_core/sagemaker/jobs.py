"""Reading: a CreateTrainingJob request or a DescribeTrainingJob response becomes what is to be judged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from smdbg_core.discovery.registry import Registry
from smdbg_core.engine.action_roster import ActionConfig
from smdbg_core.engine.config import Config, load_config
from smdbg_core.engine.roster import RuleConfig
from smdbg_core.errors import ConfigError
from smdbg_core.parameters import Parameter
from smdbg_core.rule import ALL_FRAMEWORKS
from smdbg_core.sagemaker.actions import parse_actions
from smdbg_core.sagemaker.encoding import decode_mapping, is_nothing
from smdbg_core.sagemaker.settings import Settings
from smdbg_core.spelling import nearest

__all__ = ["Job", "load_job", "load_plan", "read_job"]

_RULES: Final = ("DebugRuleConfigurations", "ProfilerRuleConfigurations")
_MEMBERS: Final = (*_RULES, "DebugHookConfig", "ProfilerConfig")
_ENDED: Final = ("Completed", "Failed", "Stopped")
_ACTIONS: Final = {
    "stoptraining": ("StopTraining", "training_job_prefix", "training_job_prefix"),
    "email": ("Email", "endpoint", "email_address"),
    "sms": ("SMS", "endpoint", "phone_number"),
}
_FROM_SERVICE: Final = ("rule_to_invoke", "action_json", "custom_rule_parameters", "base_trial")


class Job(msgspec.Struct, kw_only=True):
    """What a training job's JSON says about rules and saving."""

    name: str | None = None
    path: str | None = None
    """Where the job's data is, if the document tells."""

    rules: tuple[RuleConfig, ...] = ()
    settings: Settings = Settings()
    statuses: dict[str, str] = {}
    """What the service made of each rule, by the rule's name."""

    ended: bool = False
    """Whether the job is known to have ended."""

    notices: list[str] = []

    def config(self, source: str = "") -> Config:
        """The same as a configuration to judge by; of a job that has ended, without actions."""
        rules = tuple(rule._replace(actions=()) for rule in self.rules) if self.ended else self.rules
        return Config(path=self.path, job_name=self.name, configured=rules, source=source)


def load_plan(path: str | None) -> tuple[Config, Job | None]:
    """Read a configuration file, or the JSON of a training job.

    Args:
        path: The file; a job's ends in `.json`.

    Raises:
        ConfigError: It cannot be read or makes no sense.
    """
    if path is None or not path.lower().endswith(".json"):
        return load_config(path), None
    job = load_job(path)
    if job.ended and any(rule.actions for rule in job.rules):
        job.notices.append("the job has ended: its actions are left out")
    return job.config(path), job


def load_job(path: str, registry: Registry | None = None) -> Job:
    """Read the JSON file of a training job.

    Raises:
        ConfigError: It cannot be read, is no JSON, or describes no rules that make sense.
    """
    try:
        document = json.loads(Path(path).read_bytes())
    except OSError as error:
        message = f"{path}: cannot be read: {error.strerror or error}"
        raise ConfigError(message) from None
    except (ValueError, RecursionError) as error:
        message = f"{path}: not JSON: {error}"
        raise ConfigError(message) from None
    try:
        return read_job(document, registry)
    except ConfigError as error:
        raise ConfigError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from None


def read_job(document: Any, registry: Registry | None = None) -> Job:
    """Read a request or a response, as the service or an SDK has it.

    Args:
        document: The parsed JSON.
        registry: Where rules are looked up; by default what is installed.

    Raises:
        ConfigError: It is of another shape, or rules are unknown; all problems together.
    """
    if not isinstance(document, dict) or not any(document.get(member) for member in _MEMBERS):
        message = f"no training job with rules: it has none of {', '.join(_MEMBERS)}"
        raise ConfigError(message)
    return _Reader(document, registry or Registry()).job()


class _Reader:
    def __init__(self, document: dict[str, Any], registry: Registry) -> None:
        self._document = document
        self._registry = registry
        self._problems: list[str] = []
        self._notices: list[str] = []
        self._known_actions: dict[tuple[str, str | None], ActionConfig] = {}

    def job(self) -> Job:
        name = self._document.get("TrainingJobName")
        rules = tuple(
            rule
            for member in _RULES
            for number, entry in enumerate(self._list(self._document.get(member), member))
            if (rule := self._rule(entry, f"{member}[{number}]")) is not None
        )
        settings = self._settings()
        if self._problems:
            raise ConfigError("\n".join(self._problems))
        return Job(
            name=name if isinstance(name, str) else None,
            path=self._path(name, settings),
            rules=rules,
            settings=settings,
            statuses=dict(self._statuses()),
            ended=self._document.get("TrainingJobStatus") in _ENDED,
            notices=self._notices,
        )

    def _rule(self, entry: Any, place: str) -> RuleConfig | None:
        given = self._strings(self._map(entry, place).get("RuleParameters"), f"{place}.RuleParameters")
        invoked = given.get("rule_to_invoke")
        name = self._map(entry, place).get("RuleConfigurationName")
        if not isinstance(name, str) or not invoked:
            self._problems.append(
                f"{place}: a rule has RuleConfigurationName and RuleParameters.rule_to_invoke"
            )
            return None
        if "source_s3_uri" in given:
            self._notices.append(
                f"{name} is left out: its code is in {given['source_s3_uri']}; "
                "get it and run it with --rule path/to/file.py:ClassName"
            )
            return None
        try:
            rule_class = self._registry.resolve(invoked).object
            nested = given.get("custom_rule_parameters")
            extra = {} if nested is None or is_nothing(nested) else decode_mapping(nested)
            actions = self._actions(given.get("action_json"))
        except ConfigError as error:
            self._problems.append(f"{place} ({name}): {error}")
            return None
        parameters: dict[str, Any] = {}
        for key, value in {**given, **extra}.items():
            parameter = rule_class.find_parameter(key)
            if key not in _FROM_SERVICE and not _is_unset(parameter, value):
                # `other_trial_0` is one item, whatever is in it; other lists are cut at commas.
                parameters[key] = [value] if _is_one_item(parameter, key) else value
        return RuleConfig(invoked, name, parameters, tuple(actions))

    def _actions(self, text: str | None) -> Iterator[ActionConfig]:
        if text is None or is_nothing(text):
            return iter(())
        return iter([self._action(member) for member in parse_actions(text)])

    def _action(self, member: Mapping[str, Any]) -> ActionConfig:
        """The action of a member; equal ones are one, others of a kind have names of their own."""
        kind = str(member.get("name", "")).lower()
        if kind not in _ACTIONS:
            message = f"action_json: no action {member.get('name')!r}{nearest(kind, _ACTIONS)}"
            raise ConfigError(message)
        action, key, parameter = _ACTIONS[kind]
        value = member.get(key)
        if value == self._document.get("TrainingJobName") and next(iter(member)) == "name":
            value = None  # a prefix after the name was filled in, not given: the job alone is meant
        known = self._known_actions.get((action, value))
        if known is None:
            others = sum(one.type == action for one in self._known_actions.values())
            name = action if not others else f"{action}-{others + 1}"
            known = ActionConfig(action, name, {} if value is None else {parameter: value})
            self._known_actions[action, value] = known
        return known

    def _settings(self) -> Settings:
        hook = self._map(self._document.get("DebugHookConfig"), "DebugHookConfig")
        profiler = self._map(self._document.get("ProfilerConfig"), "ProfilerConfig")
        collections: dict[str, dict[str, str]] = {}
        configured = self._list(hook.get("CollectionConfigurations"), "CollectionConfigurations")
        for number, entry in enumerate(configured):
            place = f"CollectionConfigurations[{number}]"
            collection = self._map(entry, place)
            name = collection.get("CollectionName")
            if not isinstance(name, str):
                self._problems.append(f"{place}: CollectionName is missing")
                continue
            given = self._strings(collection.get("CollectionParameters"), place)
            if name in collections and collections[name] != given:
                self._notices.append(f"collection {name} is there twice: hooks take the last one")
            collections[name] = given
        image = self._map(self._document.get("AlgorithmSpecification"), "AlgorithmSpecification")
        text = str(image.get("TrainingImage") or image.get("AlgorithmName") or "").lower()
        base, metrics = hook.get("S3OutputPath"), profiler.get("S3OutputPath")
        if isinstance(base, str) and isinstance(metrics, str) and base.rstrip("/") != metrics.rstrip("/"):
            self._notices.append(f"the profiler's output is elsewhere, below {metrics}: judge it on its own")
        interval, disabled = profiler.get("ProfilingIntervalInMilliseconds"), profiler.get("DisableProfiler")
        entries = [one for member in _RULES for one in self._list(self._document.get(member), member)]
        images = [one.get("RuleEvaluatorImage") for one in entries]
        return Settings(
            rule_image=next((uri for uri in images if isinstance(uri, str)), None),
            rule_s3_output_path=next(
                (p for one in entries if isinstance(p := one.get("S3OutputPath"), str)), None
            ),
            s3_output_path=base if isinstance(base, str) else None,
            profiler_s3_output_path=metrics if isinstance(metrics, str) and metrics != base else None,
            local_path=hook.get("LocalPath"),
            framework=next((one for one in ALL_FRAMEWORKS if re.search(rf"\b{one}", text)), None),
            hook_parameters=self._strings(hook.get("HookParameters"), "HookParameters"),
            collections=collections,
            profiling_interval_ms=interval if isinstance(interval, int) else None,
            profiling_parameters=self._strings(profiler.get("ProfilingParameters"), "ProfilingParameters"),
            disable_profiler=disabled if isinstance(disabled, bool) else None,
        )

    def _path(self, name: Any, settings: Settings) -> str | None:
        base = settings.s3_output_path or settings.profiler_s3_output_path
        return f"{base.rstrip('/')}/{name}" if base is not None and isinstance(name, str) else None

    def _statuses(self) -> Iterator[tuple[str, str]]:
        for member in ("DebugRuleEvaluationStatuses", "ProfilerRuleEvaluationStatuses"):
            for entry in self._list(self._document.get(member), member):
                rule, status = entry.get("RuleConfigurationName"), entry.get("RuleEvaluationStatus")
                if isinstance(rule, str) and isinstance(status, str):
                    yield rule, status

    def _map(self, value: Any, place: str) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        if value is not None:
            self._problems.append(f"{place}: a {type(value).__name__}, not an object")
        return {}

    def _list(self, value: Any, place: str) -> list[Any]:
        if isinstance(value, list):
            return [self._map(item, f"{place}[{number}]") for number, item in enumerate(value)]
        if value is not None:
            self._problems.append(f"{place}: a {type(value).__name__}, not a list")
        return []

    def _strings(self, value: Any, place: str) -> dict[str, str]:
        """An object of strings; numbers and booleans, which users write, are taken for theirs."""
        return {
            key: item if isinstance(item, str) else json.dumps(item)
            for key, item in self._map(value, place).items()
            if item is not None
        }


def _is_one_item(parameter: Parameter | None, key: str) -> bool:
    return parameter is not None and parameter.conversion.many and re.search(r"_\d+$", key) is not None


def _is_unset(parameter: Parameter | None, value: Any) -> bool:
    """Whether a value says that there is none, where the parameter's default is meant."""
    if not is_nothing(value):
        return False
    if parameter is None:
        return True
    conversion = parameter.conversion
    is_text = conversion.kind is str and not conversion.choices and value not in ("", None)
    return not (conversion.optional or conversion.many or is_text)
