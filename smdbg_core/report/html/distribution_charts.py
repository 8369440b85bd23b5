"""Charts of shares, spreads and histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bokeh.models import ColumnDataSource

from smdbg_core.report.html import figure as figures
from smdbg_core.report.html.blocks import Chart, count, number, readable

__all__ = ["BOX", "histogram_chart", "share_chart", "spread_chart"]

BOX: Final = ("lower", "p25", "p50", "p75", "upper")
"""The numbers of a box plot: whiskers, quartiles and median."""


def share_chart(shares: Mapping[str, float], question: str, x: str) -> Chart:
    """Shares as bars: lengths compare better than slices."""
    chosen = sorted(shares.items(), key=lambda one: -one[1])[:12]
    plot = figures.new_figure(
        x=x, y="", height=110 + 26 * len(chosen), x_range=(0, 105), y_range=(0, len(chosen))
    )
    places = [len(chosen) - index - 0.5 for index in range(len(chosen))]
    figures.name_rows(plot, {place: name for place, (name, _) in zip(places, chosen, strict=True)})
    source = ColumnDataSource(
        {"y": places, "right": [value for _, value in chosen], "name": [readable(name) for name, _ in chosen]}
    )
    bars = plot.hbar(
        y="y",
        right="right",
        height=0.6,
        source=source,
        fill_color=figures.line_colour(0),
        fill_alpha=0.7,
        line_color=figures.INK,
        line_width=0.5,
    )
    figures.hover(plot, [bars], [("", "@name"), ("share", "@right{0.00} %")])
    plot.ygrid.grid_line_color = None
    answer = "; ".join(f"{readable(name)} {value:.1f} %" for name, value in chosen[:5]) + "."
    return figures.chart(plot, question, answer)


def spread_chart(boxes: Mapping[str, Sequence[float]], question: str, x: str, names: Sequence[str]) -> Chart:
    """Five numbers of each row: a thin line from the first to the last, a box, a tick at the middle."""
    rows = len(boxes)
    plot = figures.new_figure(x=x, y="", height=110 + 24 * rows, y_range=(0, rows))
    places = {rows - index - 0.5: name for index, name in enumerate(boxes)}
    figures.name_rows(plot, places)
    columns = list(zip(*boxes.values(), strict=True))
    source = ColumnDataSource(
        {
            "y": list(places),
            "name": list(map(readable, boxes)),
            **{f"v{i}": list(column) for i, column in enumerate(columns)},
        }
    )
    plot.segment(x0="v0", x1="v4", y0="y", y1="y", source=source, color=figures.MUTED, line_width=2)
    box = ("v1", "v3") if names == BOX else ("v1", "v2")
    bars = plot.hbar(
        y="y",
        left=box[0],
        right=box[1],
        height=0.5,
        source=source,
        fill_color=figures.line_colour(0),
        fill_alpha=0.6,
        line_color=figures.INK,
    )
    middle = "v2" if names == BOX else "v1"
    plot.scatter(
        x=middle, y="y", source=source, marker="dash", angle=1.5708, size=16, color=figures.INK, line_width=3
    )
    figures.hover(plot, [bars], [("", "@name"), *((name, f"@v{i}{{0,0.0}}") for i, name in enumerate(names))])
    plot.ygrid.grid_line_color = None
    parts = (
        "lower whisker, p25, median (tick), p75, upper whisker"
        if names == BOX
        else "line: min to max; box: p50 to p95; tick: p50"
    )
    return figures.chart(plot, question, f"{count(rows, 'row')}; {parts}.")


def histogram_chart(found: Mapping[str, Any], question: str, x: str, what: str) -> Chart | None:
    """Bars for `probs` counts between `binedges`; `None` if that is not what was measured."""
    counts, edges = found.get("probs"), found.get("binedges")
    if not (
        isinstance(counts, Sequence)
        and isinstance(edges, Sequence)
        and len(edges) == len(counts) + 1
        and sum(counts)
    ):
        return None
    kept = [index for index, one in enumerate(counts) if one]
    plot = figures.new_figure(x=x, y=f"{what} (count)", height=220)
    source = ColumnDataSource(
        {
            "left": [edges[i] for i in kept],
            "right": [edges[i + 1] for i in kept],
            "n": [counts[i] for i in kept],
        }
    )
    bars = figures.histogram_bars(plot, source, bottom=0)
    figures.hover(plot, [bars], [("from", "@left{0.0000}"), ("to", "@right{0.0000}"), (what, "@n{0,0}")])
    most = max(kept, key=lambda index: counts[index])
    return figures.chart(
        plot,
        question,
        f"{sum(counts):,} in all; most between {number(float(edges[most]))} and {number(float(edges[most + 1]))}.",
    )
