"""Figures: Bokeh's, set up the same way everywhere.

Colours are placeholders, `#0101NN`; the page puts in those of its light or dark theme when it draws.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from bokeh.embed import json_item
from bokeh.models import (
    BasicTicker,
    BoxZoomTool,
    ColorBar,
    ColumnDataSource,
    DatetimeTickFormatter,
    FixedTicker,
    HoverTool,
    LinearColorMapper,
    LogColorMapper,
    NumeralTickFormatter,
    PanTool,
    PrintfTickFormatter,
    ResetTool,
    SaveTool,
    WheelZoomTool,
)
from bokeh.plotting import figure

from smdbg_core.evidence import Limit
from smdbg_core.report.html.blocks import Chart, readable

__all__ = [
    "BAD",
    "DASHES",
    "INK",
    "MUTED",
    "add_limit",
    "chart",
    "hatch_cells",
    "heat_map",
    "histogram_bars",
    "label",
    "hover",
    "line_colour",
    "name_rows",
    "new_figure",
    "plain_tip",
    "thin",
]

INK: Final = "#010100"
MUTED: Final = "#010101"
GRID: Final = "#010102"
BAD: Final = "#010103"
BAND: Final = "#010104"
EMPTY: Final = "#010105"
_LINES: Final = tuple(f"#0101{16 + index:02x}" for index in range(8))
DASHES: Final = ("solid", "dashed", "dotted", "dotdash")
MARKERS: Final = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "cross", "star")
_MATH: Final = re.compile(r"\$(?=\$)|\\[\[\](){}]")
_TIP: Final = str.maketrans({"@": " ", "$": " ", "<": "‹", ">": "›", "&": "＆"})
_LARGEST: Final = 1e37
_LABEL: Final = 34
"""Characters of a row's name that fit beside a chart."""


def line_colour(index: int) -> str:
    """The colour of line `index`."""
    return _LINES[index % len(_LINES)]


def thin(values: Any) -> Any:
    """Numbers for the page: single precision is more than a screen shows, but where it has no such numbers."""
    numbers = np.asarray(values, np.float64)
    sizes = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    if sizes.size and (sizes.max() > _LARGEST or sizes.min() < 1 / _LARGEST):
        return numbers
    return numbers.astype(np.float32)


def new_figure(
    *, x: str, y: str, height: int = 280, time: bool = False, log: bool = False, **options: Any
) -> Any:
    """An empty figure.

    Args:
        x: What the axis shows, with its unit.
        y: The same.
        height: Pixels.
        time: Whether x is milliseconds since the epoch, UTC.
        log: Whether y is logarithmic.
        options: What else `bokeh.plotting.figure` takes.
    """
    zoom, box = WheelZoomTool(dimensions="width"), BoxZoomTool(dimensions="width")
    plot = figure(
        height=height,
        sizing_mode="stretch_width",
        x_axis_label=label(x),
        y_axis_label=label(y),
        x_axis_type="datetime" if time else "auto",
        y_axis_type="log" if log else "auto",
        tools=[box, PanTool(dimensions="width"), zoom, ResetTool(), SaveTool()],
        active_drag=box,
        active_scroll=None,
        toolbar_location="above",
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_color=None,
        output_backend="canvas",
        min_border_right=16,
        **options,
    )
    plot.toolbar.logo = None
    for axis in plot.axis:
        axis.axis_line_color = axis.major_tick_line_color = MUTED
        axis.minor_tick_line_color = None
        axis.axis_label_text_color = axis.major_label_text_color = INK
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "12px"
    plot.grid.grid_line_color = GRID
    if time:
        plot.xaxis.formatter = DatetimeTickFormatter(
            days="%m-%d", hours="%H:%M", hourmin="%H:%M", minutes="%H:%M", minsec="%H:%M:%S"
        )
    elif x in ("Global step", "Step"):
        plot.xaxis.formatter = NumeralTickFormatter(format="0,0")
    if log:
        plot.yaxis.formatter = PrintfTickFormatter(format="%.0e")
    return plot


