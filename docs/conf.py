"""Sphinx's configuration: `make docs` builds the site."""

from __future__ import annotations

from typing import Any

project = "smdbg"
author = "The smdbg authors"
extensions = ["myst_parser"]
myst_heading_anchors = 4
exclude_patterns = ["rules/prose"]
html_theme = "furo"
html_title = "smdbg"
html_show_copyright = False
nitpicky = True
# A dash of typographers is no part of an option.
smartquotes = False

INDEX = "\n\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def add_contents(app: Any, docname: str, source: list[str]) -> None:
    """Let the page of a folder list the others; in the repository it is plain Markdown."""
    if docname.endswith("/README"):
        source[0] += INDEX


def setup(app: Any) -> dict[str, Any]:
    """Extend Sphinx."""
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True}
