"""Hostile arrays: every place that takes matches refuses them by name."""

import numpy as np
import pytest

from caransac import plot
from caransac.learned.match_filter import load_filter
from caransac.matches import Matches

POINTS = np.arange(20.0).reshape(10, 2)
HOSTILE = [
    POINTS + 1j,
    POINTS.astype(object),
    POINTS.astype(str),
    np.ma.masked_array(POINTS),
    np.full((10, 2), np.nan),
    POINTS * 1e30,
    POINTS.T,
    POINTS[:, 0],
    None,
    3.0,
    {"a": 1},
    [[1, 2], [3]],
]


@pytest.mark.parametrize("points", HOSTILE, ids=lambda points: type(points).__name__)
@pytest.mark.parametrize(
    "take",
    [Matches, load_filter().judge, lambda *points: plot.draw_matches("never.png", *points, np.ones(10))],
    ids=["Matches", "judge", "draw_matches"],
)
def test_points_that_are_none_are_refused_by_name(take, points):
    with pytest.raises(ValueError, match="points1 must"):
        take(points, POINTS)
    with pytest.raises(ValueError, match="points2 must"):
        take(POINTS, points)


def test_lists_and_integers_are_taken():
    expected = load_filter().judge(POINTS, POINTS[::-1])
    assert np.array_equal(load_filter().judge(POINTS.tolist(), POINTS[::-1].astype(int)).log_odds, expected.log_odds)
    assert Matches([[1, 2]], [[3, 4]], [0.5]).scores.dtype == float


def test_scores_are_one_a_match():
    for take in (Matches, load_filter().judge):
        with pytest.raises(ValueError, match=r"scores must have shape \(10,\)"):
            take(POINTS, POINTS, np.ones(9), "ratio")
