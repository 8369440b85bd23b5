"""Profiler runs: system metrics over time, with the windows in which rules fired, and step durations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker

from smdbg_core.evidence import Evidence, StepTimes, Track, Tracks
from smdbg_core.outcomes import Report
from smdbg_core.report.html import figure as figures
from smdbg_core.report.html.blocks import Chart, Section, Table, Text, count, duration, number, readable
from smdbg_core.report.html.track_charts import natural

__all__ = ["device_section", "step_section", "timeline_section"]

_LINES = 8
_LANES = 8
_NODES = 6
_ROWS = 96
_COLUMNS = 360
_MEASURES = {
    "GPUUtilization": ("GPU utilisation", "%", "Are the GPUs busy?"),
    "GPUMemoryUtilization": ("GPU memory", "%", "How full is GPU memory, and does it grow?"),
    "CPUUtilization": ("CPU utilisation", "%", "Are the CPU cores busy?"),
    "I/OWaitPercentage": ("I/O wait", "%", "Do cores wait for storage?"),
    "MemoryUsedPercent": ("Memory used", "%", "How full is main memory?"),
    "Algorithm": ("Network", "bytes/s", "How much does the network carry?"),
}


def timeline_section(report: Report) -> Section | None:
    """Each measure of each node over time."""
    evidence: Evidence | None = report.evidence
    if evidence is None or not evidence.series:
        return None
    blocks: list[Text | Table | Chart] = []
    omitted = 0
    for measure, tracks in sorted(evidence.series, key=lambda one: _rank(one[0])):
        by_node = _by_node(tracks)
        for node, devices in list(by_node.items())[:_NODES]:
            blocks.append(_timeline(report, measure, node, devices, tracks))
        omitted += max(0, len(by_node) - _NODES)
    if omitted:
        blocks.append(
            Text(f"{count(omitted, 'further timeline')} left out: {_NODES} nodes are drawn.", "note")
        )
    lead = "Lines are means, bands reach from the lowest to the highest sample of all devices. Drag over a stretch to zoom; the buttons above a chart move, zoom by the wheel, and go back."
    return Section("timelines", "Utilisation over time", blocks, lead)


def device_section(report: Report) -> Section | None:
    """Devices by time, coloured by utilisation."""
    evidence: Evidence | None = report.evidence
    if evidence is None:
        return None
    blocks: list[Text | Table | Chart] = []
    for measure, tracks in sorted(evidence.series, key=lambda one: _rank(one[0])):
        if measure in ("GPUUtilization", "CPUUtilization") and len(tracks.tracks) > 1:
            blocks.append(_devices(measure, tracks))
    if not blocks:
        return None
    return Section("devices", "Devices over time", blocks, "A row for each device of each node.")


def step_section(report: Report) -> Section | None:
    """How long steps take, and which are outliers."""
    evidence: Evidence | None = report.evidence
    if evidence is None or not evidence.steps:
        return None
    rows = [
        [
            readable(f"{one.worker} {one.mode}"),
            f"{one.size:,}",
            *(number(one.quantiles[name]) for name in ("min", "p50", "p95", "p99", "max")),
        ]
        for one in evidence.steps
    ]
    head = ("Worker and mode", "Steps", "Min (s)", "p50 (s)", "p95 (s)", "p99 (s)", "Max (s)")
    blocks: list[Text | Table | Chart] = [
        Table("Step durations", head, rows, (False, *[True] * 6)),
        _durations(evidence.steps),
    ]
    blocks += [_histogram(one) for one in evidence.steps[:4]]
    if len(evidence.steps) > 4:
        blocks.append(Text(f"Histograms of 4 of {len(evidence.steps)} workers are drawn.", "note"))
    return Section("steps", "Step durations", blocks)


def _rank(measure: str) -> tuple[int, str]:
    known = list(_MEASURES)
    return (known.index(measure) if measure in known else len(known)), measure


def _by_node(tracks: Tracks) -> dict[str, list[Track]]:
    found: dict[str, list[Track]] = {}
    for track in sorted(
        tracks.tracks, key=lambda one: (natural(one.subject.node or ""), natural(one.subject.name))
    ):
        found.setdefault(track.subject.node or "", []).append(track)
    return found


def _timeline(report: Report, measure: str, node: str, devices: Sequence[Track], tracks: Tracks) -> Chart:
    title, unit, question = _MEASURES.get(measure, (measure, "unit not known", f"How does {measure} change?"))
    percent = unit == "%"
    lanes = _lanes(report, node) if percent else {}
    low = -12.0 * len(lanes) - (4 if lanes else 0)
    options: dict[str, Any] = {"y_range": (low, 104)} if percent else {}
    plot = figures.new_figure(
        x="Time (UTC)", y=f"{title} ({unit})", height=240 + 16 * len(lanes), time=True, **options
    )
    x = np.unique(np.concatenate([track.positions for track in devices]))
    lowest, highest = np.full(len(x), np.inf), np.full(len(x), -np.inf)
    for track in devices:
        rows = np.searchsorted(x, track.positions)
        lowest[rows] = np.fmin(lowest[rows], track.lowest)
        highest[rows] = np.fmax(highest[rows], track.highest)
    shown = _extremes(devices)
    # One source for all lines: their times are the same, and would be most of the page.
    columns = {"x": x / 1000.0, "low": figures.thin(lowest), "high": figures.thin(highest)}
    for index, track in enumerate(shown):
        means = np.full(len(x), np.nan)
        means[np.searchsorted(x, track.positions)] = track.mean
        columns[f"m{index}"] = figures.thin(means)
    source = ColumnDataSource(columns)
    plot.varea("x", "low", "high", source=source, fill_color=figures.BAND, fill_alpha=0.3)
    for index, track in enumerate(shown):
        line = plot.line(
            "x", f"m{index}", source=source, color=figures.line_colour(index), line_width=1.5,
            line_dash=figures.DASHES[index // 2 % 4], legend_label=figures.shortened(track.subject.name),
        )  # fmt: skip
        name = figures.plain_tip(track.subject.name)
        spans = ("all devices", "@low{0,0.0} to @high{0,0.0}")
        tips = [("", name), ("time", "@x{%F %T}"), ("mean", f"@m{index}{{0,0.0}}"), spans]
        figures.hover(plot, [line], tips)
    if lanes:
        _add_lanes(plot, lanes)
    lower = min(devices, key=_mean)
    higher = max(devices, key=_mean)
    answer = f"Mean {number(_mean(higher))} {unit} on {readable(higher.subject.name)}"
    if lower is not higher:
        answer += f", {number(_mean(lower))} {unit} on {readable(lower.subject.name)}"
    answer += f"; each point joins {duration(tracks.width / 1e6)}."
    if len(devices) > len(shown):
        answer += f" Lines: {len(shown)} of {len(devices)} devices, the least and the most busy; the band spans all."
    if lanes:
        answer += f" Bars below: when rules fired ({', '.join(map(readable, lanes))})."
    return figures.chart(plot, f"{question} Node {readable(node) or 'not named'}", answer)


def _mean(track: Track) -> float:
    finite = track.mean[np.isfinite(track.mean)]
    return float(finite.mean()) if finite.size else 0.0


def _extremes(devices: Sequence[Track]) -> list[Track]:
    """As many devices as lines can be told apart: the least and the most busy."""
    if len(devices) <= _LINES:
        return list(devices)
    ranked = sorted(devices, key=_mean)
    chosen = {id(track) for track in (*ranked[: _LINES // 2], *ranked[-_LINES // 2 :])}
    return [track for track in devices if id(track) in chosen]


def _lanes(report: Report, node: str) -> dict[str, list[tuple[float, float]]]:
    """For each rule that fired, the windows of its findings on this node."""
    lanes: dict[str, list[tuple[float, float]]] = {}
    for outcome in report.fired:
        spans = sorted(
            (one.window_start_us / 1000, one.window_end_us / 1000)
            for one in outcome.findings
            if one.window_start_us is not None
            and one.window_end_us is not None
            # Workers are named after their node; what names neither concerns the whole job.
            and (
                one.node == node or (one.node is None and (one.worker is None or one.worker.startswith(node)))
            )
        )
        joined: list[tuple[float, float]] = []
        for start, end in spans:
            if joined and start <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(joined[-1][1], end)
            else:
                joined.append((start, end))
        if joined and len(lanes) < _LANES:
            lanes[outcome.name] = joined
    return lanes


def _add_lanes(plot: Any, lanes: dict[str, list[tuple[float, float]]]) -> None:
    """Bars below zero, a lane for each rule."""
    ticks: dict[float, str] = {}
    for index, (name, spans) in enumerate(lanes.items()):
        top = -12.0 * index - 5
        bars = plot.quad(
            left=[start for start, _ in spans], right=[end for _, end in spans], top=top, bottom=top - 8,
            fill_color=figures.BAD, fill_alpha=0.35, line_color=figures.BAD,
            hatch_pattern=("/", "\\", "x", ".")[index % 4], hatch_color=figures.BAD, hatch_alpha=0.5,
        )  # fmt: skip
        shown = figures.plain_tip(name)
        figures.hover(
            plot, [bars], [("", f"{shown} fired"), ("from", "@left{%F %T}"), ("to", "@right{%F %T}")]
        )
        ticks[top - 4] = name
    values = {float(value): str(value) for value in (0, 25, 50, 75, 100)}
    plot.yaxis.ticker = FixedTicker(ticks=[*values, *ticks])
    plot.ygrid.ticker = FixedTicker(ticks=list(values))
    plot.yaxis.major_label_overrides = values | {
        place: figures.shortened(name) for place, name in ticks.items()
    }


def _devices(measure: str, tracks: Tracks) -> Chart:
    title, unit, _ = _MEASURES[measure]
    ordered = [track for devices in _by_node(tracks).values() for track in devices]
    shown = ordered[:_ROWS]
    first = min(int(track.positions[0]) for track in shown)
    last = max(int(track.positions[-1]) for track in shown) + tracks.width
    columns = min(_COLUMNS, max(1, (last - first) // tracks.width))
    edges = np.linspace(first, last, columns + 1)
    cells = np.full((len(shown), columns), np.nan)
    for row, track in enumerate(shown):
        places = np.clip(np.searchsorted(edges, track.positions, side="right") - 1, 0, columns - 1)
        kept = np.isfinite(track.mean)
        sums = np.bincount(places[kept], weights=track.mean[kept], minlength=columns)
        counts = np.bincount(places[kept], minlength=columns)
        cells[row] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    names = [f"{track.subject.node} {track.subject.name}" for track in shown]
    plot, height = figures.heat_map(
        cells, names, start=first / 1000, end=last / 1000, x="Time (UTC)", unit=f"{title} ({unit})",
        time=True, low=0.0, high=100.0,
    )  # fmt: skip
    busiest, idlest = max(shown, key=_mean), min(shown, key=_mean)
    answer = f"On average from {number(_mean(idlest))} {unit} ({readable(idlest.subject.node)} {readable(idlest.subject.name)}) to {number(_mean(busiest))} {unit} ({readable(busiest.subject.node)} {readable(busiest.subject.name)}); cells are means."
    if len(ordered) > len(shown):
        answer += f" {len(shown)} of {len(ordered)} devices are drawn."
    return figures.chart(plot, f"{title}: which device idles, and when?", answer, height=height)


def _durations(steps: Sequence[StepTimes]) -> Chart:
    plot = figures.new_figure(x="Time (UTC)", y="Step duration (s)", height=280, time=True)
    outliers = 0
    for index, one in enumerate(steps[:6]):
        for track in one.durations.tracks:
            x = track.positions / 1000.0
            name = figures.shortened(f"{one.worker} {one.mode}")
            source = ColumnDataSource(
                {
                    "x": x,
                    "mean": figures.thin(track.mean),
                    "high": figures.thin(track.highest),
                    "low": figures.thin(track.lowest),
                }
            )
            line = plot.line(
                "x",
                "mean",
                source=source,
                color=figures.line_colour(index),
                line_dash=figures.DASHES[index % 4],
                line_width=2,
                legend_label=name,
            )
            tips = [
                ("", figures.plain_tip(name)),
                ("time", "@x{%F %T}"),
                ("mean", "@mean{0.000} s"),
                ("shortest", "@low{0.000} s"),
                ("longest", "@high{0.000} s"),
            ]
            figures.hover(plot, [line], tips)
            far = track.highest > max(2 * one.quantiles["p50"], 0)
            outliers += int(far.sum())
            if far.any():
                plot.scatter(
                    x=x[far],
                    y=figures.thin(track.highest[far]),
                    marker="triangle",
                    size=7,
                    color=figures.BAD,
                    alpha=0.8,
                    legend_label="longer than twice the median",
                )
    answer = (
        f"▲ marks {count(outliers, 'place')} with a step longer than twice the median."
        if outliers
        else "No step is longer than twice the median."
    )
    if steps and steps[0].durations.width > 1:
        answer += f" Each point joins {duration(steps[0].durations.width / 1e6)}; the line is the mean."
    return figures.chart(plot, "When do steps take long?", answer)


def _histogram(one: StepTimes) -> Chart:
    edges, counts = np.array(one.edges), np.array(one.histogram)
    plot = figures.new_figure(
        x="Step duration (s)",
        y="Steps (count, logarithmic)",
        height=240,
        log=True,
        y_range=(0.5, max(int(counts.max()), 1) * 2),
    )
    kept = counts > 0
    source = ColumnDataSource(
        {
            "left": figures.thin(edges[:-1][kept]),
            "right": figures.thin(edges[1:][kept]),
            "n": counts[kept].astype(np.int32),
        }
    )
    bars = figures.histogram_bars(plot, source, bottom=0.5)
    figures.hover(plot, [bars], [("from", "@left{0.000} s"), ("to", "@right{0.000} s"), ("steps", "@n{0,0}")])
    plot.yaxis.formatter.format = "%.0f"
    quantiles = one.quantiles
    answer = f"Half of {one.size:,} steps last at most {number(quantiles['p50'])} s, 99 % at most {number(quantiles['p99'])} s, the longest {number(quantiles['max'])} s."
    return figures.chart(
        plot, f"How are step durations of {readable(one.worker)} {one.mode} distributed?", answer
    )
