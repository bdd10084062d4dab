"""Selection of the matches to draw: the most probable ones of every part of the image."""

import numpy as np
import pytest

from caransac import plot
from caransac.plot.spreading import spread_matches

pytest.importorskip("matplotlib")

SIZE = 800, 600


@pytest.fixture
def many():
    rng = np.random.default_rng(5)
    points = rng.uniform(0, 1, (4000, 2)) * SIZE
    crowded = rng.uniform(0, 0.1, (4000, 2)) * SIZE  # the region with most features
    return np.concatenate([points, crowded]), rng.uniform(0, 1, 8000)


def test_every_part_of_the_image_has_its_most_probable_matches(many):
    points, probabilities = many
    chosen = spread_matches(points, probabilities, SIZE, 200)
    assert len(chosen) == len(set(chosen)) == 200
    assert np.all(np.diff(probabilities[chosen]) >= 0)
    cells = (8 * points // SIZE).astype(int) @ (1, 8)
    counts = np.bincount(cells[chosen], minlength=64)
    assert counts.min() >= 3 and counts.max() <= 4
    for cell in range(64):
        best = np.sort(probabilities[cells == cell])[-counts[cell] :]
        assert np.array_equal(np.sort(probabilities[chosen[cells[chosen] == cell]]), best)


def test_few_matches_are_all_drawn_and_points_may_be_outside():
    points, probabilities = np.array([[-5.0, 3], [900, 700], [3, 3]]), np.array([0.5, 1.0, 0.0])
    assert spread_matches(points, probabilities, SIZE, 200).tolist() == [2, 0, 1]
    assert spread_matches(points, probabilities, SIZE, 2).tolist() == [0, 1]
    assert spread_matches(points[:0], probabilities[:0], SIZE, 2).tolist() == []


def test_pictures_have_two_hundred_lines_and_all_points(many):
    points, probabilities = many
    figure = plot.draw_matches(None, points, points, probabilities, size1=SIZE, size2=SIZE)
    points1, points2, lines = figure.axes[0].collections
    assert len(points1.get_offsets()) == len(points2.get_offsets()) == 8000
    assert len(lines.get_segments()) == 200
    figure = plot.draw_matches(None, points, points, probabilities, size1=SIZE, size2=SIZE, max_lines=9000)
    (lines,) = figure.axes[0].collections
    assert len(lines.get_segments()) == 8000
    with pytest.raises(ValueError, match="max_lines must be a whole number of at least 1"):
        plot.draw_matches(None, points, points, probabilities, max_lines=0)


def test_flow_goes_the_way_of_the_match_and_is_short():
    rng = np.random.default_rng(2)
    points1 = rng.uniform(0.2, 0.8, (50, 2)) * SIZE
    points2 = points1 + (300, -60) * rng.uniform(0.5, 1.5, (50, 1))
    right = np.arange(50) < 40
    lines, points = plot.draw_flow(None, points1, points2, right, size1=SIZE).axes[0].collections
    assert len(points.get_offsets()) == 50
    segments = np.array(lines.get_segments())
    assert segments.shape == (40, 2, 2)
    assert np.allclose(segments[:, 0], points1[right])
    flow, moved = segments[:, 1] - segments[:, 0], (points2 - points1)[right]
    assert np.allclose(flow[:, 0] * moved[:, 1] - flow[:, 1] * moved[:, 0], 0, atol=1e-6) and np.all(
        np.sum(flow * moved, axis=1) > 0
    )
    assert np.isclose(np.median(np.linalg.norm(flow, axis=1)), 0.04 * SIZE[0])
    nothing = plot.draw_flow(None, points1, points1, np.zeros(50), size1=SIZE).axes[0].collections[0]
    assert len(nothing.get_segments()) == 0
