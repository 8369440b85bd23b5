"""Logging of the command: structlog, to standard error, set up by nobody but the command."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["configure"]


def configure(verbosity: int, log_format: str) -> Any:
    """A logger for one run of the command.

    Args:
        verbosity: -1 errors, 0 warnings, 1 information, 2 and more everything.
        log_format: `text` or `json`.
    """
    import logging

    import structlog

    level = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}.get(verbosity, logging.DEBUG)
    last: Any = structlog.processors.JSONRenderer()
    if log_format == "text":
        last = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    return structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
