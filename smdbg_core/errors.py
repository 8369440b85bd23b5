"""The exception tree: everything that smdbg raises on purpose derives from `SmdbgError`.

Messages say what happened, where, what was found, what was expected and what to try.
Every exception here survives pickling, since measuring may run in other processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

__all__ = [
    "ActionError",
    "ConfigError",
    "CorruptDataError",
    "DataAccessError",
    "DataError",
    "MissingDataError",
    "ParameterError",
    "ParameterProblem",
    "PluginConflictError",
    "PluginContractError",
    "PluginError",
    "PluginExecutionError",
    "PluginIncompatibleError",
    "PluginLoadError",
    "SmdbgError",
    "UnknownOutcomeError",
    "Veto",
]


class SmdbgError(Exception):
    """Root of all errors that smdbg raises on purpose."""


class ConfigError(SmdbgError, ValueError):
    """The command line, the configuration file or a call is wrong; nothing was run."""


class ParameterProblem(NamedTuple):
    """One problem with one parameter."""

    parameter: str
    """Name of the parameter as the user wrote it."""

    kind: Literal["unknown", "type", "value", "conflict"]
    """No such parameter; not readable as its type; outside its range; inconsistent with another."""

    message: str
    """What is wrong, what was expected, what to try."""


class ParameterError(ConfigError):
    """One or more parameters of a rule or action are wrong; all problems are in `problems`."""

    def __init__(self, owner: str, problems: Sequence[ParameterProblem]) -> None:
        self.owner = owner
        self.problems = tuple(problems)
        lines = [f"{owner}: {problem.message}" for problem in self.problems]
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.owner, self.problems)


class PluginError(SmdbgError):
    """Something is wrong with a plugin; `plugin` says which, as `distribution==version[Name]`."""

    def __init__(self, plugin: str, message: str) -> None:
        self.plugin = plugin
        self.message = message
        super().__init__(f"{plugin}: {message}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.plugin, self.message)


class PluginLoadError(PluginError):
    """A plugin could not be imported."""


class PluginConflictError(PluginError):
    """Two plugins claim one name."""


class PluginIncompatibleError(PluginError):
    """A plugin requires a version of smdbg-core that is not installed."""


class PluginContractError(PluginError):
    """A plugin loaded, but is not what its entry-point group promises."""


class PluginExecutionError(PluginError):
    """A plugin raised while it ran."""


class ActionError(SmdbgError):
    """An action could not be carried out: nothing took effect, or what did was to no avail."""


class UnknownOutcomeError(ActionError):
    """An action was begun, and nothing tells whether it took effect."""


class DataError(SmdbgError):
    """Data could not be read; `where` names the file or folder."""

    def __init__(self, where: str, message: str) -> None:
        self.where = where
        self.message = message
        super().__init__(f"{where}: {message}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.where, self.message)


class CorruptDataError(DataError):
    """Data is there, but damaged."""


class MissingDataError(DataError):
    """Data is not there: no such path, step, tensor, worker or value."""


class DataAccessError(DataError):
    """Data may be there, but it cannot be reached: permissions, network, storage."""


class Veto(SmdbgError):  # noqa: N818 - a decision of a wrapper, not a fault
    """Raised by a hook wrapper, before its yield, to stop an evaluation or an action.

    Args:
        reason: Why; it appears in the outcome or the journal.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)
