"""The version of smdbg-core; a test holds it equal to the one in pyproject.toml."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
