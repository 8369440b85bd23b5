"""Sections of a boosting run, from the JSON files `xgboost-reports/*.json` that a rule yielded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, TypeAlias

import numpy as np
from bokeh.models import ColumnDataSource, LabelSet, NumeralTickFormatter

from smdbg_core.evidence import Evidence
from smdbg_core.outcomes import Report
from smdbg_core.report.html import figure as figures
from smdbg_core.report.html.blocks import (
    MALFORMED,
    Chart,
    Section,
    Table,
    Text,
    count,
    number,
    readable,
    unreadable,
)

__all__ = ["XGBOOST_FOLDER", "boosting_documents", "xgboost_sections"]

XGBOOST_FOLDER: Final = "xgboost-reports"

Block: TypeAlias = Text | Table | Chart
Document: TypeAlias = Mapping[str, Any]

_TITLES: Final = (
    ("LabelsDistribution", "Distribution of labels"),
    ("LossData", "Loss over steps"),
    ("FeatureImportance", "Feature importance"),
    ("ConfusionMatrix", "Confusion matrix"),
    ("EvaluationMetrics", "Evaluation of the confusion matrix"),
    ("IterativeClassAccuracy", "Recall of each class over steps"),
    ("ROCCurve", "ROC curve"),
    ("ResidualDistribution", "Distribution of residuals"),
    ("AbsoluteErrorPerLabelBin", "Absolute error by label over steps"),
    ("MeanAbsoluteErrorPerLabelBin", "Mean absolute error by label"),
)
_KINDS = {
    "ROCCurve": ("binary",),
    "ConfusionMatrix": ("binary", "multiclass"),
    "EvaluationMetrics": ("binary", "multiclass"),
    "IterativeClassAccuracy": ("binary", "multiclass"),
    "AbsoluteErrorPerLabelBin": ("regression",),
    "MeanAbsoluteErrorPerLabelBin": ("regression",),
}
_FEATURES = 30


def boosting_documents(report: Report) -> dict[str, Document]:
    """The sections' data by name; empty if no rule yielded any."""
    evidence: Evidence | None = report.evidence
    found: dict[str, Document] = {}
    for documents in evidence.documents.values() if evidence is not None else ():
        for path, document in documents.items():
            place = PurePosixPath(path)
            if place.parent.name == XGBOOST_FOLDER and isinstance(document, Mapping):
                found[place.stem] = document
    return found


def xgboost_sections(report: Report) -> Iterator[Section]:
    """Every section of the training report; one without data says why, as far as that is known."""
    documents = boosting_documents(report)
    if not documents:
        return
    errors = documents.get("AbsoluteErrorPerLabelBin")
    if errors is not None and "mean_errors" in errors:
        documents["MeanAbsoluteErrorPerLabelBin"] = errors
    summary = documents.get("Summary", {})
    kind = summary.get("kind")
    notices = [readable(one) for one in summary.get("notices") or ()]
    rows = [
        ["Objective", readable(summary.get("objective") or "not saved")],
        ["Kind of task", readable(kind or "not known")],
        ["Step of the sections of one step", number(summary.get("plot_step"))],
    ]
    yield Section(
        "boosting", "Boosting run", [Table("Run", ("", ""), rows), *(Text(one, "note") for one in notices)]
    )
    for name, title in _TITLES:
        document = documents.get(name)
        if document is not None:
            try:
                blocks = _MAKERS[name](document)
            except MALFORMED as error:
                blocks = [unreadable(name, error)]
        elif kind is not None and name in _KINDS and kind not in _KINDS[name]:
            blocks = [
                Text(
                    f"Absent: this is for {' and '.join(_KINDS[name])}; the run is {readable(kind)}.", "note"
                )
            ]
        else:
            blocks = [Text("Absent: the run did not save what this needs; see the notices above.", "note")]
        yield Section(f"boosting-{name}", title, blocks, level=3)


