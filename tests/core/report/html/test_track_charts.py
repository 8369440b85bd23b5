"""Charts of points against limits."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

pytest.importorskip("bokeh")

from smdbg_core.evidence import JudgedPoints, Limit, Subject, Track, Tracks
from smdbg_core.report.html.track_charts import (
    constant_value,
    heat_chart,
    judged_chart,
    natural,
    subject_text,
    unit_of,
)
from tests.core.report.test_report import finding


def track(name: str, values: list[float], *, violated: bool = False, **place: Any) -> Track:
    found = np.array(values)
    bad = (~np.isfinite(found)).astype(np.int32)
    found = np.where(bad > 0, np.nan, found)
    subject = Subject(name, **{"worker": "worker_0", "mode": "TRAIN", **place})
    return Track(subject, np.arange(len(values)), found, found, found, bad, violated)


def judged(*tracks: Track, limits: tuple[Limit, ...] = (Limit("<", 1e-7),), **changes: Any) -> JudgedPoints:
    points = Tracks("step", changes.pop("width", 1), list(tracks), changes.pop("omitted", 0))
    return JudgedPoints("mean_abs", list(limits), changes.pop("varies", False), points)


def test_the_answer_names_what_is_beyond_the_limit() -> None:
    found = judged_chart(judged(track("a", [1e-9, 1e-9], violated=True), track("b", [1.0, 1.0])), [finding()])
    assert "1 of 2 subjects" in found.answer
    assert "< 1e-07" in found.answer
    assert "Hatched" in found.answer
    assert found.question.endswith("?")
    json.loads(found.item)


def test_what_is_joined_or_left_out_is_said() -> None:
    found = judged_chart(judged(track("a", [1.0]), width=4, omitted=3, varies=True), [])
    assert "joins 4 steps" in found.answer
    assert "3 further subjects not recorded" in found.answer
    assert "further limits" in found.answer


@pytest.mark.parametrize(
    "values", [[0.0, 0.0], [0.0, 1e-9], [-1.0, 1.0], [np.nan, np.nan], [np.nan, 1.0], [1e300, 1e-300], [5.0]]
)
def test_any_values_can_be_drawn(values: list[float]) -> None:
    points = judged(track("a", values, violated=True), track("b", values))
    json.loads(judged_chart(points, [finding()]).item)
    drawn = heat_chart(points, "Where?")
    assert drawn is not None
    json.loads(drawn.item)


def test_a_map_needs_rows() -> None:
    assert heat_chart(judged(track("a", [1.0])), "Where?") is None


def test_a_large_map_keeps_the_rows_that_violate() -> None:
    tracks = [track(f"layer{number}", [1.0], violated=number == 299) for number in range(300)]
    drawn = heat_chart(judged(*tracks), "Where?")
    assert drawn is not None
    assert "layer299" in drawn.answer
    assert "220 further rows left out" in drawn.answer


def test_a_constant_is_no_map() -> None:
    assert constant_value(judged(track("a", [0.0, 0.0]), track("b", [0.0]))) == 0
    assert constant_value(judged(track("a", [0.0, 1.0]))) is None
    assert constant_value(judged(track("a", [0.0], violated=True))) is None
    assert constant_value(judged(track("a", [np.nan]))) is None


def test_names_in_natural_order() -> None:
    assert sorted(["fc10", "fc2", "fc1", "10", "a"], key=natural) == ["10", "a", "fc1", "fc2", "fc10"]


def test_subjects() -> None:
    assert subject_text(track("a", [1.0])) == "a TRAIN"
    assert subject_text(track("a", [1.0], worker="w1", node="n", mode="GLOBAL")) == "a (n, w1)"


@pytest.mark.parametrize(
    ("statistic", "unit"),
    [
        ("zero_percent", "%"),
        ("seconds_without_tensors", "s"),
        ("non_finite", "count"),
        ("mean_abs", "no unit"),
        ("x", "as the rule measures it"),
    ],
)
def test_units(statistic: str, unit: str) -> None:
    assert unit_of(statistic) == unit
