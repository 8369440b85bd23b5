"""Sections made from what profiler rules measured: the structure of the service's report files.

A section is chosen by the keys of `Measurements.details`, not by the name of the rule, so that any rule
that measures the same gets it; `docs/reports.md` lists the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from smdbg_core.outcomes import Outcome, Report
from smdbg_core.report.html import figure as figures
from smdbg_core.report.html.blocks import (
    MALFORMED,
    Chart,
    Link,
    Section,
    Table,
    Text,
    clock,
    duration,
    number,
    readable,
    unreadable,
)
from smdbg_core.report.html.distribution_charts import BOX, histogram_chart, share_chart, spread_chart
from smdbg_core.report.html.track_charts import natural

__all__ = ["DETAILS_SECTIONS", "details_sections"]

Block: TypeAlias = Text | Table | Chart
Details: TypeAlias = Mapping[str, Any]

DETAILS_SECTIONS: Final = (
    ("job", "Job summary"),
    ("usage", "System usage"),
    ("phases", "Time by phase"),
    ("loading", "Data loading"),
    ("balance", "GPU balance"),
    ("spread", "Spread by GPU"),
    ("bottlenecks", "Bottlenecks"),
    ("outliers", "Step outliers"),
)
_BLOCKS = ("GPU", "CPU", "GPU memory", "CPU memory", "I/O", "Network")
_SHARES = (
    ("phase", "Which share of time goes to training, evaluation and other things?"),
    ("forward_backward", "Forward or backward: which takes longer?"),
    ("ratio", "Which share of operator time is on the CPU, which on the GPU?"),
    ("general", "What else takes time?"),
    ("horovod", "What does communication spend time on?"),
)


def details_sections(report: Report) -> tuple[dict[str, Section], dict[str, list[Link]]]:
    """One section for each kind of measurement; those that nothing was measured for say so.

    Returns:
        The sections by anchor, and for each rule instance the links to those that show what it measured.
    """
    titles = dict(DETAILS_SECTIONS)
    homes: dict[str, list[Link]] = {}
    found: dict[str, list[Block]] = {key: [] for key, _ in DETAILS_SECTIONS}
    for outcome in report.outcomes:
        details = outcome.measurements.details if outcome.measurements is not None else {}
        for key, make in _MAKERS.items():
            try:
                blocks = make(details, outcome)
            except MALFORMED as error:
                blocks = [unreadable(f"What {outcome.name} measured", error)]
            found[key] += blocks
            if blocks:
                homes.setdefault(outcome.name, []).append(Link(titles[key], key))
    absent = Text("Absent: nothing that was judged measured this.", "note")
    return {key: Section(key, title, found[key] or [absent]) for key, title in DETAILS_SECTIONS}, homes


def _job(details: Details, outcome: Outcome) -> list[Block]:
    start, end = _number(details.get("job_start")), _number(details.get("job_end"))
    if start is None or end is None:
        return []
    total = end - start
    rows = [
        ["Start", f"{clock(start * 1e6)} UTC"],
        ["End", f"{clock(end * 1e6)} UTC"],
        ["Duration", duration(total)],
    ]
    steps = details.get("step_num")
    first = _number(steps.get("first")) if isinstance(steps, Mapping) else None
    last = _number(steps.get("last")) if isinstance(steps, Mapping) else None
    if first is None or last is None or total <= 0:
        return [
            Table("Job", ("", ""), rows),
            Text("No steps were recorded: time before and after them is not known.", "note"),
        ]
    shares = {
        "Initialisation": first / 1e6 - start,
        "Training loop": (last - first) / 1e6,
        "Finalisation, with the last step": end - last / 1e6,
    }
    shares = {name: max(seconds, 0.0) for name, seconds in shares.items()}
    rows += [
        [name, f"{duration(seconds)} ({100 * seconds / total:.1f} %)"] for name, seconds in shares.items()
    ]
    percent = {name: 100 * seconds / total for name, seconds in shares.items()}
    return [
        Table("Job", ("", ""), rows),
        share_chart(percent, "What did the job spend its time on?", "Share of the job (%)"),
    ]


def _usage(details: Details, outcome: Outcome) -> list[Block]:
    rows, medians = [], {}
    for block in _BLOCKS:
        nodes = details.get(block)
        for node, found in sorted(nodes.items()) if isinstance(nodes, Mapping) else ():
            if not (isinstance(found, Mapping) and {"max", "p99", "p95", "p50", "min"} <= found.keys()):
                continue
            unit = "bytes/s" if block == "Network" else "%"
            rows.append(
                [
                    readable(node),
                    block,
                    unit,
                    *(number(found[name]) for name in ("max", "p99", "p95", "p50", "min")),
                ]
            )
            if unit == "%":
                medians[f"{node} {block}"] = tuple(
                    _number(found[name]) or 0.0 for name in ("min", "p50", "p95", "p99", "max")
                )
    if not rows:
        return []
    sentences = [_usage_sentence(details, node) for node in sorted({row[0] for row in rows})]
    head = ("Node", "Metric", "Unit", "Max", "p99", "p95", "p50", "Min")
    blocks: list[Block] = [Text(text) for text in sentences if text]
    blocks.append(Table("Percentiles over the whole run", head, rows, (False, False, False, *[True] * 5)))
    blocks.append(
        spread_chart(
            medians,
            "Which resource is scarce, which is wasted?",
            "Utilisation (%)",
            ("min", "p50", "p95", "p99", "max"),
        )
    )
    return blocks


def _usage_sentence(details: Details, node: str) -> str:
    """What the percentiles mean for the choice of the machine."""

    def value(block: str, name: str) -> float | None:
        found = details.get(block)
        found = found.get(node) if isinstance(found, Mapping) else None
        return _number(found.get(name)) if isinstance(found, Mapping) else None

    gpu95, gpu50, cpu95 = value("GPU", "p95"), value("GPU", "p50"), value("CPU", "p95")
    if gpu95 is None:
        return f"{node}: CPU use is high (p95 {number(cpu95)} %)." if cpu95 is not None and cpu95 > 70 else ""
    if gpu95 < 70 and cpu95 is not None:
        what = (
            "GPUs are under-used while CPUs are busy: a CPU bottleneck is likely"
            if cpu95 > 70
            else "the node is under-used: a smaller machine may do"
        )
        return f"{node}: {what} (p95: GPU {number(gpu95)} %, CPU {number(cpu95)} %)."
    if gpu50 is not None and gpu50 > 70:
        return f"{node}: GPUs are well used (median {number(gpu50)} %)."
    return f"{node}: median GPU use is {number(gpu50)} %."


def _phases(details: Details, outcome: Outcome) -> list[Block]:
    blocks: list[Block] = []
    if "phase" not in details or "low_gpu_utilization" in details or "step_details" in details:
        return blocks
    for key, question in _SHARES:
        shares = _numbers(details.get(key))
        if shares:
            blocks.append(share_chart(shares, question, "Share of time (%)"))
    others = _numbers(details.get("phase")).get("others", 0.0)
    if others > 25:
        blocks.append(
            Text(f"{number(others)} % of the time lies outside of training and evaluation steps.", "note")
        )
    for key in ("CPU", "GPU"):
        shares, totals = _numbers(details.get(key)), _numbers(details.get(f"{key}_total"))
        rows = [
            [readable(name), f"{share:.2f}", number(totals.get(name))]
            for name, share in sorted(shares.items(), key=lambda one: -one[1])
        ]
        if rows:
            blocks.append(
                Table(
                    f"Operators on the {key}",
                    ("Operator", "Share (%)", "Total (µs)"),
                    rows[:50],
                    (False, True, True),
                    folded=len(rows) > 8,
                )
            )
    return blocks


def _loading(details: Details, outcome: Outcome) -> list[Block]:
    times = details.get("dataloading_time")
    if not isinstance(times, Mapping):
        return []
    cores, processes = details.get("cores"), details.get("dataloaders")
    rows = [["CPU cores", number(cores)], ["Data loader processes (median)", number(processes)]]
    rows += [
        [label, readable(details[key])]
        for key, label in (
            ("num_workers", "Configured workers"),
            ("pin_memory", "Pinned memory"),
            ("prefetch", "Prefetching"),
        )
        if key in details
    ]
    rows += [
        [f"Loading time {name}", f"{number(times[name])} s"]
        for name in ("p25", "p50", "p95")
        if name in times
    ]
    blocks: list[Block] = [Table("Data loading", ("", ""), rows)]
    drawn = histogram_chart(times, "How long does loading a batch take?", "Loading time (s)", "Loads")
    return [*blocks, drawn] if drawn else blocks


def _balance(details: Details, outcome: Outcome) -> list[Block]:
    blocks: list[Block] = []
    names: list[str] = []
    rows: list[list[float]] = []
    far: list[tuple[float, str, str]] = []
    for node, found in sorted(details.items(), key=lambda one: natural(str(one[0]))):
        if not (isinstance(found, Mapping) and isinstance(found.get("workloads"), Mapping)):
            continue
        for gpu, counts in sorted(found["workloads"].items(), key=lambda one: natural(str(one[0]))):
            if isinstance(counts, Sequence) and counts and (not rows or len(counts) == len(rows[0])):
                names.append(f"{node} {gpu}")
                rows.append([float(one) for one in counts])
        for one, others in _mapping(found.get("distances")).items():
            far += [(float(distance), f"{node} {one}", other) for other, distance in _numbers(others).items()]
    if not rows:
        return blocks
    cells = np.array(rows)
    shares = 100 * cells / np.maximum(cells.sum(axis=1, keepdims=True), 1)
    plot, height = figures.heat_map(
        np.where(cells > 0, shares, np.nan),
        names,
        start=0,
        end=100,
        x="GPU utilisation (%)",
        unit="Share of samples (%)",
    )
    middle = (np.arange(cells.shape[1]) + 0.5) * 100 / cells.shape[1]
    means = (cells @ middle) / np.maximum(cells.sum(axis=1), 1)
    answer = f"Mean utilisation from {number(float(means.min()))} % ({readable(names[int(means.argmin())])}) to {number(float(means.max()))} % ({readable(names[int(means.argmax())])}); rows that look alike are balanced."
    blocks.append(figures.chart(plot, "Do all GPUs do the same work?", answer, height=height))
    if far:
        table = [
            [readable(one), readable(other), number(distance)]
            for distance, one, other in sorted(far, reverse=True)
        ]
        blocks.append(
            Table(
                "Pairs that differ most",
                ("GPU", "Other GPU", "Distance (0 to 0.83)"),
                table[:20],
                (False, False, True),
                folded=len(table) > 5,
            )
        )
    return blocks


def _spread(details: Details, outcome: Outcome) -> list[Block]:
    boxes: dict[str, tuple[float, ...]] = {}
    for node, found in sorted(details.items(), key=lambda one: natural(str(one[0]))):
        for device, values in sorted(_mapping(found).items(), key=lambda one: natural(str(one[0]))):
            known = _numbers(values)
            if set(BOX) <= known.keys():
                boxes[f"{node} {device}"] = tuple(known[name] for name in BOX)
    if not boxes:
        return []
    question = f"{readable(outcome.name)}: how are the samples of each device spread?"
    return [spread_chart(dict(list(boxes.items())[:60]), question, "Value (%)", BOX)]


def _bottlenecks(details: Details, outcome: Outcome) -> list[Block]:
    low = _number(details.get("low_gpu_utilization"))
    found = details.get("bottlenecks")
    total = outcome.measurements.datapoints if outcome.measurements is not None else 0
    if low is None or found is None or not total:
        return []
    hits = len(found) if isinstance(found, Mapping | Sequence) else 0
    if outcome.measurements is not None:
        hits = max(hits, outcome.measurements.violations)
    hits = min(hits, int(low))
    shares = {"GPU busy": total - low, "GPU low, other reason": low - hits, "GPU low, this bottleneck": hits}
    percent = {name: 100 * value / total for name, value in shares.items()}
    name = readable(outcome.name)
    share = (
        f"{100 * hits / low:.1f} % of the {low:,.0f} samples with low GPUs"
        if low
        else "No sample has low GPUs"
    )
    text = f"{name}: {share}{' are due to this bottleneck' if low else ''}, of {total:,} samples in all."
    return [Text(text), share_chart(percent, f"{name}: why are GPUs low?", "Share of samples (%)")]


def _outliers(details: Details, outcome: Outcome) -> list[Block]:
    rows, blocks = [], list[Block]()
    for worker, found in sorted(_mapping(details.get("step_details")).items()):
        stats = _numbers(_mapping(found).get("step_stats"))
        if not stats:
            continue
        rows.append(
            [
                readable(worker),
                readable(found.get("phase", "–")),
                number(found.get("number_of_outliers")),
                *(number(stats.get(name)) for name in ("mean", "min", "p50", "p95", "p99", "max")),
            ]
        )
        if len(blocks) < 4:
            drawn = histogram_chart(
                found,
                f"How long are the steps of {readable(worker)} that are no outliers?",
                "Step duration (s)",
                "Steps",
            )
            blocks += [drawn] if drawn else []
    if not rows:
        return []
    head = ("Worker", "Phase", "Outliers", "Mean (s)", "Min (s)", "p50 (s)", "p95 (s)", "p99 (s)", "Max (s)")
    return [Table("Steps and outliers", head, rows, (False, False, *[True] * 7)), *blocks]


_MAKERS: Final[Mapping[str, Callable[[Details, Outcome], list[Block]]]] = {
    "job": _job,
    "usage": _usage,
    "phases": _phases,
    "loading": _loading,
    "balance": _balance,
    "spread": _spread,
    "bottlenecks": _bottlenecks,
    "outliers": _outliers,
}


def _number(value: Any) -> float | None:
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
        else None
    )


def _numbers(found: Any) -> dict[str, float]:
    """The entries that are finite numbers."""
    return {
        str(name): known for name, value in _mapping(found).items() if (known := _number(value)) is not None
    }


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