def _labels(document: Document) -> list[Block]:
    rows = [(one["labels"], one["num_samples_per_label"]) for one in document["labels_and_samples"]]
    total = sum(found for _, found in rows)
    values = [found for _, found in rows]
    if len(rows) <= 30:
        plot = figures.new_figure(
            x="Label", y="Samples (count)", x_range=[number(label) for label, _ in rows]
        )
        x: list[Any] = [number(label) for label, _ in rows]
        width = 0.7
    else:
        plot = figures.new_figure(x="Label", y="Samples (count)")
        x = [label for label, _ in rows]
        width = (max(x) - min(x)) / len(x) * 0.9
    source = ColumnDataSource({"x": x, "top": values})
    bars = plot.vbar(x="x", top="top", width=width, source=source, **_FILL)
    figures.hover(plot, [bars], [("label", "@x"), ("samples", "@top{0,0}")])
    largest, smallest = max(values), min(values)
    answer = f"{count(len(rows), 'label')}, {count(total, 'sample')}; the most frequent has {100 * largest / total:.1f} %, the rarest {100 * smallest / total:.1f} %."
    advice = "Imbalanced classes: collect more of the rare ones, resample, or weight them. Skewed numbers: a log or power transform may help."
    return [figures.chart(plot, "Are the labels balanced?", answer), Text(advice)]


def _losses(document: Document) -> list[Block]:
    lines: dict[str, tuple[list[float], list[float | None]]] = {}
    for row in document["category_loss_per_step"]:
        steps, losses = lines.setdefault(str(row["category"]), ([], []))
        steps.append(row["steps"])
        losses.append(row["loss"])
    advice = "Validation worse than training and growing: overfitting; lower max_depth or eta, raise min_child_weight, gamma, lambda or alpha, use subsample and colsample. Both high: underfitting; do the opposite."
    drawn = _lines(
        lines, "Does the loss fall, and does validation follow training?", "Loss (unit of the metric)"
    )
    return [drawn, Text(advice)]


def _importance(document: Document) -> list[Block]:
    blocks: list[Block] = []
    for kind, rows in document["features"].items():
        known = [
            (readable(row["feature"]), row["importance"]) for row in rows if row["importance"] is not None
        ]
        if not known:
            blocks.append(Text(f"Importance by {readable(kind)} was not saved.", "note"))
            continue
        largest = sorted(known, key=lambda one: -one[1])[:_FEATURES]
        shown = [one for one in known if one in largest]
        plot = figures.new_figure(
            x=f"Importance by {kind} (value times 100)",
            y="",
            height=110 + 20 * len(shown),
            y_range=(0, len(shown)),
        )
        places = [len(shown) - index - 0.5 for index in range(len(shown))]
        figures.name_rows(plot, {place: name for place, (name, _) in zip(places, shown, strict=True)})
        source = ColumnDataSource(
            {"y": places, "right": [value for _, value in shown], "name": [name for name, _ in shown]}
        )
        bars = plot.hbar(y="y", right="right", height=0.7, source=source, **_FILL)
        figures.hover(plot, [bars], [("feature", "@name"), ("importance", "@right{0,0.00}")])
        plot.ygrid.grid_line_color = None
        first = ", ".join(f"{name} {number(value)}" for name, value in largest[:3])
        left_out = (
            f" {len(known) - len(shown)} less important ones are left out." if len(known) > len(shown) else ""
        )
        blocks.append(
            figures.chart(plot, f"Which features matter, by {readable(kind)}?", f"First: {first}.{left_out}")
        )
    return blocks


def _matrix(document: Document) -> list[Block]:
    labels = [readable(one) for one in document["group_labels"]]
    size = len(labels)
    counts = np.array(document["group_counts"], np.float64).reshape(size, size)
    shares = np.array(document["group_percentages"], np.float64).reshape(size, size)
    plot, height = figures.heat_map(
        counts, labels, start=0, end=size, x="Predicted label", unit="Samples (count)", low=0.0
    )
    plot.yaxis.axis_label = "True label"
    plot.xaxis.ticker = [index + 0.5 for index in range(size)]
    plot.xaxis.major_label_overrides = {
        index + 0.5: figures.label(label) for index, label in enumerate(labels)
    }
    if size <= 12:
        cells = [(row, column) for row in range(size) for column in range(size)]
        half = counts.max() / 2
        source = ColumnDataSource(
            {
                "x": [column + 0.5 for _, column in cells],
                "y": [size - row - 0.5 for row, _ in cells],
                "text": [
                    f"{counts[row, column]:,.0f}\n{100 * shares[row, column]:.1f} %" for row, column in cells
                ],
                # Cividis is dark at its low end and light at its high end, in both themes.
                "ink": ["#000000" if counts[row, column] > half else "#ffffff" for row, column in cells],
            }
        )
        plot.add_layout(
            LabelSet(
                x="x",
                y="y",
                text="text",
                text_color="ink",
                source=source,
                text_align="center",
                text_baseline="middle",
                text_font_size="12px",
            )
        )
        height = max(height, 120 + 46 * size)
        plot.height = height
    stats = "; ".join(
        f"{name.replace('_', ' ')} {number(value)}" for name, value in document.get("stats", {}).items()
    )
    return [
        figures.chart(
            plot, "Which classes are taken for which?", f"{stats}. The diagonal is right.", height=height
        )
    ]


