"""Reports as JUnit XML, for continuous integration."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from smdbg_core.outcomes import Outcome, Report

__all__ = ["render_junit"]

# What XML 1.0 has no way to write.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(report: Report) -> str:
    """The report as a test suite: fired is a failure, error an error, not evaluated skipped.

    An action that failed is an error too.
    """
    counts = {
        status: sum(outcome.status == status for outcome in report.outcomes)
        for status in ("fired", "error", "not_evaluated")
    }
    suite = ET.Element(
        "testsuite",
        name=_text(report.run.uri),
        tests=str(len(report.outcomes) + len(report.failed_actions)),
        failures=str(counts["fired"]),
        errors=str(counts["error"] + len(report.failed_actions)),
        skipped=str(counts["not_evaluated"]),
    )
    for outcome in report.outcomes:
        _add_case(suite, outcome)
    for record in report.failed_actions:
        name = f"{record.name} for {record.rule} {record.state}"
        case = ET.SubElement(suite, "testcase", classname=_text(record.plugin), name=_text(name))
        ET.SubElement(case, "error", type=record.status, message=_text(record.detail))
    if report.warnings:
        ET.SubElement(suite, "system-err").text = _text("\n".join(report.warnings))
    root = ET.Element("testsuites", name="smdbg")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_case(suite: ET.Element, outcome: Outcome) -> None:
    case = ET.SubElement(suite, "testcase", classname=_text(outcome.plugin), name=_text(outcome.name))
    reason = _text(outcome.reason or "")
    if outcome.status == "fired":
        first = outcome.findings[0]
        headline = f"{first.subject} at step {first.step}: {first.message}"
        failure = ET.SubElement(case, "failure", type=outcome.severity, message=_text(headline))
        failure.text = _text(
            "\n".join(
                f"{f.subject} {f.worker or ''} steps {f.step}-{f.last_step} ({f.count}): {f.message}"
                for f in outcome.findings
            )
        )
    elif outcome.status == "error":
        error = ET.SubElement(case, "error", message=reason)
        error.text = _text(outcome.traceback or "")
    elif outcome.status == "not_evaluated":
        ET.SubElement(case, "skipped", message=reason)


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
