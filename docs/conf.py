"""Sphinx's configuration: `make docs` builds the site."""

from __future__ import annotations

project = "smdbg"
author = "The smdbg authors"
copyright = "The smdbg authors"  # noqa: A001 - Sphinx's name
extensions = ["myst_parser"]
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4
exclude_patterns = ["rules/prose"]
html_theme = "furo"
html_title = "smdbg"
nitpicky = True