def _evaluation(document: Document) -> list[Block]:
    names = ("precision", "recall", "f1_score")
    rows = [
        [label, *(number(document[f"{label}_performance_metrics"][name]) for name in names), ""]
        for label in ("micro", "macro", "weighted")
        if f"{label}_performance_metrics" in document
    ]
    by_class = [
        [readable(label), *(number(round(row[name], 3)) for name in names), number(row["support"])]
        for label, row in document.get("classification_report", {}).items()
    ]
    text = f"Overall accuracy {number(document['overall_accuracy'])}."
    head = ("", "Precision", "Recall", "F1", "Samples")
    right = (False, True, True, True, True)
    return [
        Text(text),
        Table("Averages over classes", head[:-1], [row[:-1] for row in rows], right[:-1]),
        Table("By class", ("Class", *head[1:]), by_class, right, folded=len(by_class) > 12),
    ]


def _class_accuracy(document: Document) -> list[Block]:
    lines = {f"class {label}": (document["steps"], values) for label, values in document["accuracy"].items()}
    return [_lines(lines, "Which classes does the model learn, and when?", "Recall (share of the class)")]


def _roc(document: Document) -> list[Block]:
    area = document["area_under_curve"]
    plot = figures.new_figure(
        x="False positive rate (share)",
        y="True positive rate (share)",
        height=380,
        x_range=(0, 1),
        y_range=(0, 1.02),
    )
    fpr, tpr, limits = (
        np.asarray(document[name], np.float64)
        for name in ("false_positive_rate", "true_positive_rate", "thresholds")
    )
    if len(fpr) > 2000:
        chosen = np.unique(np.linspace(0, len(fpr) - 1, 2000).astype(int))
        fpr, tpr, limits = fpr[chosen], tpr[chosen], limits[chosen]
    source = ColumnDataSource({"x": figures.thin(fpr), "y": figures.thin(tpr), "limit": figures.thin(limits)})
    line = plot.line(
        "x",
        "y",
        source=source,
        line_width=2,
        color=figures.line_colour(0),
        legend_label=f"model, area {area}",
    )
    if len(fpr) <= 200:
        plot.scatter("x", "y", source=source, size=5, color=figures.line_colour(0))
    plot.line([0, 1], [0, 1], line_dash="dashed", color=figures.MUTED, legend_label="chance, area 0.5")
    figures.hover(
        plot,
        [line],
        [("false positives", "@x{0.000}"), ("true positives", "@y{0.000}"), ("threshold", "@limit{0.0000}")],
    )
    level = "poor: hardly better than chance" if area < 0.6 else "fair" if area < 0.8 else "good"
    return [
        figures.chart(
            plot, "How well are the two classes told apart?", f"Area under the curve {area}: {level}."
        )
    ]


