"""Grids: nothing extreme is lost, and nothing grows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdbg_core.engine.evidence_grid import Grid
from smdbg_core.evidence import Subject

A, B = Subject("a"), Subject("b")


def filled(points: list[tuple[int, float]], buckets: int = 8) -> Grid:
    grid = Grid("step", buckets, 4)
    row = grid.row(A)
    assert row is not None
    for position, value in points:
        grid.add(row, position, value)
    return grid


def test_few_points_are_kept_as_they_are() -> None:
    (track,) = filled([(3, 1.0), (4, -2.0), (9, 5.0)]).tracks().tracks
    assert track.positions.tolist() == [3, 4, 9]
    assert track.lowest.tolist() == track.highest.tolist() == track.mean.tolist() == [1.0, -2.0, 5.0]
    assert not track.violated


def test_many_points_share_buckets_of_one_width() -> None:
    tracks = filled([(step, float(step)) for step in range(100)]).tracks()
    (track,) = tracks.tracks
    assert tracks.width == 16
    assert track.positions.tolist() == [0, 16, 32, 48, 64, 80, 96]
    assert track.lowest.tolist() == [0, 16, 32, 48, 64, 80, 96]
    assert track.highest.tolist() == [15, 31, 47, 63, 79, 95, 99]
    assert track.mean[0] == 7.5


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.floats(-1e6, 1e6)), min_size=1, max_size=50),
    st.integers(1, 64),
)
def test_extremes_survive_and_buckets_are_bounded(points: list[tuple[int, float]], buckets: int) -> None:
    points.sort()
    (track,) = filled(points, buckets).tracks().tracks
    values = [value for _, value in points]
    assert track.lowest.min() == min(values)
    assert track.highest.max() == max(values)
    assert 1 <= len(track.positions) <= buckets
    assert track.positions.tolist() == sorted(set(track.positions.tolist()))


def test_what_is_not_finite_is_counted_apart() -> None:
    (track,) = filled([(0, 1.0), (1, float("nan")), (2, float("inf"))]).tracks().tracks
    assert track.non_finite.tolist() == [0, 1, 1]
    assert np.isnan(track.lowest[1:]).all()
    assert np.isnan(track.mean[1:]).all()


def test_positions_before_the_first_fall_into_the_first_bucket() -> None:
    (track,) = filled([(10, 1.0)] * 8192 + [(5, 7.0)]).tracks().tracks
    assert track.positions.tolist() == [10]
    assert track.highest.tolist() == [7.0]


def test_subjects_beyond_the_bound_are_counted_and_violating_ones_are_let_in() -> None:
    grid = Grid("step", 4, 2)
    rows = [grid.row(Subject(str(number))) for number in range(5)]
    assert rows == [0, 1, None, None, None]
    late = grid.row(Subject("4"), violated=True)
    assert late == 2
    assert grid.row(Subject("3"), violated=True) is None
    for row in (0, 1, late):
        grid.add(row, 0, 1.0)
    tracks = grid.tracks()
    assert [track.violated for track in tracks.tracks] == [False, False, True]
    assert tracks.omitted == 2


@pytest.mark.parametrize("start", [0, 10**15])
def test_times_of_an_age(start: int) -> None:
    tracks = filled([(start, 1.0), (start + 10**14, 2.0)]).tracks()
    (track,) = tracks.tracks
    assert len(track.positions) == 2
    assert track.positions[1] <= start + 10**14 < track.positions[1] + tracks.width