def hover(plot: Any, renderers: Sequence[Any], tips: Sequence[tuple[str, str]], **options: Any) -> None:
    """Say the values under the pointer."""
    formatters = {column: "datetime" for _, column in tips if "{%" in column}
    formatters = {key.partition("{")[0]: value for key, value in formatters.items()}
    plot.add_tools(
        HoverTool(renderers=list(renderers), tooltips=list(tips), formatters=formatters, **options)
    )


def plain_tip(text: str) -> str:
    """A name as a tooltip shows it: its template is HTML in which `@` and `$` are filled in."""
    return readable(text).translate(_TIP)


def label(text: str) -> str:
    """A text as axes and legends show it: what looks like TeX would be typeset by a library to be loaded."""
    return _MATH.sub(lambda found: f"{found[0][0]}\u200b{found[0][1:]}", readable(text))


def add_limit(plot: Any, limit: Limit, reach: tuple[float, float]) -> None:
    """A line at a limit; the axis always shows it."""
    plot.line(
        x=list(reach),
        y=[limit.value] * 2,
        line_color=BAD,
        line_width=2,
        line_dash="dashed",
        legend_label=f"limit {limit.comparison} {limit.value:g}",
    )


def legend(plot: Any, entries: int) -> None:
    """Put the legend below the chart, where it hides nothing."""
    if not plot.legend:
        return
    box = plot.legend[0]
    plot.add_layout(box, "below")
    box.orientation = "horizontal"
    longest = max((len(str(item.label.value)) for item in box.items), default=0)
    box.ncols = _legend_columns(longest, entries)
    box.location = "left"
    box.click_policy = "hide"
    box.label_text_color = INK
    box.label_text_font_size = "12px"
    box.background_fill_alpha = 0
    box.border_line_color = None
    box.glyph_height = 14
    box.margin = 0


def _legend_columns(longest: int, entries: int) -> int:
    """Columns of a legend that fit on a narrow screen."""
    return min(entries, 4 if longest <= 8 else 2 if longest <= 20 else 1)


def name_rows(plot: Any, names: Mapping[float, str]) -> None:
    """Name places of the y axis."""
    plot.yaxis.ticker = FixedTicker(ticks=list(names))
    plot.yaxis.major_label_overrides = {place: shortened(name) for place, name in names.items()}


def shortened(name: str) -> str:
    """A name that fits beside a chart: its end says more than its middle."""
    name = readable(name)
    return label(name if len(name) <= _LABEL else f"{name[:12]}…{name[-(_LABEL - 13) :]}")


