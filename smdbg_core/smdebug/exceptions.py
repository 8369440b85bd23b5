"""What smdebug raises: names, parents and attributes are its own."""

from __future__ import annotations

from typing import Any

from smdbg_core.smdebug.modes import ModeKeys

__all__ = [
    "IndexReaderException",
    "InsufficientInformationForRuleInvocation",
    "InvalidCollectionConfiguration",
    "InvalidWorker",
    "MissingCollectionFiles",
    "NoMoreData",
    "NoMoreProfilerData",
    "RuleEvaluationConditionMet",
    "SMDebugCustomerError",
    "SMDebugError",
    "SMDebugNotImplementedError",
    "SMDebugRuntimeError",
    "SMDebugTypeError",
    "SMDebugValueError",
    "ShapeUnavailableForStep",
    "StepNotYetAvailable",
    "StepUnavailable",
    "TensorUnavailable",
    "TensorUnavailableForStep",
]


class SMDebugError(Exception):
    """Root of all."""


class SMDebugCustomerError(SMDebugError):
    """The user's."""


class SMDebugTypeError(SMDebugError, TypeError):
    """A value of a wrong type."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """Anything else."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """Not offered."""


class SMDebugValueError(SMDebugError, ValueError):
    """A wrong value."""


class _ToldError(SMDebugError):
    """Keeps what it was made with."""

    _fields: tuple[str, ...] = ()

    def __init__(self, *values: Any, **named: Any) -> None:
        given = dict(zip(self._fields, values, strict=False)) | named
        super().__init__(*values)
        for field in self._fields:
            setattr(self, field, given.get(field, self._default(field)))

    @staticmethod
    def _default(field: str) -> Any:
        return {"mode": ModeKeys.GLOBAL, "has_reductions": False, "end_of_rule": False}.get(field)

    def __str__(self) -> str:
        parts = ((field, getattr(self, field)) for field in self._fields)
        return ", ".join(f"{field} {v.name if isinstance(v, ModeKeys) else v}" for field, v in parts)


class InvalidCollectionConfiguration(_ToldError):
    """A collection that cannot be."""

    _fields = ("c_name",)


class StepNotYetAvailable(_ToldError):
    """The step lies ahead."""

    _fields = ("step", "mode")


class StepUnavailable(_ToldError):
    """The step was not saved."""

    _fields = ("step", "mode")


class MissingCollectionFiles(_ToldError):
    """No worker has written its collections."""


class IndexReaderException(_ToldError):
    """An index file that cannot be read."""

    _fields = ("message",)


class TensorUnavailableForStep(_ToldError):
    """The step was saved without the tensor, or without its value."""

    _fields = ("tname", "step", "mode", "has_reductions")


class ShapeUnavailableForStep(_ToldError):
    """Neither shape nor value was saved."""

    _fields = ("tname", "step", "mode")


class TensorUnavailable(_ToldError):
    """No such tensor."""

    _fields = ("tname",)


class InvalidWorker(_ToldError):
    """No such worker."""

    _fields = ("worker",)


class NoMoreProfilerData(_ToldError):
    """The profiler output has ended."""

    _fields = ("timestamp",)


class NoMoreData(_ToldError):
    """The trial has ended."""

    _fields = ("step", "mode", "last_step")


class RuleEvaluationConditionMet(_ToldError):
    """The rule fires."""

    _fields = ("rule_name", "step", "end_of_rule")
    end_of_rule: bool


class InsufficientInformationForRuleInvocation(_ToldError):
    """The rule cannot judge."""

    _fields = ("rule_name", "message")
