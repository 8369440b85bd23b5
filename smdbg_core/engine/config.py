"""The configuration file `smdbg.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from smdbg_core.discovery.policy import Policy
from smdbg_core.engine.action_roster import ActionConfig
from smdbg_core.engine.roster import RuleConfig
from smdbg_core.errors import ConfigError
from smdbg_core.spelling import nearest

__all__ = ["Config", "load_config"]

_KEYS = ("path", "preset", "plugins", "rules", "actions", "job_name", "sagemaker")
DEFAULT_NAME = "smdbg.toml"


class _Plugins(msgspec.Struct, forbid_unknown_fields=True):
    pinned: list[str] | None = None
    disable: list[str] = []
    third_party: bool = True
    strict: bool = False
    required: list[str] = []


class Config(msgspec.Struct, kw_only=True):
    """What a configuration file says."""

    path: str | None = None
    """The run to judge."""

    preset: str | None = None
    """The preset whose values rules take."""

    plugins: _Plugins = msgspec.field(default_factory=_Plugins)
    rules: list[dict[str, Any]] = []
    actions: dict[str, dict[str, Any]] = {}
    """Configured actions by name: `type`, and parameters."""

    job_name: str | None = None
    """SageMaker's name of the training job."""

    sagemaker: dict[str, Any] = {}
    """What a request needs besides rules; `smdbg_core.sagemaker` reads it."""

    configured: tuple[Any, ...] = ()
    """Rules that come from elsewhere, each a RuleConfig."""

    source: str = ""
    """The file that it was read from."""

    @property
    def policy(self) -> Policy:
        """Which plugins may take part."""
        plugins = self.plugins
        return Policy(
            None if plugins.pinned is None else tuple(plugins.pinned),
            tuple(plugins.disable),
            plugins.third_party,
            plugins.strict,
            tuple(plugins.required),
        )

    def action(self, name: str) -> ActionConfig:
        """The action of that name: a configured one, in any case, or else the type of that name."""
        for known, table in self.actions.items():
            if known.casefold() == name.casefold():
                parameters = dict(table)
                return ActionConfig(str(parameters.pop("type")), known, parameters)
        return ActionConfig(name)

    def rule_configs(self) -> list[RuleConfig]:
        """The configured rules.

        Raises:
            ConfigError: An entry names no rule; all such entries are listed.
        """
        configs: list[RuleConfig] = [*self.configured]
        problems = []
        for number, entry in enumerate(self.rules, start=1):
            parameters = dict(entry)
            rule, name, file = (parameters.pop(key, None) for key in ("rule", "name", "file"))
            actions, collections = parameters.pop("actions", []), parameters.pop("collections", None)
            place = f"{self.source}: rules[{number}]"
            if (rule is None) == (file is None):
                problems.append(
                    f"{place}: give either `rule`, a name, or `file`, a path/to/file.py:ClassName"
                )
            elif not all(isinstance(text, str | None) for text in (rule, name, file)):
                problems.append(f"{place}: `rule`, `name` and `file` are texts")
            elif not isinstance(actions, list) or not all(isinstance(text, str) for text in actions):
                problems.append(f"{place}: `actions` is a list of names")
            elif not _is_table_of_tables(collections):
                problems.append(f"{place}: `collections` is a table: {{losses = {{save_interval = 50}}}}")
            else:
                resolved = None if file is None else str(Path(self.source).parent / str(file))
                asked = tuple(self.action(one) for one in actions)
                configs.append(RuleConfig(str(rule or ""), name, parameters, asked, resolved, collections))
        if problems:
            raise ConfigError("\n".join(problems))
        return configs


def load_config(path: str | None) -> Config:
    """Read a configuration file.

    Args:
        path: The file; without one, `smdbg.toml` in the working directory if there is one.

    Raises:
        ConfigError: The file cannot be read, is no TOML, or has keys that mean nothing.
    """
    if path is None and not Path(DEFAULT_NAME).is_file():
        return Config()
    file = Path(path or DEFAULT_NAME)
    try:
        with file.open("rb") as opened:
            document = tomllib.load(opened)
    except OSError as error:
        message = f"{file}: cannot be read: {error.strerror or error}"
        raise ConfigError(message) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{file}: not TOML: {error}"
        raise ConfigError(message) from None
    problems = [
        *_doubled(document.get("actions"), f"{file}: actions"),
        *_untyped(document.get("actions"), f"{file}: actions"),
        *_unknown(document, _KEYS, f"{file}"),
        *_unknown(document.get("plugins", {}), _Plugins.__struct_fields__, f"{file}: plugins"),
    ]
    if problems:
        raise ConfigError("\n".join(problems))
    try:
        config = msgspec.convert(document, Config)
    except msgspec.ValidationError as error:
        message = f"{file}: {error}"
        raise ConfigError(message) from None
    config.source = str(file)
    return config


def _untyped(actions: Any, place: str) -> Iterator[str]:
    """Configured actions that do not say which action they are, used or not."""
    for name, table in actions.items() if isinstance(actions, dict) else ():
        if isinstance(table, dict) and not isinstance(table.get("type"), str):
            yield f"{place}.{name}: `type`, the name of an action, is missing"


def _doubled(table: Any, place: str) -> list[str]:
    """Complaints about names that differ in case alone."""
    names = [str(name).casefold() for name in (table if isinstance(table, dict) else ())]
    return [f"{place}: {name!r} is there twice" for name in sorted(set(names)) if names.count(name) > 1]


def _is_table_of_tables(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values())
    )


def _unknown(table: Any, known: Iterable[str], place: str) -> list[str]:
    names = tuple(known)
    keys = table if isinstance(table, dict) else ()
    return [f"{place}: no key {key!r}{nearest(key, names)}" for key in keys if key not in names]