def heat_map(
    values: Any,
    names: Sequence[str],
    *,
    start: float,
    end: float,
    x: str,
    unit: str,
    time: bool = False,
    log: bool = False,
    low: float | None = None,
    high: float | None = None,
) -> tuple[Any, int]:
    """An image with a row for each name, the first on top, and a colour bar; and its height.

    Args:
        values: Shape (rows, columns); NaN where there is nothing.
        names: One for each row.
        start: Position of the left edge of the first column.
        end: Of the right edge of the last.
        x: What the x axis shows, with its unit.
        unit: What the colours show, with its unit.
        time: Whether positions are milliseconds since the epoch.
        log: Whether colours are logarithmic.
        low: Least value of the colours; by default that of the values.
        high: The greatest.
    """
    cells = np.asarray(values, np.float64)
    rows = len(names)
    height = 120 + min(max(rows * 18, 130), 900)
    finite = cells[np.isfinite(cells) & ((cells > 0) | (not log))]
    low = (float(finite.min()) if finite.size else 0.0) if low is None else low
    high = (float(finite.max()) if finite.size else 1.0) if high is None else high
    if not high > low:
        high = low * 10 if log and low > 0 else low + 1
    if log:
        low = low if low > 0 else high / 1e12
        cells = np.where(cells < low, low, cells)
    mapper = (LogColorMapper if log else LinearColorMapper)(
        palette="Cividis256", low=low, high=high, nan_color=EMPTY
    )
    plot = new_figure(x=x, y="", height=height, time=time, y_range=(0, rows), x_range=(start, end))
    if not time:
        plot.xaxis.formatter = NumeralTickFormatter(format="0,0")
    image = plot.image(
        image=[np.ascontiguousarray(thin(cells[::-1]))],
        x=start, y=0, dw=end - start, dh=rows, color_mapper=mapper,
    )  # fmt: skip
    plot.grid.grid_line_color = None
    places = {rows - index - 0.5: name for index, name in enumerate(names)}
    step = max(1, math.ceil(rows * 12 / max(height - 120, 1)))
    name_rows(plot, dict(list(places.items())[::step]))
    source = ColumnDataSource(
        {
            "y": list(places),
            "name": [readable(name) for name in names],
            "left": [start] * rows,
            "right": [end] * rows,
        }
    )
    bars = plot.hbar(y="y", height=1, left="left", right="right", source=source, fill_alpha=0, line_alpha=0)
    where = ("time", "$x{%F %T}") if time else ("step", "$x{0,0}")
    hover(plot, [bars], [("", "@name"), where], attachment="above")
    hover(plot, [image], [("value", "@image{0.[0000]}" if not log else "@image{0.00e}")], attachment="below")
    bar = ColorBar(
        color_mapper=mapper,
        title=label(unit),
        width=10,
        title_text_color=INK,
        title_text_font_style="normal",
        title_text_font_size="12px",
        major_label_text_color=INK,
        background_fill_alpha=0,
    )
    if log:
        bar.formatter = PrintfTickFormatter(format="%.0e")
    else:
        bar.ticker = BasicTicker(desired_num_ticks=5)
    plot.add_layout(bar, "right")
    return plot, height


def histogram_bars(plot: Any, source: Any, *, bottom: float) -> Any:
    """Bars from `left` to `right`, as high as `n`.

    Args:
        plot: Where they are drawn.
        source: The three columns.
        bottom: Where bars begin; a logarithmic axis has no zero.
    """
    return plot.quad(
        left="left",
        right="right",
        bottom=bottom,
        top="n",
        source=source,
        fill_color=line_colour(0),
        fill_alpha=0.6,
        line_color=INK,
        line_width=0.5,
    )


def hatch_cells(plot: Any, marked: Any, edges: Any) -> None:
    """Hatch cells of a heat map; neighbours in a row are one piece.

    Args:
        plot: The heat map.
        marked: Shape (rows, columns), the first row on top.
        edges: Positions of the columns' edges.
    """
    pieces: dict[str, list[float]] = {"left": [], "right": [], "bottom": [], "top": []}
    rows = len(marked)
    for row, cells in enumerate(marked):
        ends = np.flatnonzero(np.diff(np.concatenate([[0], cells.astype(np.int8), [0]])))
        for start, stop in zip(ends[::2], ends[1::2], strict=True):
            pieces["left"].append(float(edges[start]))
            pieces["right"].append(float(edges[stop]))
            pieces["bottom"].append(rows - row - 1)
            pieces["top"].append(rows - row)
    plot.quad(
        source=ColumnDataSource(pieces), left="left", right="right", bottom="bottom", top="top",
        fill_color=BAD, fill_alpha=0.25, line_color=BAD, line_width=0.5,
        hatch_pattern="x", hatch_color=BAD, hatch_scale=8, hatch_alpha=0.8,
    )  # fmt: skip


def chart(plot: Any, question: str, answer: str, *, height: int | None = None) -> Chart:
    """The figure as a block of a page."""
    entries = len(plot.legend[0].items) if plot.legend else 0
    if entries:
        legend(plot, entries)
        longest = max(len(str(item.label.value)) for item in plot.legend[0].items)
        plot.height += 10 + 20 * math.ceil(entries / _legend_columns(longest, entries))
    item = json.dumps(json_item(plot), allow_nan=False, separators=(",", ":"))
    return Chart(question, answer, item.replace("<", "\\u003c"), height or plot.height)
