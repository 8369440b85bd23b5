"""The parts of smdebug that rules import, standing in while such a rule is imported or called."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from smdbg_core.runs.trial import open_trial
from smdbg_core.smdebug import exceptions
from smdbg_core.smdebug.modes import ModeKeys, StepState
from smdbg_core.smdebug.rule import CustomRule, invoke_rule
from smdbg_core.smdebug.tensor import CustomTensor
from smdbg_core.smdebug.trial import CustomTrial, no_refresh, refresh

__all__ = ["standing_in"]

_FRAMEWORKS: Final = ("mxnet", "pytorch", "tensorflow", "xgboost")


_TRIAL_OPTIONS: Final = frozenset({"cache", "check", "index_mode", "output_dir", "parallel", "range_steps"})
"""What `create_trial` of smdebug takes besides; all but the last change how fast it is there."""


class CollectionKeys:
    """Names of the collections that hooks make."""

    BIASES = "biases"
    DEFAULT = "default"
    GRADIENTS = "gradients"
    INPUTS = "inputs"
    LAYERS = "layers"
    LOSSES = "losses"
    METRICS = "metrics"
    OPTIMIZER_VARIABLES = "optimizer_variables"
    OUTPUTS = "outputs"
    RELU_INPUT = "relu_input"
    RELU_OUTPUT = "relu_output"
    WEIGHTS = "weights"


def create_trial(path: str, name: str | None = None, profiler: bool = False, **options: Any) -> CustomTrial:
    """Open a trial, all of whose steps can be seen.

    Raises:
        SMDebugNotImplementedError: It is to be profiler output.
    """
    if profiler:
        raise exceptions.SMDebugNotImplementedError(
            "profiler trials of smdebug are not offered: write a ProfilerRule of smdbg"
        )
    if unknown := options.keys() - _TRIAL_OPTIONS:
        raise TypeError(f"create_trial takes no {', '.join(sorted(unknown))}")
    steps = options.get("range_steps")
    trial = CustomTrial(open_trial(path, steps=steps), name=name)
    trial.range_steps = steps
    return trial


@contextmanager
def standing_in() -> Iterator[None]:
    """Let `import smdebug` find what rules use; what was there before is there again afterwards."""
    before = {name: module for name, module in sys.modules.items() if _is_smdebug(name)}
    for name in before:
        del sys.modules[name]
    sys.modules.update(_modules())
    finder = _Missing()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _is_smdebug(name)]:
            del sys.modules[name]
        sys.modules.update(before)


class _Missing:
    """Says what is offered where a rule imports something else of smdebug."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Complain about what is asked for, if it is a part of smdebug: those that are there were found."""
        if not _is_smdebug(name):
            return None
        offered = ", ".join(sorted(_modules()))
        message = f"no module {name!r}; of smdebug there are {offered}"
        raise ModuleNotFoundError(message, name=name)


class _Module(ModuleType):
    """Says what is offered where a rule imports another name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        offered = ", ".join(sorted(one for one in vars(self) if not one.startswith("_")))
        message = f"cannot import {name} from {self.__name__}: here it has {offered}"
        raise ImportError(message, name=self.__name__)


def _is_smdebug(name: str) -> bool:
    return name == "smdebug" or name.startswith("smdebug.")


@cache
def _modules() -> dict[str, ModuleType]:
    contents: dict[str, dict[str, Any]] = {
        "smdebug": {"modes": ModeKeys, "CollectionKeys": CollectionKeys, "__path__": []},
        "smdebug.analysis": {"__path__": []},
        "smdebug.analysis.utils": {"no_refresh": no_refresh, "refresh": refresh},
        "smdebug.core": {"__path__": []},
        "smdebug.core.collection": {"CollectionKeys": CollectionKeys},
        "smdebug.core.logger": {"get_logger": lambda name="smdebug": logging.getLogger(name)},
        "smdebug.core.modes": {"ModeKeys": ModeKeys},
        "smdebug.core.tensor": {"StepState": StepState, "Tensor": CustomTensor},
        "smdebug.exceptions": {name: getattr(exceptions, name) for name in exceptions.__all__},
        "smdebug.rules": {"Rule": CustomRule, "invoke_rule": invoke_rule, "__path__": []},
        "smdebug.rules.rule": {"Rule": CustomRule},
        "smdebug.rules.rule_invoker": {"invoke_rule": invoke_rule},
        "smdebug.trials": {"create_trial": create_trial, "__path__": []},
        "smdebug.trials.trial": {"Trial": CustomTrial},
        "smdebug.trials.utils": {"create_trial": create_trial},
    }
    for framework in _FRAMEWORKS:
        contents[f"smdebug.{framework}"] = {
            "modes": ModeKeys,
            "create_trial": create_trial,
            "CollectionKeys": CollectionKeys,
        }
    modules: dict[str, ModuleType] = {}
    for name, content in contents.items():
        made = modules[name] = _Module(name, "A stand-in for the part of smdebug of this name.")
        made.__spec__ = ModuleSpec(name, None, is_package="__path__" in content)
        made.__dict__.update(content)
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    return modules
