"""The drop-in for `smdebug_rulesconfig`: what feeds the SDK, made from the rules that are installed.

    from smdbg_core.sagemaker import rule_configs

    rule_configs.install()          # before the SDK is imported
    from sagemaker.debugger import Rule

    rule = Rule.sagemaker(rule_configs.vanishing_gradient(), actions=rule_configs.StopTraining())

A function for each debugger rule, a small configuration class for each profiler rule. Both are made
from the declarations when they are first asked for, so that those of third parties are there too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from smdbg_core.discovery.finder import PluginSpec
from smdbg_core.discovery.registry import Registry
from smdbg_core.errors import ConfigError
from smdbg_core.sagemaker.actions import SMS, Action, ActionList, Email, StopTraining, is_valid_action_object
from smdbg_core.sagemaker.collections import collection_config, get_collection
from smdbg_core.sagemaker.profiler_configs import make_config_class
from smdbg_core.spelling import nearest

__all__ = [
    "Action",
    "ActionList",
    "Email",
    "SMS",
    "StopTraining",
    "get_collection",
    "install",
    "is_valid_action_object",
]

_FIXED = tuple(name for name in __all__ if name != "install")
_STANDS_FOR = "smdebug_rulesconfig"
_SUBMODULES = (
    "actions",
    "actions.actions",
    "debugger_rules",
    "debugger_rules.builtin_rules",
    "profiler_rules",
    "profiler_rules.rules",
)
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    specs = _specs(Registry.current())
    if name not in specs:
        hint = nearest(name, (*_FIXED, *specs)) if specs else ""
        hint = hint or ('; pip install "smdbg-core[all]" installs the rules' if not specs else "")
        message = f"module {__name__!r} has no attribute {name!r}{hint}"
        raise AttributeError(message)
    made = _make(specs[name])
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    parts = {path for path in _SUBMODULES if path in globals()}
    return sorted({*__all__, *parts, *_specs(Registry.current())})


def install() -> None:
    """Put this module under the name that the SDK imports, `smdebug_rulesconfig`; once is enough.

    Raises:
        ConfigError: The original is imported already, so that the SDK may hold on to it.
    """
    here = sys.modules[__name__]
    known = sys.modules.get(_STANDS_FOR)
    if known is here:
        return
    if known is not None:
        message = f"{_STANDS_FOR} is imported already: call install() before the SDK is imported"
        raise ConfigError(message)
    sys.modules[_STANDS_FOR] = here
    for path in _SUBMODULES:
        module = ModuleType(f"{_STANDS_FOR}.{path}", f"Stands for a part of {_STANDS_FOR}.")
        module.__getattr__ = lambda name: getattr(here, name)  # type: ignore[method-assign]
        module.__path__ = []
        sys.modules[module.__name__] = module
        parent, _, child = module.__name__.rpartition(".")
        if parent != _STANDS_FOR:
            setattr(sys.modules[parent], child, module)
    globals().update({path: sys.modules[f"{_STANDS_FOR}.{path}"] for path in _SUBMODULES if "." not in path})


def _specs(registry: Registry) -> dict[str, PluginSpec]:
    """Every rule that its bare name means, by the name that it has here."""
    named = {_snake(spec.name): spec for spec in registry.rules() if registry.has_bare_name(spec)}
    named |= {spec.name: spec for spec in registry.profiler_rules() if registry.has_bare_name(spec)}
    return {name: spec for name, spec in named.items() if name not in __all__}


def _snake(name: str) -> str:
    return _WORD.sub("_", name).lower()


def _make(spec: PluginSpec) -> Any:
    rule_class = Registry.current().resolve(spec.qualified).object
    if spec.kind == "profiler rule":
        return make_config_class(spec.name, rule_class)
    return _factory(spec.name, rule_class)


def _factory(rule: str, rule_class: Any) -> Callable[[], dict[str, Any]]:
    def factory() -> dict[str, Any]:
        config: dict[str, Any] = {
            "DebugRuleConfiguration": {
                "RuleConfigurationName": rule,
                "RuleParameters": {"rule_to_invoke": rule},
            }
        }
        if rule_class.collections_to_save:
            config["CollectionConfigurations"] = [
                collection_config(one) for one in rule_class.collections_to_save
            ]
        return config

    factory.__name__ = factory.__qualname__ = _snake(rule)
    factory.__doc__ = f"Configuration of {rule}, a new dict each time. {rule_class.documentation().summary}"
    return factory