def _residuals(document: Document) -> list[Block]:
    edges, counts = np.array(document["edges"], np.float64), np.array(document["hist"], np.float64)
    plot = figures.new_figure(x="Prediction minus label (unit of the label)", y="Samples (count)")
    source = ColumnDataSource({"left": edges[:-1], "right": edges[1:], "n": counts})
    bars = plot.quad(
        left="left", right="right", bottom=0, top="n", source=source, legend_label="residuals", **_FILL
    )
    figures.hover(plot, [bars], [("from", "@left{0.000}"), ("to", "@right{0.000}"), ("samples", "@n{0,0}")])
    mu, sigma = float(document["mu"]), float(document["sigma"])
    if sigma > 0:
        x = np.linspace(edges[0], edges[-1], 200)
        density = np.exp(-0.5 * ((x - mu) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
        scale = counts.sum() * float(np.diff(edges).mean())
        plot.line(
            x,
            figures.thin(density * scale),
            color=figures.INK,
            line_width=2,
            line_dash="dashed",
            legend_label=f"normal, μ {number(mu)}, σ {number(sigma)}",
        )
    answer = f"Mean {number(mu)}, standard deviation {number(sigma)}, at step {number(document['plot_step'])}; a mean far from 0 is a bias."
    return [figures.chart(plot, "How far off are predictions, and in which direction?", answer)]


def _errors(document: Document) -> list[Block]:
    lines = {name: (document["steps"], values) for name, values in document["errors"].items()}
    return [
        _lines(
            lines,
            "For which labels are errors large, and do they fall?",
            "Mean absolute error (unit of the label)",
        )
    ]


def _mean_errors(document: Document) -> list[Block]:
    known = {name: value for name, value in document["mean_errors"].items() if value is not None}
    if not known:
        return [Text("Absent: no bin has samples.", "note")]
    plot = figures.new_figure(
        x="Label", y="Mean absolute error (unit of the label)", x_range=list(map(figures.label, known))
    )
    plot.xaxis.major_label_orientation = 0.6
    source = ColumnDataSource({"x": list(map(figures.label, known)), "top": list(known.values())})
    bars = plot.vbar(x="x", top="top", width=0.7, source=source, **_FILL)
    figures.hover(plot, [bars], [("labels", "@x"), ("error", "@top{0,0.000}")])
    worst = max(known, key=lambda name: known[name])
    return [
        figures.chart(
            plot,
            "Which labels are predicted worst, over all steps?",
            f"Worst: {readable(worst)}, {number(known[worst])} on average.",
        )
    ]


_MAKERS: Final[Mapping[str, Callable[[Document], list[Block]]]] = {
    "LabelsDistribution": _labels,
    "LossData": _losses,
    "FeatureImportance": _importance,
    "ConfusionMatrix": _matrix,
    "EvaluationMetrics": _evaluation,
    "IterativeClassAccuracy": _class_accuracy,
    "ROCCurve": _roc,
    "ResidualDistribution": _residuals,
    "AbsoluteErrorPerLabelBin": _errors,
    "MeanAbsoluteErrorPerLabelBin": _mean_errors,
}
_FILL: Final = {
    "fill_color": figures.line_colour(0),
    "fill_alpha": 0.65,
    "line_color": figures.INK,
    "line_width": 0.5,
}


def _lines(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float | None]]], question: str, y: str
) -> Chart:
    """A line for each name, cycling through colours, dashes and markers."""
    plot = figures.new_figure(x="Step", y=y, height=300)
    ends = []
    for index, (name, (steps, values)) in enumerate(list(lines.items())[:24]):
        known = [(step, value) for step, value in zip(steps, values, strict=False) if value is not None]
        if not known:
            continue
        source = ColumnDataSource(
            {"x": [step for step, _ in known], "y": figures.thin([value for _, value in known])}
        )
        options: dict[str, Any] = {
            "source": source,
            "color": figures.line_colour(index),
            "legend_label": figures.shortened(name),
        }
        line = plot.line("x", "y", line_width=2, line_dash=figures.DASHES[index // 2 % 4], **options)
        if len(known) <= 60:
            plot.scatter("x", "y", size=6, marker=figures.MARKERS[index % 8], **options)
        shown = figures.plain_tip(name)
        figures.hover(plot, [line], [("", shown), ("step", "@x{0,0}"), ("value", "@y{0.0000}")])
        ends.append(f"{readable(name)} {number(known[0][1])} to {number(known[-1][1])}")
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0")
    more = f" {len(lines) - 24} further lines are left out." if len(lines) > 24 else ""
    return figures.chart(plot, question, "; ".join(ends[:6]) + (" …" if len(ends) > 6 else ".") + more)
