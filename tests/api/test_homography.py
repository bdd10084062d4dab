"""estimate_homography: accuracy, outliers, orientation, and failures without exceptions."""

import numpy as np
import pytest

import caransac
from caransac import Options
from caransac.geometry import homogeneous
from caransac.robust.problems import Homography

SIZE = np.array([1200.0, 800.0])


def transfer(H, points):
    moved = homogeneous(points) @ H.T
    return moved[:, :2] / moved[:, 2:]


def planar_matches(seed=0, n=400, inlier_ratio=0.5, noise_px=0.5):
    """Create matches of a plane in pixels: points1, points2, H, mask of right matches, ratios."""
    rng = np.random.default_rng(seed)
    H = np.array([[0.9, -0.2, 150.0], [0.15, 1.1, -60.0], [1e-4, -5e-5, 1.0]])
    points1 = rng.uniform(0, SIZE, (n, 2))
    points2 = transfer(H, points1) + noise_px * rng.standard_normal((n, 2))
    right = rng.random(n) < inlier_ratio
    points2[~right] = rng.uniform(0, SIZE, (int((~right).sum()), 2))
    ratios = np.where(right, rng.uniform(0.3, 0.9, n), rng.uniform(0.6, 1.0, n))
    return points1, points2, H, right, ratios


def corner_error(H, truth):
    corners = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]) * SIZE
    return np.linalg.norm(transfer(H, corners) - transfer(truth, corners), axis=1).mean()


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo", "lm-lo-u"])
@pytest.mark.parametrize("inlier_ratio", [0.9, 0.4])
def test_the_plane_is_found(method, inlier_ratio):
    points1, points2, H, right, ratios = planar_matches(inlier_ratio=inlier_ratio)
    options = Options(method=method, max_error_px=2.0)
    result = caransac.estimate_homography(points1, points2, scores=ratios, score_kind="ratio", options=options)
    assert result.success
    assert corner_error(result.H, H) < 1
    assert np.linalg.norm(result.H) == pytest.approx(1)
    assert np.all(homogeneous(points1[result.inliers]) @ result.H[2] > 0)
    assert (result.inliers == right).mean() > 0.97
    if method == "ca-ransac":
        assert result.probabilities[right].mean() > 0.8 > 0.2 > result.probabilities[~right].mean()
    else:
        assert result.probabilities is None


def test_swapping_the_images_inverts_the_homography():
    points1, points2, H, _, _ = planar_matches()
    result = caransac.estimate_homography(points2, points1, options=Options(max_error_px=2.0))
    assert corner_error(np.linalg.inv(result.H), H) < 1


@pytest.mark.parametrize("n", [0, 1, 3])
def test_too_few_points_have_no_homography(n):
    points = np.random.default_rng(0).uniform(0, 1000, (n, 2))
    result = caransac.estimate_homography(points, points)
    assert not result.success
    assert result.H is None
    assert result.stop_reason == "too_few_points"


def test_points_on_a_line_have_no_homography():
    x = np.linspace(0, 1000, 50)
    points = np.stack([x, 2 * x], axis=1)
    result = caransac.estimate_homography(points, points + 3)
    assert not result.success
    assert result.stop_reason == "degenerate"


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="points2"):
        caransac.estimate_homography(np.zeros((5, 2)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match="score_kind"):
        caransac.estimate_homography(np.zeros((5, 2)), np.zeros((5, 2)), scores=np.zeros(5))


def test_a_corner_at_infinity_gives_a_finite_confidence():
    """The horizon of the plane goes exactly through a corner of the matched region."""
    points1 = [[2.0, 0], [4, 2], [1, 4], [0, 1], [4, 4], [2, 0], [4, 1]]
    points2 = [[-1.0, 1], [-1, 0], [4, -7], [3, -2], [-0.5, -1], [-1, 0], [-1.25, 0.5]]
    problem = Homography.from_pixels(np.array(points1), np.array(points2))
    H = problem.from_public(np.array([[-2.0, 1, 2], [1, -2, 0], [1, 0, 0]]))
    assert np.isfinite(problem.outcomes(H[None])).all()
    result = caransac.estimate_homography(points1, points2, options=Options(rounds=1, samples_per_round=32))
    assert result.success
    assert 0 <= result.confidence < 0.5
