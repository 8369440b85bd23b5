"""The loader: import one plugin, and keep its faults from everybody else."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from smdbg_core.discovery.finder import PluginSpec
from smdbg_core.errors import (
    ConfigError,
    PluginContractError,
    PluginError,
    PluginIncompatibleError,
    PluginLoadError,
)

__all__ = ["Loaded", "import_file", "load", "load_file", "unmet_requirements"]

SLOW_SECONDS = 1.0


class Loaded(NamedTuple):
    """A plugin that was imported."""

    spec: PluginSpec
    object: Any


def load(spec: PluginSpec) -> Loaded:
    """Import a plugin and check that it is what its entry-point group promises.

    What it prints while it is imported goes to standard error, so that it is no part of any output.

    Raises:
        PluginIncompatibleError: It requires another version of smdbg-core; it is not imported.
        PluginLoadError: It cannot be imported.
        PluginContractError: It is no rule, action or hook plugin.
    """
    api = [text for text in unmet_requirements(spec.requirements) if text.startswith("smdbg-core ")]
    if api:
        raise PluginIncompatibleError(spec.identity, f"it requires {api[0]}")
    module_name, _, attribute = spec.value.partition(":")
    try:
        with _printing_aside():
            target: Any = importlib.import_module(module_name)
            for part in filter(None, attribute.split(".")):
                target = getattr(target, part)
    except (Exception, SystemExit) as error:
        raise PluginLoadError(spec.identity, describe(error)) from error
    complaint = unfit(spec.kind, spec.name, target)
    if complaint:
        raise PluginContractError(spec.identity, complaint)
    return Loaded(spec, target)


def load_file(reference: str) -> type[Any]:
    """The class behind `path/to/file.py:ClassName`, for rules that a configuration names.

    A class that was written for smdebug is adapted.

    Raises:
        ConfigError: There is no such file or class.
        PluginLoadError: The file cannot be executed.
    """
    path_text, colon, name = reference.rpartition(":")
    path = Path(path_text)
    if not colon or path.suffix != ".py" or not path.is_file():
        message = f"{reference!r}: expected path/to/file.py:ClassName, with a file that exists"
        raise ConfigError(message)
    from smdbg_core import smdebug

    with smdebug.standing_in():
        module = import_file(f"smdbg_file_{path.stem}_{abs(hash(path.resolve())):x}", str(path))
    found: type[Any] | None = getattr(module, name, None)
    if smdebug.is_custom_rule(found):
        return smdebug.adapted(found)  # type: ignore[arg-type]
    complaint = unfit("rule", name, found)
    if complaint or found is None:
        message = f"{reference!r}: {complaint}"
        raise ConfigError(message)
    return found


def import_file(name: str, path: str) -> ModuleType:
    """Import a file as the module of that name.

    Raises:
        PluginLoadError: It cannot be imported.
    """
    spec = util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginLoadError(path, "it is no Python source")
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _printing_aside():
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise PluginLoadError(path, describe(error)) from error
    return module


@contextlib.contextmanager
def _printing_aside() -> Iterator[None]:
    """Send what is printed to standard error, also by child processes and code that bypasses `sys.stdout`."""
    kept = None
    # There may be no such streams: under a graphical launcher, or where they were closed.
    with contextlib.suppress(OSError, AttributeError, ValueError):
        sys.__stdout__.flush()  # type: ignore[union-attr]
        kept = os.dup(1)
        os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        with contextlib.suppress(OSError, AttributeError, ValueError):
            sys.__stdout__.flush()  # type: ignore[union-attr]
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def unfit(kind: str, name: str, target: Any) -> str | None:
    """Why an imported object is not what its group promises, `None` if it is."""
    if kind == "hooks":
        return None
    if not name.isascii() or not name.isalnum() or not name[0].isupper():
        return f"the name {name!r} is not letters and digits that begin with a capital"
    from smdbg_core.action import Action
    from smdbg_core.rule import ProfilerRule, TensorRule

    promised = {"rule": TensorRule, "profiler rule": ProfilerRule, "action": Action}[kind]
    if not isinstance(target, type) or not issubclass(target, promised):
        return f"it is no subclass of {promised.__name__}"
    missing = sorted(getattr(target, "__abstractmethods__", ()))
    missing = missing or list(_abstract(target))
    return f"it does not define {', '.join(missing)}" if missing else None


def _abstract(target: type) -> Iterable[str]:
    """Names of methods that a base class only declares."""
    for name in ("reads", "evaluate", "dispatch"):
        if getattr(getattr(target, name, None), "__isabstractmethod__", False):
            yield name


@cache
def unmet_requirements(requirements: tuple[str, ...]) -> tuple[str, ...]:
    """The requirements that this environment does not meet, each as `name specifier, installed`.

    The plugins of a distribution share the answer.
    """
    if not requirements:
        return ()
    from importlib.metadata import PackageNotFoundError, version

    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    unmet = []
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            unmet.append(f"{name} {requirement.specifier}".strip() + ", which is not installed")
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            unmet.append(f"{name} {requirement.specifier}, and {installed} is installed")
    return tuple(unmet)


def describe(error: BaseException) -> str:
    """One line: kind, message, and the place in the plugin where it was raised.

    Paths begin where imports look, so that the line is the same in every environment.
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    frames = [frame for frame in frames if frame.filename != __file__]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, PluginError):
        return error.message
    text = str(error).splitlines()[0] if str(error) else ""
    line = f"{type(error).__name__}{': ' if text else ''}{text}{place}"
    for folder in sorted(filter(None, sys.path), key=len, reverse=True):
        line = line.replace(folder.rstrip(os.sep) + os.sep, "")
    return line
