"""The report as plain data: what JSON, JSON lines and every other machine format are made of."""

from __future__ import annotations

from typing import Any

import msgspec

from smdbg_core.findings import Finding
from smdbg_core.finite import finite
from smdbg_core.outcomes import Coverage, Outcome, Report

__all__ = ["finding_document", "outcome_document", "report_document", "report_schema"]


def report_document(report: Report) -> dict[str, Any]:
    """The report as dicts, lists and JSON's scalars; non-finite numbers are strings."""
    document: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(report, outcomes=[]))
    document["outcomes"] = [outcome_document(outcome) for outcome in report.outcomes]
    return finite(document)  # type: ignore[no-any-return]


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """One outcome; its coverage counts tensors and steps, or series and windows."""
    document: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(outcome, measurements=None))
    del document["measurements"]
    document["coverage"] = _coverage(outcome.coverage)
    return finite(document)  # type: ignore[no-any-return]


def finding_document(finding: Finding) -> dict[str, Any]:
    """One finding; all location keys are there, `None` where unused."""
    return finite(msgspec.to_builtins(finding))  # type: ignore[no-any-return]


def report_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the report."""
    (schema,), components = msgspec.json.schema_components([Report], ref_template="#/$defs/{name}")
    # What rules measured is for the rules that report on it.
    del components["Outcome"]["properties"]["measurements"], components["Measurements"]
    named: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "smdbg report",
    }
    return _with_non_finite(named | schema | {"$defs": components})  # type: ignore[no-any-return]


def _coverage(coverage: Coverage) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(coverage)
    unused = ("steps", "tensors") if coverage.windows else ("windows", "series")
    return {key: value for key, value in document.items() if key not in unused}


def _with_non_finite(schema: Any) -> Any:
    """Let the strings of non-finite numbers stand wherever a number may."""
    if isinstance(schema, list):
        return [_with_non_finite(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "number":
        return {"anyOf": [dict(schema), {"enum": ["nan", "inf", "-inf"]}]}
    return {key: _with_non_finite(item) for key, item in schema.items()}
