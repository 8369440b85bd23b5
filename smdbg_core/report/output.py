"""The files of a report below an output folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from smdbg_core.engine.artifacts import write_artifacts
from smdbg_core.findings import Artifact
from smdbg_core.outcomes import Report
from smdbg_core.report.html.extra import missing_extra
from smdbg_core.report.json import render_json
from smdbg_core.report.junit import render_junit

__all__ = ["write_report"]

_PAGES = {"profiler-reports": "profiler-report.html", "xgboost-reports": "xgboost_report.html"}
"""Folders of the service's layout, and the page that it has beside each."""


def write_report(folder: Path, report: Report) -> str | None:
    """Write `report.json`, `report.xml` and, where the extra is installed, `report.html`.

    The page is also written beside every folder of report files that a rule wrote, under the name that
    the service gives it.

    Returns:
        Why there is no page, if there is none.
    """
    made = [
        Artifact(path="report.json", content=render_json(report).encode()),
        Artifact(path="report.xml", content=render_junit(report).encode(errors="replace")),
    ]
    write_artifacts(folder, made)
    missing = missing_extra()
    if missing is None:
        from smdbg_core.report.html.page import render_html

        page = render_html(report).encode()
        paths = dict.fromkeys(["report.html", *_beside(report)])
        write_artifacts(folder, [Artifact(path=path, content=page, media_type="text/html") for path in paths])
    return missing


def _beside(report: Report) -> list[str]:
    """Pages of the service's layout."""
    paths = (PurePosixPath(path) for outcome in report.outcomes for path in outcome.artifacts)
    return [
        str(path.parent.parent / _PAGES[path.parent.name]) for path in paths if path.parent.name in _PAGES
    ]
