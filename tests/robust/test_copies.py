"""Copies of a match count once if most matches are copies."""

import numpy as np
import pytest

from caransac import Options, estimate_absolute_pose, estimate_fundamental, estimate_homography, estimate_relative_pose
from caransac.robust.copies import find_distinct
from caransac.robust.problems import Essential
from caransac.robust.records import MatchInfo
from caransac.synthetic import make_pair, make_query
from caransac.tuning import DEFAULT_TUNING


@pytest.mark.parametrize("call", [estimate_fundamental, estimate_homography, estimate_relative_pose])
@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo-u"])
def test_copies_add_no_evidence(call, method):
    pair = make_pair(40, outlier_ratio=0.4, noise_px=0.7, seed=3)
    cameras = (pair.camera1, pair.camera2) if call is estimate_relative_pose else ()
    options = Options(method=method)
    once = call(pair.points1, pair.points2, *cameras, options=options)
    index = np.repeat(np.arange(40), 25)
    often = call(pair.points1[index], pair.points2[index], *cameras, options=options)
    assert often.confidence == pytest.approx(once.confidence, abs=1e-3)
    assert np.array_equal(often.inliers, once.inliers[index])
    if method == "ca-ransac":
        assert often.probabilities == pytest.approx(once.probabilities[index], abs=1e-3)


def test_copies_of_absolute_matches_count_once(rng):
    points3d = rng.uniform(-1, 1, (60, 3)) + np.array([0, 0, 4])
    points2d = 600 * points3d[:, :2] / points3d[:, 2:] + 300 + rng.normal(size=(60, 2))
    camera = {"model": "PINHOLE", "width": 640, "height": 640, "params": [600, 600, 300, 300]}
    once = estimate_absolute_pose(points2d, points3d, camera)
    index = np.repeat(np.arange(60), 9)
    often = estimate_absolute_pose(points2d[index], points3d[index], camera)
    assert often.confidence == pytest.approx(once.confidence, abs=1e-3)
    assert np.array_equal(often.inliers, once.inliers[index])


def test_the_trace_describes_all_matches():
    pair = make_pair(60, outlier_ratio=0.2, seed=4)
    index = np.tile(np.arange(60), 12)
    points = pair.points1[index], pair.points2[index]
    found = estimate_relative_pose(*points, pair.camera1, pair.camera2, options=Options(keep_trace=True))
    assert found.success and found.num_inliers > 0.6 * len(index)
    for record in found.trace[1:]:
        assert record.state.shape[0] == record.probabilities.shape[0] == record.msac_scores.shape[1] == len(index)
        assert record.samples.max() < len(index)


def test_the_best_scored_copy_is_kept(rng):
    pair = make_pair(50, outlier_ratio=0.2, seed=5)
    index = rng.permutation(np.repeat(np.arange(50), 10))
    problem = Essential.from_pixels(pair.points1[index], pair.points2[index], pair.camera1, pair.camera2)
    scores = rng.uniform(0, 1, len(index))
    distinct, place = find_distinct(problem, MatchInfo(scores, "ratio"), DEFAULT_TUNING)
    assert len(distinct) == 50
    assert np.array_equal(index[distinct[place]], index)
    for match in distinct:
        assert scores[match] == scores[index == index[match]].min()


def test_a_few_copies_are_ordinary_matches():
    pair = make_pair(200, outlier_ratio=0.2, seed=5)
    some = np.r_[np.arange(200), np.arange(150)]
    problem = Essential.from_pixels(pair.points1[some], pair.points2[some], pair.camera1, pair.camera2)
    assert find_distinct(problem, MatchInfo(), DEFAULT_TUNING) == (None, None)
    hopeless = Essential.from_pixels(pair.points1[[0] * 9], pair.points2[[0] * 9], pair.camera1, pair.camera2)
    assert find_distinct(hopeless, MatchInfo(), DEFAULT_TUNING) == (
        None,
        None,
    )  # too few for a model: the reason names all matches


@pytest.mark.parametrize("jitter_px", [0.0, 0.02])
def test_copies_near_the_border_of_a_cell_are_found(jitter_px, rng):
    pair = make_pair(50, outlier_ratio=0.2, seed=6)
    index = np.repeat(np.arange(50), 10)
    points1, points2 = (
        points[index] + jitter_px * rng.normal(size=(500, 2)) for points in (pair.points1, pair.points2)
    )
    problem = Essential.from_pixels(points1, points2, pair.camera1, pair.camera2)
    distinct, place = find_distinct(problem, MatchInfo(), DEFAULT_TUNING)
    assert 50 <= len(distinct) <= 52
    assert np.array_equal(index[distinct[place]], index)


def test_a_few_points_that_are_copied_with_noise_are_not_trusted(rng):
    for seed in range(20):
        query = make_query(200, outlier_ratio=0.0, seed=seed)
        index = np.repeat(rng.permutation(200)[:5], 300)
        points2d = query.points2d[index] + 0.02 * rng.normal(size=(1500, 2))
        found = estimate_absolute_pose(points2d.clip(0, (1023, 767)), query.points3d[index], query.camera)
        assert not found.is_confident(), seed
