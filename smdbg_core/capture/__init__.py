"""Capturing system metrics of the machine on which a process runs."""

from __future__ import annotations

from smdbg_core.capture.capture import Capture
from smdbg_core.capture.command import Command

__all__ = ["Capture", "Command"]
