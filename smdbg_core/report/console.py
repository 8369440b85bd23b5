"""Reports for people, on a terminal."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from smdbg_core.findings import Finding
from smdbg_core.outcomes import Coverage, Outcome, Report, RunSummary
from smdbg_core.rule import Documentation

__all__ = ["finding_line", "plain", "render_console"]

_SHOWN = 5
_DETAILED = 3
_ORDER = {"critical": 0, "warning": 1, "info": 2}
_LABELS = {"fired": "FIRED", "error": "ERROR", "clean": "clean", "not_evaluated": "not evaluated"}
_COLOURS = {"fired": "red", "error": "magenta", "clean": "green", "not_evaluated": "yellow"}

Style = Callable[[str, str], str]
"""Colours a text: `style(text, colour)`."""


def render_console(
    report: Report,
    documentation: Mapping[str, Documentation] | None = None,
    *,
    width: int = 100,
    style: Style | None = None,
) -> str:
    """The report as text: the verdict of each rule, what was found, what to do, what was not judged.

    Args:
        report: The report.
        documentation: What rules say about themselves, by rule name.
        width: Columns.
        style: Colours texts; without one there are no colours.
    """
    return "\n".join(_Console(report, documentation or {}, max(width, 40), style).lines()) + "\n"


def finding_line(name: str, finding: Finding) -> str:
    """One finding as a line, with the rule instance that made it."""
    where = _where([finding])
    place = f"{plain(finding.subject)}, {where}" if where else plain(finding.subject)
    return f"{plain(name)}: {place}: {plain(finding.message)}"


def plain(text: str) -> str:
    """The text with control characters made visible: names in data can hold anything."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _Console:
    def __init__(
        self, report: Report, documentation: Mapping[str, Documentation], width: int, style: Style | None
    ) -> None:
        self._report = report
        self._documentation = documentation
        self._width = width
        self._style = style or (lambda text, _: text)

    def lines(self) -> Iterator[str]:
        yield from self._run(self._report.run)
        outcomes = self._report.outcomes
        wide = max((len(plain(outcome.name)) for outcome in outcomes), default=0)
        by_status = {status: [o for o in outcomes if o.status == status] for status in _LABELS}
        by_status["fired"].sort(key=lambda outcome: _ORDER[outcome.severity])
        for outcome in (*by_status["fired"], *by_status["error"]):
            yield ""
            yield from self._outcome(outcome, wide)
        if by_status["clean"]:
            yield ""
        for outcome in by_status["clean"]:
            yield from self._outcome(outcome, wide)
        if by_status["not_evaluated"]:
            yield ""
            yield self._style("Not evaluated", _COLOURS["not_evaluated"])
            yield from self._not_evaluated(by_status["not_evaluated"], wide)
        yield from self._actions()
        if self._report.warnings:
            yield ""
            yield self._style("Warnings", "yellow")
            for warning in self._report.warnings:
                yield from self._wrap(plain(warning), "  ", 4)
        yield ""
        counts = [f"{len(found)} {_LABELS[status].lower()}" for status, found in by_status.items() if found]
        failed = len(self._report.failed_actions)
        counts += [f"{_count(failed, 'action')} FAILED"] if failed else []
        yield "Verdict: " + (", ".join(counts) or "no rules") + "."

    def _not_evaluated(self, outcomes: list[Outcome], wide: int) -> Iterator[str]:
        """Each rule with its reason; rules that share a reason with many others share a line."""
        many = len(outcomes) > _DETAILED
        by_reason: dict[str, list[str]] = {}
        for outcome in outcomes:
            # What the run holds instead is the same for all rules that found nothing.
            reason = (outcome.reason or "").partition("; ")[0] if many else outcome.reason or ""
            by_reason.setdefault(reason, []).append(outcome.name)
        alone = {reason: names for reason, names in by_reason.items() if len(names) <= _DETAILED}
        for reason, names in alone.items():
            for name in names:
                yield from self._wrap(f"{plain(name):<{wide}}  {plain(reason)}", "  ", wide + 4)
        for reason, names in by_reason.items():
            if reason not in alone:
                yield from self._wrap(f"{plain(reason)}: {', '.join(map(plain, names))}", "  ", 4)
        if many:
            yield "  (--rule NAME says more about each)"

    def _actions(self) -> Iterator[str]:
        """What was sent, what would be, and what was not."""
        if not self._report.actions:
            return
        yield ""
        yield "Actions"
        wide = max(len(record.status) for record in self._report.actions)
        for record in self._report.actions:
            bad = record in self._report.failed_actions
            label = record.status.upper() if bad else record.status.replace("_", " ")
            colour = "magenta" if bad else "green" if record.status == "sent" else "yellow"
            head = f"  {self._style(f'{label:<{wide}}', colour)}  "
            stands = f" ({_count(record.count, 'finding')})" if record.count > 1 else ""
            told = f"{record.name} for {record.rule} {record.state}{stands}: {record.detail}"
            first, *rest = self._wrap(plain(told), "", wide + 4) or [""]
            yield head + first
            yield from rest
            for request in record.requests:
                text = json.dumps(request, ensure_ascii=False)
                yield from self._wrap(plain(text), " " * (wide + 4), wide + 6)

    def _run(self, run: RunSummary) -> Iterator[str]:
        yield plain(run.uri)
        if "trial" in run.has:
            modes = ", ".join(f"{count} {mode}" for mode, count in run.modes.items())
            workers = _count(len(run.workers), "worker")
            steps = f"{run.steps} saved steps, {run.first_step} to {run.last_step} ({modes})"
            ended = "" if run.ended else "; no end marker: still running, or killed"
            yield from self._wrap(f"{steps}; {run.tensors} tensors; {workers}{ended}", "", 0)
        if "profiler" in run.has:
            files = _count(run.profiler_files, "file")
            nodes = f" of {', '.join(map(plain, run.nodes))}" if run.nodes else ""
            yield from self._wrap(f"profiler output: {files}{nodes}", "", 0)

    def _outcome(self, outcome: Outcome, wide: int) -> Iterator[str]:
        label = self._style(_LABELS[outcome.status], _COLOURS[outcome.status])
        head = f"{label}  {plain(outcome.name):<{wide}}"
        if outcome.status == "error":
            yield head
            yield from self._wrap(f"{plain(outcome.plugin)}: {plain(outcome.reason or '')}", "  ", 2)
            return
        judged = _judged(outcome.coverage)
        if outcome.status == "clean":
            closest = outcome.closest
            near = ""
            if closest is not None:
                value, limit = f"{closest.value:.3g}", f"{closest.comparison} {closest.limit:g}"
                near = f"; closest: {closest.statistic} {value}, fires at {limit}"
            if outcome.artifacts:
                near = f"; {_count(len(outcome.artifacts), 'file')} written"
            yield from self._wrap(f"{head}  {judged}{near}", "", 2, styled=True)
            if outcome.reason:
                yield from self._wrap(plain(outcome.reason), "  ", 2)
            return
        yield f"{head}  {outcome.severity}"
        yield from self._findings(outcome)
        documentation = self._documentation.get(outcome.rule)
        if documentation is not None and documentation.remedy:
            yield from self._wrap(f"What to do: {documentation.remedy}", "  ", 4)

    def _findings(self, outcome: Outcome) -> Iterator[str]:
        """The findings by subject, each subject once however many episodes it has."""
        by_subject: dict[tuple[str, str | None, str | None], list[Finding]] = {}
        for finding in outcome.findings:
            by_subject.setdefault((finding.subject, finding.worker, finding.node), []).append(finding)
        for episodes in list(by_subject.values())[:_SHOWN]:
            first = episodes[0]
            where = _where(episodes)
            place = f"{plain(first.subject)}, {where}" if where else plain(first.subject)
            yield from self._wrap(f"{place}: {plain(first.message)}", "  ", 4)
        more = len(by_subject) - _SHOWN
        if more > 0:
            yield f"  ... and {_count(more, 'more subject' if first.step is None else 'more tensor')}"
        if outcome.findings_truncated:
            yield f"  ... and {outcome.findings_truncated} findings beyond the cap"

    def _wrap(self, text: str, first: str, indent: int, *, styled: bool = False) -> list[str]:
        if styled and "\x1b" in text:
            return [first + text]
        return textwrap.wrap(
            text,
            self._width,
            initial_indent=first,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _where(episodes: list[Finding]) -> str:
    """Steps, mode and worker of the episodes of one subject; or node and time."""
    first, last = episodes[0], episodes[-1]
    points = sum(episode.count for episode in episodes)
    several = f" in {len(episodes)} episodes" if len(episodes) > 1 else ""
    if first.step is None:
        parts = [plain(part) for part in (first.worker or first.node,) if part]
        if first.window_start_us is not None and last.window_end_us is not None:
            span = _span(first.window_start_us, last.window_end_us)
            parts.append(f"{span} ({_count(points, 'window')}{several})" if points > 1 else span)
        return ", ".join(parts)
    steps = f"step {first.step}"
    if last.last_step not in (None, first.step):
        steps = f"steps {first.step} to {last.last_step} ({points} points{several})"
    modes = dict.fromkeys(one.mode for one in episodes if one.mode not in (None, "GLOBAL"))
    mode = f" {' and '.join(map(str, modes))}" if modes else ""
    worker = f", {plain(first.worker)}" if first.worker not in (None, "worker_0") else ""
    return f"{steps}{mode}{worker}"


def _span(start: int, end: int) -> str:
    """A stretch of time, UTC."""
    begin, stop = (datetime.fromtimestamp(us / 1e6, UTC) for us in (start, end))
    until = "%H:%M:%S" if begin.date() == stop.date() else "%Y-%m-%d %H:%M:%S"
    return f"{begin:%Y-%m-%d %H:%M:%S} to {stop:{until}} UTC"


def _judged(coverage: Coverage) -> str:
    """How much was judged."""
    if coverage.windows:
        return f"{coverage.series} series, {_count(coverage.windows, 'window')}"
    if coverage.steps:
        return f"{_count(coverage.tensors, 'tensor')}, {_count(coverage.steps, 'step')}"
    return _count(coverage.points, "point")
