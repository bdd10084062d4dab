"""Content and layout of pictures."""

import sys
from io import BytesIO

import numpy as np
import pytest
from matplotlib import image as pictures
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

import caransac
from caransac import plot
from caransac.geometry import essential_from_pose, fundamental_from_essential
from caransac.synthetic import make_pair

SIZE = (1024, 768)


@pytest.fixture(scope="module")
def pair():
    return make_pair(num_points=300, outlier_ratio=0.5, seed=11)


@pytest.fixture(scope="module")
def result(pair):
    options = caransac.Options(keep_trace=True, early_stop=False, rounds=3)
    cameras = pair.camera1, pair.camera2
    return caransac.estimate_relative_pose(
        pair.points1, pair.points2, *cameras, scores=pair.scores, score_kind="ratio", options=options
    )


def artists(axes, kind):
    return [artist for artist in axes.get_children() if type(artist) is kind]


def test_matches_go_from_faint_red_to_solid_green(tmp_path):
    points1, points2 = np.array([[10.0, 20], [30, 40], [50, 60]]), np.array([[15.0, 25], [35, 45], [55, 65]])
    image1, image2 = np.full((80, 100), 90, np.uint8), np.full((70, 90, 3), 200, np.uint8)
    path = tmp_path / "new" / "m.png"
    figure = plot.draw_matches(path, points1, points2, [1.0, 0.5, 0.0], image1=image1, image2=image2)
    assert pictures.imread(path).shape[1] == 1200
    axes = figure.axes[0]
    left, right = artists(axes, AxesImage)
    assert tuple(left.get_extent()) == (-0.5, 99.5, 79.5, -0.5)  # pixel centres at whole numbers
    shift = right.get_extent()[0] + 0.5
    assert shift > 100
    (lines,) = artists(axes, LineCollection)
    # The most probable match is drawn last, above the others.
    np.testing.assert_allclose(lines.get_segments()[-1], [[10, 20], [15 + shift, 25]])
    colours = lines.get_colors()
    assert colours[0][0] > 2 * colours[0][1]  # red
    assert colours[-1][1] > 2 * colours[-1][0]  # green
    assert np.all(np.diff(colours[:, 3]) > 0)


def test_inliers_are_the_extreme_probabilities(pair):
    figures = [
        plot.draw_matches(None, pair.points1, pair.points2, right, size1=SIZE, size2=SIZE)
        for right in (pair.inliers, pair.inliers.astype(float))
    ]
    first, second = (artists(drawn.axes[0], LineCollection)[0].get_colors() for drawn in figures)
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first, axis=0)) == 2


def test_epipolar_lines_pass_through_their_points(tmp_path, pair):
    F = fundamental_from_essential(essential_from_pose(pair.R, pair.t), pair.camera1.K, pair.camera2.K)
    clean = make_pair(num_points=300, outlier_ratio=0, noise_px=0, seed=11)
    assert np.allclose(clean.R, pair.R)
    figure = plot.draw_epipolar_lines(
        tmp_path / "e.pdf", F, clean.points1, clean.points2, size1=SIZE, size2=SIZE, max_lines=7, title="lines"
    )
    assert (tmp_path / "e.pdf").read_bytes().startswith(b"%PDF")
    for axes in figure.axes:
        (dots,) = artists(axes, PathCollection)
        lines = [line for line in axes.get_lines() if type(line).__name__ == "AxLine" or hasattr(line, "_xy1")]
        points = np.asarray(dots.get_offsets())
        assert len(lines) == len(points) == 7
        for line, point in zip(lines, points, strict=True):
            first, second = np.array(line.get_xy1()), np.array(line.get_xy2())
            along, across = second - first, point - first
            assert abs(along[0] * across[1] - along[1] * across[0]) / np.linalg.norm(along) < 1e-6
        assert axes.get_xlim() == (-0.5, 1023.5)
        assert axes.get_ylim() == (767.5, -0.5)


@pytest.mark.slow
def test_progression_shows_the_rounds(tmp_path, pair, result):
    figure = plot.draw_progression(tmp_path / "p.png", result, pair.points1, size1=SIZE)
    assert [axes.get_title() for axes in figure.axes[:4]] == ["before any model", "round 1", "round 2", "round 3"]
    for axes, step in zip(figure.axes[4:], result.trace, strict=True):
        heights = [bar.get_height() for bar in axes.patches]
        np.testing.assert_array_equal(heights, np.histogram(step.probabilities, bins=20, range=(0, 1))[0])
    figure = plot.draw_progression(None, result, pair.points1, max_rounds=2)
    assert [axes.get_title() for axes in figure.axes[:2]] == ["before any model", "round 3"]


