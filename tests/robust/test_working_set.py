"""The working set: only a part of very many matches is used for the search, and all are used for the final answer."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import caransac
from caransac import Options
from caransac.camera import Camera
from caransac.geometry import pose_error_deg, rotation_from_vector
from caransac.kernels import pack
from caransac.robust.pipeline import estimate_model
from caransac.robust.problems import Essential
from caransac.robust.records import MatchInfo
from caransac.robust.working_set import choose_working_set
from caransac.tuning import DEFAULT_TUNING, Tuning

CAMERA = Camera("SIMPLE_PINHOLE", (1000.0, 800.0, 600.0), 1600, 1200)
SIZE = DEFAULT_TUNING.working_set


def dense_matches(n, inlier_ratio, noise_px, seed=0):
    """Create matches all over the image: points1, points2, R, t, and the mask of right matches."""
    rng = np.random.default_rng(seed)
    R, t = rotation_from_vector(np.array([0.05, -0.1, 0.02])), np.array([0.8, 0.1, 0.59])
    t /= np.linalg.norm(t)
    points1 = rng.uniform(0, 1, (n, 2)) * [1600, 1200]
    rays = np.concatenate([(points1 - [800, 600]) / 1000, np.ones((n, 1))], axis=1)
    moved = rays * rng.uniform(3, 9, (n, 1)) @ R.T + t
    points2 = moved[:, :2] / moved[:, 2:] * 1000 + [800, 600]
    right = rng.random(n) < inlier_ratio
    points2[~right] = rng.uniform(0, 1, (int((~right).sum()), 2)) * [1600, 1200]
    points1, points2 = (points + noise_px * rng.standard_normal((n, 2)) for points in (points1, points2))
    return points1, points2, R, t, right


@pytest.mark.slow
@pytest.mark.parametrize(("inlier_ratio", "noise_px"), [(0.9, 1.0), (0.9, 2.0), (0.5, 1.0)])
def test_all_matches_make_the_pose_precise(inlier_ratio, noise_px):
    errors = []
    for seed in range(6):
        points1, points2, R, t, right = dense_matches(60_000, inlier_ratio, noise_px, seed)
        result = caransac.estimate_relative_pose(points1, points2, CAMERA, CAMERA)
        part = caransac.estimate_relative_pose(points1[:SIZE], points2[:SIZE], CAMERA, CAMERA)
        errors.append([pose_error_deg(each.R, each.t, R, t) for each in (result, part)])
    assert np.mean(errors, axis=0)[0] < 0.05
    assert np.mean(errors, axis=0)[0] < np.mean(errors, axis=0)[1]
    assert len(result.inliers) == len(result.probabilities) == 60_000
    assert result.probabilities[right].mean() > 0.75
    assert result.probabilities[~right].mean() < 0.15
    assert result.confidence > 0.9


def test_fundamental_matrices_and_homographies_of_dense_matches():
    points1, points2, *_ = dense_matches(30_000, 0.8, 0.5)
    found = caransac.estimate_fundamental(points1, points2)
    assert 0.6 < found.inliers.mean() < 0.9
    H = np.array([[0.9, 0.1, 30], [-0.05, 1.1, -20], [1e-5, 2e-5, 1]])
    moved = np.concatenate([points1, np.ones((len(points1), 1))], axis=1) @ H.T
    result = caransac.estimate_homography(points1, moved[:, :2] / moved[:, 2:])
    assert np.allclose(result.H / result.H[2, 2], H, rtol=1e-6, atol=1e-9)


def test_the_trace_refers_to_all_given_matches():
    points1, points2, *_ = dense_matches(25_000, 0.8, 0.5)
    result = caransac.estimate_relative_pose(points1, points2, CAMERA, CAMERA, options=Options(keep_trace=True))
    assert len(result.trace) > 1
    for record in result.trace:
        assert len(record.probabilities) == len(record.state) == 25_000
        assert record.msac_scores.shape == (len(record.models), 25_000)
    assert result.trace[1].samples.max() > SIZE
    assert np.array_equal(result.trace[-1].probabilities, result.probabilities)
    problem = Essential.from_pixels(points1, points2, CAMERA, CAMERA)
    for record in result.trace[1:]:
        scores = problem.msac_scores(record.models, record.max_error * problem.pixel)
        assert np.array_equal(record.msac_scores, scores)
    assert np.array_equal(result.trace[-1].best, np.c_[result.R, result.t])


@pytest.mark.parametrize("method", ["lm-lo", "lm-lo-u"])
def test_classical_methods_take_dense_matches_too(method):
    points1, points2, R, t, _ = dense_matches(30_000, 0.7, 1.0)
    result = caransac.estimate_relative_pose(points1, points2, CAMERA, CAMERA, options=Options(method=method))
    assert pose_error_deg(result.R, result.t, R, t) < 0.1
    assert result.probabilities is None


def test_dense_matches_without_a_model_are_an_ordinary_failure():
    points = np.tile([[5.0, 7.0]], (25_000, 1))
    result = caransac.estimate_relative_pose(points, points, CAMERA, CAMERA)
    assert not result.success
    assert len(result.probabilities) == 25_000


def test_the_matches_worked_on_are_spread_and_the_best_of_their_place(rng):
    points = np.concatenate([rng.normal(size=(40_000, 2)) * 0.01, rng.uniform(-1, 1, (5000, 2))])
    problem, info = Essential(pack(points, points)), MatchInfo(rng.random(len(points)), "confidence")
    chosen = choose_working_set(problem, info, 0, DEFAULT_TUNING)
    assert len(chosen) == SIZE
    assert np.all(np.diff(chosen) > 0)
    assert np.array_equal(chosen, choose_working_set(problem, info, 0, DEFAULT_TUNING))
    assert np.mean(chosen >= 40_000) > 0.5  # not only from the cluster in the middle
    cell = np.floor((points + 1) * 64 / 2) @ [64, 1]
    crowded = np.flatnonzero(cell == np.bincount(cell.astype(int)).argmax())
    kept = np.intersect1d(chosen, crowded)
    assert 0 < len(kept) < len(crowded)
    assert info.scores[kept].mean() > info.scores[crowded].mean() + 0.1
    ratios = replace(info, score_kind="ratio")  # low ratios are good
    kept = np.intersect1d(choose_working_set(problem, ratios, 0, DEFAULT_TUNING), crowded)
    assert info.scores[kept].mean() < info.scores[crowded].mean() - 0.1


@pytest.mark.parametrize("num_points", [1, SIZE - 1, SIZE, SIZE + 1])
def test_the_working_set_has_a_maximum_size(rng, num_points):
    problem = Essential(pack(*rng.normal(size=(2, num_points, 2))))
    chosen = choose_working_set(problem, MatchInfo(), 0, DEFAULT_TUNING)
    if num_points <= SIZE:
        assert chosen is None
    else:
        assert len(chosen) == SIZE
    if num_points > 1:
        assert len(choose_working_set(problem, MatchInfo(), 0, Tuning(working_set=num_points - 1))) == num_points - 1


def test_matches_without_scores_are_drawn_by_the_seed(rng):
    problem = Essential(pack(*rng.normal(size=(2, 20_000, 2))))
    first, again, other = (choose_working_set(problem, MatchInfo(), seed, DEFAULT_TUNING) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    everywhere = problem.points1[first]
    assert np.ptp(everywhere, axis=0) == pytest.approx(np.ptp(problem.points1, axis=0), rel=0.3)


def test_a_working_set_gives_the_answer_of_all():
    """The rule does not depend on the size: 300 of 1000 matches give the same answer."""
    points1, points2, R, t, right = dense_matches(1000, 0.7, 0.5, seed=3)
    problem = Essential.from_pixels(points1, points2, CAMERA, CAMERA)
    every, some = (
        estimate_model(problem, MatchInfo(), Options(tuning=Tuning(working_set=size))) for size in (1000, 300)
    )
    for found in (every, some):
        assert pose_error_deg(found.model[:, :3], found.model[:, 3], R, t) < 0.3
        assert np.mean((found.msac_scores > 0) == right) > 0.95
        assert found.probabilities.shape == found.msac_scores.shape == (1000,)
    assert np.mean((some.probabilities > 0.5) == right) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("noise_px", [0.5, 2.0])
def test_answers_do_not_get_worse_with_more_matches(noise_px):
    """The error falls from 1000 to 200,000 matches, including the size at which the working set begins."""
    counts = (1000, 4000, 8000, 8400, 20_000, 60_000, 200_000)
    errors = []
    for seed in range(4):
        points1, points2, R, t, right = dense_matches(counts[-1], 0.6, noise_px, seed)
        errors.append([])
        for count in counts:
            result = caransac.estimate_relative_pose(points1[:count], points2[:count], CAMERA, CAMERA)
            errors[-1].append(pose_error_deg(result.R, result.t, R, t))
            assert result.inliers[right[:count]].mean() > 0.95
    means = np.mean(errors, axis=0)
    for fewer, more in pairwise(means):
        assert more < 1.3 * fewer + 0.005
    assert means[-1] < 0.3 * means[0]
