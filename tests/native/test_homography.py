"""Homographies: solved, scored, ranked and refined; against truth, numpy and finite differences."""

import numpy as np
import pytest
from scenes import distance_up_to_sign, solve

from caransac import kernels
from caransac.geometry import homogeneous
from caransac.kernels import HOMOGRAPHIES, Loss, RefineOptions


def transfer(H, points):
    moved = homogeneous(points) @ H.T
    return moved[:, :2] / moved[:, 2:]


def random_homographies(rng, count):
    """Create homographies of norm one that keep the square [-1, 1]^2 in front of the camera."""
    H = np.eye(3) + rng.uniform(-0.4, 0.4, (count, 3, 3)) * [[1, 1, 1], [1, 1, 1], [0.5, 0.5, 0]]
    return H / np.linalg.norm(H, axis=(1, 2), keepdims=True)


def plane(rng, n=200, noise=1e-3, outliers=0):
    H = random_homographies(rng, 1)[0]
    x1 = rng.uniform(-1, 1, (n, 2))
    x2 = transfer(H, x1) + noise * rng.standard_normal((n, 2))
    x2[:outliers] = rng.uniform(-1, 1, (outliers, 2))
    return H, kernels.pack(x1 + noise * rng.standard_normal((n, 2)), x2)


def transfer_errors_sq(H, points):
    """Return half the sum of both squared transfer errors; infinite for points behind the camera."""
    ahead, back = transfer(H, points.points1) - points.points2, transfer(np.linalg.inv(H), points.points2)
    error = 0.5 * np.sum(ahead**2 + (back - points.points1) ** 2, axis=1)
    front = homogeneous(points.points1) @ H[2] > 0
    return np.where(front, error, np.inf)


def test_four_points_give_the_true_homography(rng):
    count = 2000
    H = random_homographies(rng, count)
    x1 = rng.uniform(-1, 1, (count, 4, 2))
    x2 = np.stack([transfer(h, x) for h, x in zip(H, x1, strict=True)])
    models, sample = solve(kernels.four_point, x1, x2)
    error = distance_up_to_sign(models, H[sample])
    assert len(models) > 0.99 * count
    assert np.mean(error < 1e-6) > 0.995
    assert np.allclose(np.linalg.norm(models, axis=(1, 2)), 1)


@pytest.mark.parametrize(
    "sample",
    [
        [[0, 0], [1, 0], [2, 0], [0, 1]],  # three points on a line
        [[0, 0], [0, 0], [1, 0], [0, 1]],  # one point twice
    ],
)
def test_degenerate_samples_give_no_homography(sample):
    x1 = np.array([sample], float)
    models, _ = solve(kernels.four_point, x1, x1 + 0.1)
    assert len(models) == 0


def test_a_sample_with_an_impossible_orientation_has_no_homography():
    square = np.array([[[0.0, 0], [1, 0], [1, 1], [0, 1]]])
    crossed = square[:, [0, 1, 3, 2]]  # a quadrilateral that crosses itself
    assert len(solve(kernels.four_point, square, crossed)[0]) == 0
    mirrored = square * [-1, 1]
    assert len(solve(kernels.four_point, square, mirrored)[0]) == 0  # no camera sees a plane in a mirror


def test_residuals_and_scores_match_their_definition(rng):
    _, points = plane(rng, outliers=60)
    for H in random_homographies(rng, 20):
        expected = transfer_errors_sq(H, points)
        residuals = HOMOGRAPHIES.residuals_sq(H[None], points)[0]
        assert np.allclose(residuals, expected, rtol=1e-9)
        scores = HOMOGRAPHIES.msac_scores(H[None], points, 0.5)[0]
        assert np.allclose(scores, 1 - np.minimum(expected, 0.25) / 0.25, atol=1e-5)


def test_the_largest_consensus_comes_first(rng):
    H, points = plane(rng, outliers=100)
    models = np.concatenate([random_homographies(rng, 50), H[None]])
    totals = HOMOGRAPHIES.msac_scores(models, points, 0.05).sum(axis=1)
    best = HOMOGRAPHIES.top(models, points, 0.05, 5)
    assert best[0] == 50
    assert np.allclose(totals[best], np.sort(totals)[::-1][:5], rtol=1e-4)


def test_refinement_finds_the_least_squares_homography(rng):
    H, points = plane(rng, n=500, noise=1e-3)
    start = H + 1e-2 * rng.standard_normal((3, 3))
    refined, costs = HOMOGRAPHIES.refine(start[None], points, RefineOptions(loss=Loss.CAUCHY, loss_scale=1.0))
    assert costs[0, 1] < costs[0, 0]
    corners = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
    assert np.abs(transfer(refined[0], corners) - transfer(H, corners)).max() < 1e-3
    # No small step lowers the cost: it is a minimum.
    least = HOMOGRAPHIES.residuals_sq(refined, points).sum()
    for axis in np.eye(8):
        for step in (1e-4, -1e-4):
            moved = HOMOGRAPHIES.retract(refined[0], step * axis)
            assert HOMOGRAPHIES.residuals_sq(moved[None], points).sum() > least


def test_information_is_the_curvature_of_the_cost(rng):
    H, points = plane(rng, noise=0.0)
    information = HOMOGRAPHIES.information(H, points, np.ones(len(points)))

    def cost(delta):
        return HOMOGRAPHIES.residuals_sq(HOMOGRAPHIES.retract(H, delta)[None], points).sum()

    step = 1e-4
    for i, a in enumerate(np.eye(8)):
        for j, b in enumerate(np.eye(8)):
            second = sum(s * t * cost(step * (s * a + t * b)) for s in (1, -1) for t in (1, -1)) / (4 * step**2)
            assert information[i, j] == pytest.approx(second / 2, rel=1e-3, abs=1e-4 * np.trace(information))


def test_the_transfer_error_has_no_signed_derivative():
    assert not hasattr(HOMOGRAPHIES, "jacobian")
