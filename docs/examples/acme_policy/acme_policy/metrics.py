"""Outcomes as Prometheus metrics, in a file for the node exporter's textfile collector."""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from smdbg_core import Report, hookimpl

DEFAULT = "/var/lib/node_exporter/textfile_collector"
STATUSES = ("fired", "clean", "not_evaluated", "error")


@hookimpl
def smdbg_run_finished(report: Report) -> None:
    """Replace the file of this run; the collector never sees half of it."""
    folder = Path(os.environ.get("ACME_METRICS_FOLDER", DEFAULT))
    name = "smdbg-" + hashlib.sha256(report.run.uri.encode()).hexdigest()[:12]
    # The collector reads what ends in `.prom`; the name of the draft belongs to this process alone.
    draft = folder / f"{name}.{os.getpid()}"
    draft.write_text("".join(f"{line}\n" for line in _lines(report)), encoding="utf-8")
    draft.replace(folder / f"{name}.prom")


def _lines(report: Report) -> Iterator[str]:
    run = report.run.uri
    yield from _head("smdbg_rule_status", "1 for the status in which a rule ended, 0 for the others.")
    for outcome in report.outcomes:
        for status in STATUSES:
            value = int(outcome.status == status)
            yield _sample("smdbg_rule_status", value, run=run, rule=outcome.name, status=status)
    yield from _head("smdbg_rule_findings", "Episodes that a rule found.")
    for outcome in report.outcomes:
        count = len(outcome.findings) + outcome.findings_truncated
        yield _sample("smdbg_rule_findings", count, run=run, rule=outcome.name)
    yield from _head("smdbg_actions", "Notices of an action, by what became of them.")
    for (action, status), count in Counter((one.name, one.status) for one in report.actions).items():
        yield _sample("smdbg_actions", count, run=run, action=action, status=status)
    yield from _head("smdbg_run_judged_seconds", "When the run was judged, in seconds since the epoch.")
    yield _sample("smdbg_run_judged_seconds", round(time.time()), run=run)


def _head(name: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"


def _sample(name: str, value: int, **labels: str) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{pairs}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
