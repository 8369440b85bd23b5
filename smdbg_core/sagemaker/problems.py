"""The error of the drop-in."""

from __future__ import annotations

from smdbg_core.errors import ParameterError

__all__ = ["RuleConfigError"]


class RuleConfigError(ParameterError, AssertionError, TypeError):
    """Something given to a rule or action configuration is wrong; `problems` lists everything.

    The library that is replaced raises AssertionError, TypeError or ValueError, one problem at a time.
    All problems of a call are raised together here, so that this is each of them.
    """