def test_pictures_go_onto_the_callers_axes(tmp_path, pair, result):
    points, mine = (pair.points1, pair.points2), Figure()
    axes = mine.add_subplot(2, 1, 1)
    assert plot.draw_matches(None, *points, pair.inliers, ax=axes, title="mine") is mine
    assert len(artists(axes, LineCollection)) == 1 and axes.get_title() == "mine"
    both = mine.subplots(1, 2)
    assert plot.draw_epipolar_lines(None, np.eye(3), *points, ax=both, title="both") is mine
    assert all(len(artists(each, PathCollection)) == 1 for each in both) and both[0].get_title() == "both"
    grid = mine.subplots(2, 3)
    assert plot.draw_progression(None, result, points[0], ax=grid) is mine
    assert [each.get_title() for each in grid[0]] == ["before any model", "round 1", "round 3"]
    assert all(len(each.patches) == 20 for each in grid[1])
    part, path = Figure().subfigures(), tmp_path / "t.png"
    drawn = plot.draw_matches(path, *points, pair.inliers, ax=part.subplots())
    assert drawn is part.figure and path.stat().st_size > 0
    with pytest.raises(ValueError, match="ax must be 1 x 2 axes, got 1"):
        plot.draw_epipolar_lines(None, np.eye(3), *points, ax=axes)


def test_files_and_notebooks_get_png(pair):
    file = BytesIO()
    figure = plot.draw_matches(file, pair.points1, pair.points2, pair.inliers)
    assert file.getvalue() == figure._repr_png_()
    assert file.getvalue().startswith(b"\x89PNG") and not file.closed
    assert plot.save(figure, file) is file
    with pytest.raises(ValueError, match="path must be a path or a file that is open for writing, not a int"):
        plot.save(figure, 3)


def test_no_matches_are_drawn_too(tmp_path):
    none = np.empty((0, 2))
    plot.draw_matches(tmp_path / "m.png", none, none, np.empty(0), size1=(40, 30), size2=(40, 30))
    plot.draw_epipolar_lines(tmp_path / "e.png", np.eye(3), none, none)
    assert len(list(tmp_path.iterdir())) == 2


def test_mistakes_are_named(tmp_path, pair, result):
    path, points = tmp_path / "x.png", pair.points1
    with pytest.raises(ValueError, match=r"points1 must have shape \(N, 2\)"):
        plot.draw_matches(path, points[:, :1], points, pair.inliers)
    with pytest.raises(ValueError, match=r"shape \(300,\), one per match"):
        plot.draw_matches(path, points, points, pair.inliers[:5])
    for draw in (
        lambda: plot.draw_matches(path, points, points[:5], pair.inliers),
        lambda: plot.draw_epipolar_lines(path, np.eye(3), points, points[:5]),
    ):
        with pytest.raises(ValueError, match="points1 and points2 must have the same length, got 300 and 5"):
            draw()
    with pytest.raises(ValueError, match="max_lines must be a whole number of at least 1"):
        plot.draw_epipolar_lines(path, np.eye(3), points, points, max_lines=0)
    with pytest.raises(ValueError, match="F must have shape"):
        plot.draw_epipolar_lines(path, np.eye(2), points, points)
    bare = caransac.estimate_relative_pose(points, pair.points2, pair.camera1, pair.camera2)
    with pytest.raises(ValueError, match="keep_trace=True"):
        plot.draw_progression(path, bare, points)
    with pytest.raises(ValueError, match="one per match"):
        plot.draw_progression(path, result, points[:10])
    assert not path.exists()


def test_missing_matplotlib_names_the_extra(tmp_path, monkeypatch, pair):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'caransac\[plot\]'"):
        plot.draw_matches(tmp_path / "m.png", pair.points1, pair.points2, pair.inliers)


def test_points_in_space_are_drawn_from_above(tmp_path, pair, result):
    figure = plot.draw_points3d(tmp_path / "p.png", result, title="above")
    axes = figure.axes[0]
    (dots,) = artists(axes, PathCollection)
    drawn = np.asarray(dots.get_offsets())
    assert 0.97 * len(result.points3d) <= len(drawn) <= len(result.points3d)
    assert set(map(tuple, drawn.round(9))) <= set(map(tuple, result.points3d.xyz[:, [0, 2]].round(9)))
    assert (tmp_path / "p.png").is_file()
    plane = caransac.estimate_homography(pair.points1, pair.points2)
    with pytest.raises(ValueError, match="result must have a pose with a translation"):
        plot.draw_points3d(None, plane)


def test_a_result_is_drawn_with_its_images_and_a_legend(pair):
    result = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2)
    image = np.full((768, 1024), 90, np.uint8)
    drawn = plot.draw_matches(image, image, result)
    same = plot.draw_matches(None, pair.points1, pair.points2, result.probabilities, image1=image, image2=image)
    np.testing.assert_array_equal(*(np.asarray(each.canvas.buffer_rgba()) for each in (painted(drawn), painted(same))))
    for figure in (drawn, plot.draw_flow(None, pair.points1, pair.points2, pair.inliers)):
        told = [text.get_text() for text in figure.legends[0].get_texts()]
        assert told[:3] == ["probably right", "unsure", "probably wrong"]
    assert told[3:] == ["a line points to the position in image 2"]


def painted(figure):
    figure.canvas.draw()
    return figure
