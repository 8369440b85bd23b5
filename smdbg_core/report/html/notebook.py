"""Reports in notebooks."""

from __future__ import annotations

from html import escape

from smdbg_core.outcomes import Report
from smdbg_core.report.console import render_console
from smdbg_core.report.html.extra import missing_extra

__all__ = ["render_notebook"]


def render_notebook(report: Report) -> str:
    """The page in a frame of its own, so that neither styles nor scripts of the notebook meet it.

    Without the extra, or without evidence, it is the text that a terminal shows.
    """
    if report.evidence is None or missing_extra():
        return f"<pre>{escape(render_console(report))}</pre>"
    from smdbg_core.report.html.page import render_html

    page = escape(render_html(report))
    style = "width:100%;height:80vh;min-height:480px;border:1px solid #8888"
    return f'<iframe title="smdbg report" sandbox="allow-scripts allow-downloads" style="{style}" srcdoc="{page}"></iframe>'
