"""Very many matches: what is found on some of them and refined on all."""

import numpy as np
import pytest

import caransac
from caransac import Options
from caransac.camera import Camera
from caransac.geometry import pose_error_deg, rotation_from_vector
from caransac.kernels import pack
from caransac.robust.dense import CELLS, DENSE, WORKED_ON, spread_matches
from caransac.robust.problems import Essential

CAMERA = Camera("SIMPLE_PINHOLE", (1000.0, 800.0, 600.0), 1600, 1200)


def dense_matches(n, inlier_ratio, noise_px, seed=0):
    """Matches all over the image: points1, points2, R, t, which are right."""
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
    for seed in range(3):
        points1, points2, R, t, right = dense_matches(60_000, inlier_ratio, noise_px, seed)
        result = caransac.estimate_relative_pose(points1, points2, CAMERA, CAMERA)
        part = caransac.estimate_relative_pose(points1[:DENSE], points2[:DENSE], CAMERA, CAMERA)
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


def test_the_trace_speaks_of_the_matches_as_given():
    points1, points2, *_ = dense_matches(25_000, 0.8, 0.5)
    result = caransac.estimate_relative_pose(points1, points2, CAMERA, CAMERA, options=Options(keep_trace=True))
    assert len(result.trace) > 1
    for record in result.trace:
        assert len(record.probabilities) == len(record.state) == 25_000
        assert record.msac_scores.shape == (len(record.models), 25_000)
    assert result.trace[1].samples.max() > WORKED_ON
    assert np.array_equal(result.trace[-1].probabilities, result.probabilities.astype(np.float32))


@pytest.mark.parametrize("method", ["lm-lo", "lm-lo-u"])
def test_classical_methods_take_dense_matches_too(method):
    points1, points2, R, t, _ = dense_matches(30_000, 0.7, 1.0)
    result = caransac.estimate_relative_pose(points1, points2, CAMERA, CAMERA, options=Options(method=method))
    assert pose_error_deg(result.R, result.t, R, t) < 0.1
    assert result.probabilities is None


def test_no_model_of_dense_matches_is_a_failure_like_any_other():
    points = np.tile([[5.0, 7.0]], (25_000, 1))
    result = caransac.estimate_relative_pose(points, points, CAMERA, CAMERA)
    assert not result.success
    assert len(result.probabilities) == 25_000


def test_the_matches_worked_on_are_spread_and_the_best_of_their_place(rng):
    points = np.concatenate([rng.normal(size=(40_000, 2)) * 0.01, rng.uniform(-1, 1, (5000, 2))])
    problem = Essential(pack(points, points), 1e-3)
    quality = rng.random(len(points))
    chosen = spread_matches(problem, quality, 0)
    assert len(chosen) == len(np.unique(chosen)) == WORKED_ON
    assert np.array_equal(chosen, spread_matches(problem, quality, 0))
    assert np.mean(chosen >= 40_000) > 0.6  # not from the heap in the middle alone
    cell = np.floor((points + 1) * CELLS / 2) @ [CELLS, 1]
    crowded = np.flatnonzero(cell == np.bincount(cell.astype(int)).argmax())
    assert quality[np.intersect1d(chosen, crowded)].mean() > quality[crowded].mean()
