"""Outcomes: how every rule ended, what it judged, and the report that holds them all."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from smdbg_core.findings import Finding

__all__ = [
    "ActionRecord",
    "ActionStatus",
    "Closest",
    "Coverage",
    "Measurements",
    "Outcome",
    "Report",
    "RunSummary",
    "Severity",
    "Status",
]

Status: TypeAlias = Literal["fired", "clean", "not_evaluated", "error"]
ActionStatus: TypeAlias = Literal[
    "sent", "dry_run", "vetoed", "failed", "unknown", "already_sent", "suppressed"
]
"""`sent`: done now. `already_sent`: done by an earlier evaluation of the same run. `unknown`: begun, and
nothing tells whether it took effect. `suppressed`: held back by a rate limit."""

Severity: TypeAlias = Literal["critical", "warning", "info"]

SCHEMA_VERSION = 1


class Coverage(Struct, frozen=True, kw_only=True):
    """What a rule judged and what it could not."""

    steps: int = 0
    """Steps with at least one judged point."""

    tensors: int = 0
    """Tensors judged at least once, each worker's counted apart."""

    windows: int = 0
    """Scan windows with at least one judged point."""

    series: int = 0
    """Profiler series judged at least once."""

    points: int = 0
    """Judged points, the indeterminate ones included."""

    non_finite: int = 0
    """Points that are indeterminate because of NaN or infinities."""

    skipped: dict[str, int] = field(default_factory=dict)
    """Points that were not judged, by reason."""


class Closest(Struct, frozen=True, kw_only=True):
    """The clean point that came nearest to its limit."""

    subject: str
    worker: str | None
    step: int | None
    statistic: str
    value: float
    comparison: str
    limit: float


class Measurements(Struct, frozen=True, kw_only=True):
    """What a profiler rule measured, apart from its verdict."""

    triggered: int = 0
    """How often it fired; by default the windows with findings."""

    violations: int = 0
    datapoints: int = 0
    """Samples or events that it judged."""

    details: dict[str, Any] = field(default_factory=dict)
    """The numbers behind the verdict, as JSON has them."""

    parameters: dict[str, Any] = field(default_factory=dict)
    """The rule's parameters as the service names them; by default all that it knows, in their order."""


class Outcome(Struct, frozen=True, kw_only=True):
    """How one rule ended on one run."""

    rule: str
    """Name of the rule, as its entry point has it."""

    name: str
    """Name of this instance; differs where one rule is configured twice."""

    plugin: str
    """`distribution==version[EntryPoint]`."""

    severity: Severity
    status: Status
    reason: str | None = None
    """Why the rule was not evaluated or failed; a remark on coverage otherwise."""

    parameters: dict[str, Any]
    coverage: Coverage
    findings: list[Finding] = []
    findings_truncated: int = 0
    """Episodes beyond the cap, counted but not kept."""

    closest: Closest | None = None
    measurements: Measurements | None = None
    """Of a profiler rule; rules that report on others have them, the report does not."""

    artifacts: list[str] = []
    """Files that the rule wrote, relative to the output folder."""

    traceback: str | None = None
    """Where the rule failed, for status `error`."""


class ActionRecord(Struct, frozen=True, kw_only=True):
    """What became of one event at one action."""

    action: str
    """Name of the action, as its entry point has it."""

    name: str
    """Name of this instance."""

    plugin: str
    """`distribution==version[EntryPoint]`."""

    rule: str
    """Name of the rule's instance."""

    event: str
    """Id of the event; the same in a rerun."""

    state: Literal["fired", "cleared"]
    status: ActionStatus
    count: int
    """How many findings the notice stands for."""

    detail: str
    """What was done, or why not and what to try."""

    requests: list[dict[str, Any]] = []
    """In a dry run: what would be sent."""

    superseded: bool = False
    """Whether data that came later, while the run was followed, changed what the notice told of."""


class RunSummary(Struct, frozen=True, kw_only=True):
    """What the evaluated run holds."""

    uri: str
    has: list[str]
    """`trial`, `profiler`, or both."""

    ended: bool | None = None
    """Whether the end marker of a trial is there."""

    steps: int = 0
    first_step: int | None = None
    last_step: int | None = None
    modes: dict[str, int] = {}
    """Steps by mode."""

    workers: list[str] = []
    tensors: int = 0
    nodes: list[str] = []
    """Machines with profiler output."""

    profiler_files: int = 0


class Report(Struct, frozen=True, kw_only=True):
    """The result of an evaluation; every output format renders this object."""

    schema_version: int = SCHEMA_VERSION
    smdbg_version: str
    run: RunSummary
    outcomes: list[Outcome]
    actions: list[ActionRecord] = []
    warnings: list[str] = []
    evidence: Any = None
    """What an HTML report shows beside the verdicts, as `smdbg_core.evidence.Evidence`; `None` unless
    `evaluate(..., evidence=True)`. Not part of the report in JSON."""

    documentation: dict[str, tuple[str, str, str]] = {}
    """With evidence: what each rule instance finds, why it matters, what to do. Not part of JSON."""

    def _repr_html_(self) -> str:
        """The report in a notebook."""
        # Imports go downwards only; the report is the one object that has to know who renders it.
        notebook = import_module("smdbg_core.report.html.notebook")
        html: str = notebook.render_notebook(self)
        return html

    @property
    def failed_actions(self) -> list[ActionRecord]:
        """Actions that failed, or of which nobody knows whether they took effect."""
        return [record for record in self.actions if record.status in ("failed", "unknown")]

    @property
    def fired(self) -> list[Outcome]:
        """Outcomes of the rules that fired."""
        return [outcome for outcome in self.outcomes if outcome.status == "fired"]

    def outcome(self, name: str) -> Outcome:
        """The outcome of the rule instance `name`.

        Raises:
            KeyError: No such instance in this report.
        """
        for outcome in self.outcomes:
            if outcome.name.casefold() == name.casefold():
                return outcome
        raise KeyError(name)
