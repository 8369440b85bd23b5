"""Reports as JSON and JSON lines."""

from __future__ import annotations

import json
from typing import Any

from smdbg_core.findings import Finding
from smdbg_core.outcomes import Report
from smdbg_core.report.document import finding_document, outcome_document, report_document

__all__ = ["render_finding_line", "render_json", "render_lines"]


def render_json(report: Report) -> str:
    """The report as one object of strict JSON."""
    return json.dumps(report_document(report), indent=1, allow_nan=False) + "\n"


def render_finding_line(name: str, finding: Finding) -> str:
    """One finding at one point as a line: what `--format jsonl` prints while the run is judged."""
    return _line({"type": "finding", "name": name, **finding_document(finding)})


def render_lines(report: Report) -> str:
    """The outcomes, then the run, a line each: what `--format jsonl` prints at the end."""
    lines = [_line({"type": "outcome", **outcome_document(outcome)}) for outcome in report.outcomes]
    document = report_document(report)
    del document["outcomes"]
    return "".join([*lines, _line({"type": "run", **document})])


def _line(document: dict[str, Any]) -> str:
    return json.dumps(document, allow_nan=False) + "\n"
