"""Whether what pages need is installed."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["INSTALL", "missing_extra"]

INSTALL = "pip install 'smdbg-core[report]'"


def missing_extra() -> str | None:
    """What to do when templates or plots are not installed; `None` when they are."""
    absent = [name for name in ("bokeh", "jinja2") if find_spec(name) is None]
    return f"HTML reports need {' and '.join(absent)}: {INSTALL}" if absent else None
