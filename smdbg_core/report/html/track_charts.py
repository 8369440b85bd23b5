"""Charts of tracks: values over steps or time, against their limits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import BoxAnnotation, ColumnDataSource

from smdbg_core.evidence import JudgedPoints, Track, Tracks
from smdbg_core.findings import Finding
from smdbg_core.report.html import figure as figures
from smdbg_core.report.html.blocks import Chart, clock_range, count, duration, number, readable

__all__ = [
    "constant_value",
    "episode_text",
    "heat_chart",
    "judged_chart",
    "lines_chart",
    "natural",
    "subject_text",
    "unit_of",
]

_DRAWN = 6
_ROWS = 80
_COLUMNS = 160
_EPISODES = 60
_UNITS = (
    (re.compile("^p5$|^p95$|share of"), "%"),
    (re.compile("^increase$"), "percentage points"),
    (re.compile("percent"), "%"),
    (re.compile("second"), "s"),
    (re.compile("minute"), "min"),
    (re.compile("count|non_finite|outliers|processes|stale|depth|judgements"), "count"),
    (re.compile("ratio|share|gap|distance|mean|abs|spread|l2|variance|imbalance|diag|off"), "no unit"),
)


def unit_of(statistic: str) -> str:
    """The unit of a statistic, as far as its name tells."""
    return next((unit for pattern, unit in _UNITS if pattern.search(statistic)), "as the rule measures it")


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sorts `layer2` before `layer10`."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.findall(r"\d+|\D+", text)]


def subject_text(track: Track, *, mode: bool = True) -> str:
    """What a track is about, in words."""
    subject = track.subject
    place = [part for part in (subject.node, subject.worker) if part and part != "worker_0"]
    shown = f"{subject.name} ({', '.join(place)})" if place else subject.name
    named = mode and subject.mode not in (None, "GLOBAL")
    return readable(f"{shown} {subject.mode!s}" if named else shown)


def judged_chart(judged: JudgedPoints, episodes: Sequence[Finding]) -> Chart:
    """The judged statistic of a rule against its limit, with the episodes marked."""
    tracks = judged.points
    time = tracks.axis == "time"
    shown = _worst(judged)
    statistic = judged.statistic
    unit = unit_of(statistic)
    log = _logarithmic(judged)
    floor = _floor(tracks) if log else 0.0
    plot = figures.new_figure(
        x="Time (UTC)" if time else "Global step",
        y=f"{statistic} ({unit})",
        height=300,
        time=time,
        log=log,
    )
    _add_envelope(plot, tracks, time, log, floor)
    for index, track in enumerate(shown):
        _add_line(plot, track, index, time=time, log=log, floor=floor)
    for limit in judged.limits:
        if not log or limit.value > 0:
            figures.add_limit(plot, limit, _reach(tracks, time))
    marked = _add_episodes(plot, [one for one in episodes if one.statistic in (statistic, None)], time)
    limits = " or ".join(f"{limit.comparison} {limit.value:g}" for limit in judged.limits)
    violated = sum(track.violated for track in tracks.tracks)
    answer = [
        f"Beyond the limit (dashed): {violated} of {count(len(tracks.tracks), 'subject')}. It fires at {limits}"
        + (" and further limits" if judged.varies else "")
        + "."
    ]
    if len(tracks.tracks) > len(shown):
        answer.append(f"Lines: the {len(shown)} farthest beyond it; the band spans all.")
    if marked:
        answer.append("Hatched: episodes of the findings.")
    if tracks.width > 1:
        size = duration(tracks.width / 1e6) if time else f"{tracks.width} steps"
        answer.append(f"Each place joins {size}; lines go through means, the band keeps every extreme.")
    if log and floor:
        answer.append(f"Zeros are drawn at {floor:.0e}.")
    if tracks.omitted:
        answer.append(f"{count(tracks.omitted, 'further subject')} not recorded.")
    where = "When" if time else "At which steps"
    return figures.chart(plot, f"{where} is {statistic} beyond its limit?", " ".join(answer))


def lines_chart(tracks: Tracks, question: str, y: str) -> Chart:
    """Tracks as lines, each mode and tensor one of its own."""
    shown = tracks.tracks[:8]
    positive = [t.lowest[np.isfinite(t.lowest)] for t in shown]
    values = np.concatenate(positive) if positive else np.empty(0)
    log = (
        bool(values.size) and bool((values > 0).all()) and np.log10(values.max()) - np.log10(values.min()) > 3
    )
    plot = figures.new_figure(x="Global step", y=y, height=300, log=log)
    for index, track in enumerate(shown):
        _add_line(plot, track, index, time=False, log=log, floor=0.0)
    ends = []
    for track in shown:
        finite = track.mean[np.isfinite(track.mean)]
        if finite.size:
            ends.append(f"{subject_text(track)}: {number(float(finite[0]))} to {number(float(finite[-1]))}")
        bad = int(track.non_finite.sum())
        if bad:
            ends.append(f"{subject_text(track)}: {count(bad, 'value')} NaN or infinite")
    more = len(tracks.tracks) - len(shown)
    rest = f" {count(more, 'further tensor')} not drawn." if more > 0 else ""
    return figures.chart(plot, question, "; ".join(ends) + "." + rest)


def constant_value(judged: JudgedPoints) -> float | None:
    """The value of every point, if all have the same and none violates."""
    tracks = judged.points.tracks
    if not tracks or any(track.violated or track.non_finite.any() for track in tracks):
        return None
    first = float(tracks[0].lowest[0])
    return first if all((t.lowest == first).all() and (t.highest == first).all() for t in tracks) else None


def heat_chart(judged: JudgedPoints, question: str) -> Chart | None:
    """Subjects by steps, coloured by the statistic."""
    tracks = list(judged.points.tracks)
    if len(tracks) < 2:
        return None
    omitted = max(0, len(tracks) - _ROWS)
    if omitted:
        tracks = sorted(tracks, key=lambda track: not track.violated)[:_ROWS]
    tracks.sort(key=lambda track: natural(subject_text(track)))
    time = judged.points.axis == "time"
    first = min(int(track.positions[0]) for track in tracks)
    last = max(int(track.positions[-1]) for track in tracks) + judged.points.width
    edges = _edges(tracks, first, last, judged.points.width)
    falling = all(limit.comparison.startswith("<") for limit in judged.limits)
    cells = np.array([_cells(track, edges, falling) for track in tracks])
    bad = np.array([_non_finite(track, edges) for track in tracks])
    _hold(cells, bad)
    log = _logarithmic(judged)
    scale = 1000.0 if time else 1.0
    plot, height = figures.heat_map(
        cells,
        [("▲ " if track.violated else "") + subject_text(track) for track in tracks],
        start=first / scale,
        end=last / scale,
        x="Time (UTC)" if time else "Global step",
        unit=f"{judged.statistic} ({unit_of(judged.statistic)})",
        time=time,
        log=log,
    )
    if bad.any():
        figures.hatch_cells(plot, bad, edges / scale)
    marked = [subject_text(track) for track in tracks if track.violated]
    extreme = "lowest" if falling else "highest"
    answer = f"{count(len(marked), 'row')} with ▲ violate the limit"
    answer += f": {', '.join(marked[:4])}{', …' if len(marked) > 4 else '.'}" if marked else "."
    answer += f" Each cell shows its {extreme} value, up to the next step; empty cells were not judged."
    if bad.any():
        answer += " Hatched: NaN or infinities."
    if omitted:
        answer += f" {count(omitted, 'further row')} left out, violating ones last."
    return figures.chart(plot, question, answer, height=height)


def _edges(tracks: Sequence[Track], first: int, last: int, width: int) -> Any:
    """Columns of equal width, no finer than what was saved."""
    gaps = [np.diff(track.positions) for track in tracks if len(track.positions) > 1]
    step = max(width, int(min(gap.min() for gap in gaps)) if gaps else width)
    columns = min(_COLUMNS, max(1, -(-(last - first) // step)))
    return np.linspace(first, last, columns + 1)


def _cells(track: Track, edges: Any, falling: bool) -> Any:
    """The extreme of each column."""
    values = track.lowest if falling else track.highest
    columns = np.clip(np.searchsorted(edges, track.positions, side="right") - 1, 0, len(edges) - 2)
    cells = np.full(len(edges) - 1, np.inf if falling else -np.inf)
    kept = np.isfinite(values)
    (np.minimum if falling else np.maximum).at(cells, columns[kept], values[kept])
    return np.where(np.isfinite(cells), cells, np.nan)


def _non_finite(track: Track, edges: Any) -> Any:
    """Columns in which the track has values that are NaN or infinite."""
    columns = np.clip(np.searchsorted(edges, track.positions, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(columns, weights=track.non_finite, minlength=len(edges) - 1) > 0


def _hold(cells: Any, bad: Any) -> None:
    """Columns in which no row has anything, steps of other modes, show the step before them."""
    for column in range(1, cells.shape[1]):
        if not (np.isfinite(cells[:, column]) | bad[:, column]).any():
            cells[:, column] = cells[:, column - 1]
            bad[:, column] = bad[:, column - 1]


def _worst(judged: JudgedPoints) -> list[Track]:
    """The tracks farthest beyond the limit, the worst first."""
    falling = bool(judged.limits) and judged.limits[0].comparison.startswith("<")

    def depth(track: Track) -> float:
        values = track.lowest if falling else track.highest
        finite = values[np.isfinite(values)]
        if not finite.size:
            return -np.inf
        return -float(finite.min()) if falling else float(finite.max())

    found = sorted(judged.points.tracks, key=lambda track: (track.violated, depth(track)), reverse=True)
    return found[:_DRAWN]


def _logarithmic(judged: JudgedPoints) -> bool:
    """Whether values spread so far that only their magnitude can be seen."""
    tracks = judged.points.tracks
    values = (
        np.concatenate([np.concatenate([t.lowest, t.highest]) for t in tracks]) if tracks else np.empty(0)
    )
    values = values[np.isfinite(values)]
    limits = [limit.value for limit in judged.limits if limit.value > 0]
    if not values.size or (values < 0).any() or not limits or len(limits) < len(judged.limits):
        return False
    positive = np.append(values[values > 0], limits)
    return bool(np.log10(positive.max()) - np.log10(positive.min()) > 3)


def _floor(tracks: Tracks) -> float:
    """Where zeros are drawn on a logarithmic axis; 0 if there are none."""
    lowest = np.concatenate([track.lowest for track in tracks.tracks])
    lowest = lowest[np.isfinite(lowest)]
    positive = lowest[lowest > 0]
    if not (lowest == 0).any():
        return 0.0
    return float(10 ** np.floor(np.log10(positive.min()) - 1)) if positive.size else 1e-12


def _reach(tracks: Tracks, time: bool) -> tuple[float, float]:
    """From the first to the last position."""
    places = [_places(track, time) for track in tracks.tracks]
    return min(float(one[0]) for one in places), max(float(one[-1]) for one in places)


def _places(track: Track, time: bool) -> Any:
    return track.positions / 1000.0 if time else track.positions.astype(np.float64)


def _add_line(plot: Any, track: Track, index: int, *, time: bool, log: bool, floor: float) -> None:
    values = np.where(track.mean <= 0, floor or np.nan, track.mean) if log else track.mean
    name = subject_text(track)
    colour = figures.line_colour(index)
    source = ColumnDataSource(
        {
            "x": _places(track, time),
            "y": figures.thin(values),
            "low": figures.thin(track.lowest),
            "high": figures.thin(track.highest),
            "bad": track.non_finite.astype(np.int32),
        }
    )
    options = {"source": source, "legend_label": figures.shortened(name), "color": colour}
    line = plot.line("x", "y", line_width=2, line_dash=figures.DASHES[index // 2 % 4], **options)
    if len(track.positions) <= 60:
        plot.scatter("x", "y", size=5, marker=figures.MARKERS[index % 8], **options)
    bad = track.non_finite > 0
    if bad.any():
        finite = track.mean[np.isfinite(track.mean) & ((track.mean > 0) | (not log))]
        top = float(finite.max()) if finite.size else 1.0
        plot.scatter(
            x=_places(track, time)[bad], y=np.full(int(bad.sum()), top, np.float32),
            marker="x", size=9, color=figures.BAD, line_width=2, legend_label="NaN or infinite",
        )  # fmt: skip
    where = ("time", "@x{%F %T}") if time else ("step", "@x{0,0}")
    tips = [
        ("", figures.plain_tip(name)),
        where,
        ("mean", "@y{0.000e}"),
        ("lowest", "@low{0.000e}"),
        ("highest", "@high{0.000e}"),
    ]
    figures.hover(plot, [line], tips)


def _add_envelope(plot: Any, tracks: Tracks, time: bool, log: bool, floor: float) -> None:
    """The span of all subjects together."""
    if not tracks.tracks:
        return
    positions = np.unique(np.concatenate([track.positions for track in tracks.tracks]))
    low, high = np.full(len(positions), np.inf), np.full(len(positions), -np.inf)
    for track in tracks.tracks:
        rows = np.searchsorted(positions, track.positions)
        low[rows] = np.fmin(low[rows], track.lowest)
        high[rows] = np.fmax(high[rows], track.highest)
    kept = np.isfinite(low) & np.isfinite(high)
    if log:
        low, high = np.where(low <= 0, floor, low), np.where(high <= 0, floor, high)
        kept &= low > 0
    x = (positions / 1000.0 if time else positions.astype(np.float64))[kept]
    plot.varea(
        x=x, y1=figures.thin(low[kept]), y2=figures.thin(high[kept]), fill_color=figures.BAND, fill_alpha=0.28
    )


def _add_episodes(plot: Any, episodes: Sequence[Finding], time: bool) -> int:
    """Hatched spans where findings lie; how many."""
    spans = sorted({_span(one, time) for one in episodes} - {None})  # type: ignore[type-var]
    joined: list[list[float]] = []
    for left, right in spans:  # type: ignore[misc]
        if joined and left <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], right)
        else:
            joined.append([left, right])
    for left, right in joined[:_EPISODES]:
        plot.add_layout(
            BoxAnnotation(
                left=left, right=right, fill_color=figures.BAD, fill_alpha=0.05, line_color=figures.BAD, line_alpha=0.4,
                hatch_pattern="/", hatch_color=figures.BAD, hatch_alpha=0.16, hatch_scale=20, level="underlay",
            )
        )  # fmt: skip
    return len(joined)


def _span(one: Finding, time: bool) -> tuple[float, float] | None:
    if time:
        if one.window_start_us is None or one.window_end_us is None:
            return None
        return one.window_start_us / 1000, one.window_end_us / 1000
    if one.step is None:
        return None
    return one.step - 0.5, (one.step if one.last_step is None else one.last_step) + 0.5


def episode_text(one: Finding) -> str:
    """Where an episode lies, in words."""
    if one.step is not None:
        last = one.step if one.last_step is None else one.last_step
        steps = f"step {one.step}" if last == one.step else f"steps {one.step} to {last}"
        return f"{steps} {one.mode}" if one.mode not in (None, "GLOBAL") else steps
    if one.window_start_us is not None and one.window_end_us is not None:
        return clock_range(one.window_start_us, one.window_end_us)
    return "whole run"
