"""Poses from rays, including cameras that see in all directions."""

import numpy as np
import pytest

from caransac import (
    Options,
    RayPoseResult,
    estimate_relative_pose,
    estimate_relative_pose_from_rays,
    load_result,
)
from caransac.geometry import pose_error_deg, rotation_from_vector
from caransac.kernels import RAY_POSES, pack
from caransac.robust.problems import Spherical
from caransac.robust.problems.rays import project_rays, rays_at


def scene(seed, count=500, outlier_ratio=0.4, noise_deg=0.05, view_deg=180.0):
    """Create rays to points all around, some of them wrong. Return rays1, rays2, R, t, inliers."""
    rng = np.random.default_rng(seed)
    R = rotation_from_vector(rng.normal(0, 0.6 * view_deg / 180, 3))
    t = rng.normal(0, 1, 3)
    t /= np.linalg.norm(t)
    X = rng.normal(0, 1, (20 * count, 3))
    X *= rng.uniform(2, 8, (len(X), 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    rays = [P / np.linalg.norm(P, axis=1, keepdims=True) for P in (X, X @ R.T + t)]
    seen = np.all([each[:, 2] >= np.cos(np.radians(view_deg)) - 1e-12 for each in rays], axis=0)
    rays = [each[seen][:count] for each in rays]
    inliers = rng.random(len(rays[0])) >= outlier_ratio
    wrong = rng.normal(0, 1, (int((~inliers).sum()), 3))
    rays[1][~inliers] = wrong / np.linalg.norm(wrong, axis=1, keepdims=True)
    noisy = [each + rng.normal(0, np.radians(noise_deg), each.shape) for each in rays]
    return (*(each * rng.uniform(0.5, 2, (len(each), 1)) for each in noisy), R, t, inliers)


@pytest.mark.parametrize("view_deg", [60.0, 95.0, 180.0])
def test_poses_of_cameras_that_see_all_around(view_deg):
    for seed in range(5):
        rays1, rays2, R, t, inliers = scene(seed, view_deg=view_deg)
        result = estimate_relative_pose_from_rays(rays1, rays2)
        assert pose_error_deg(result.R, result.t, R, t) < 0.4
        assert (result.inliers & inliers).sum() > 0.95 * inliers.sum()
        assert (result.inliers & ~inliers).sum() < 0.15 * (~inliers).sum()
        assert 0.015 < result.noise_deg < 0.1
        np.testing.assert_allclose(np.linalg.norm(result.rays1, axis=1), 1)


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
def test_rays_have_no_confidence(method):
    """Rays have no assessment of degeneracy, cameras and lenses, so a confidence would be too high."""
    result = estimate_relative_pose_from_rays(*scene(0)[:2], options=Options(method=method))
    assert result.success and result.confidence is None


def test_results_of_rays_are_saved_and_read(tmp_path):
    rays1, rays2, *_ = scene(4)
    found = estimate_relative_pose_from_rays(rays1, rays2, options=Options(keep_trace=True))
    found.save(tmp_path / "rays.json")
    again = load_result(tmp_path / "rays.json")
    assert type(again) is RayPoseResult
    for name in ("R", "t", "E", "rays1", "rays2", "inliers", "probabilities"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert (again.max_error_deg, again.noise_deg) == (found.max_error_deg, found.noise_deg)
    assert not hasattr(again, "max_error_px")


def test_a_stated_angle_and_classical_methods():
    rays1, rays2, R, t, _ = scene(1)
    result = estimate_relative_pose_from_rays(rays1, rays2, max_error_deg=0.2)
    assert pose_error_deg(result.R, result.t, R, t) < 0.4
    assert result.max_error_deg == pytest.approx(0.2)
    result = estimate_relative_pose_from_rays(rays1, rays2, options=Options(method="lm-lo"))
    assert pose_error_deg(result.R, result.t, R, t) < 0.4


def test_rotated_rays_give_a_rotated_pose():
    """No direction is special: if the rays are rotated, the pose is rotated, too."""
    rays1, rays2, *_ = scene(2, outlier_ratio=0.2)
    Q = rotation_from_vector(np.array([2.0, 0.7, -1.0]))
    plain = estimate_relative_pose_from_rays(rays1, rays2)
    turned = estimate_relative_pose_from_rays(rays1 @ Q.T, rays2 @ Q.T)
    assert pose_error_deg(turned.R, turned.t, Q @ plain.R @ Q.T, Q @ plain.t) < 0.2


def test_rays_of_a_pinhole_give_its_pose():
    rays1, rays2, R, t, _ = scene(3, view_deg=40.0)
    result = estimate_relative_pose_from_rays(rays1, rays2)
    K = np.diag([500.0, 500.0, 1.0])
    pixels = (rays[:, :2] / rays[:, 2:] * 500 for rays in (rays1, rays2))  # wrong matches behind the camera stay wrong
    pinhole = estimate_relative_pose(*pixels, K, K)
    assert pose_error_deg(result.R, result.t, R, t) < 1
    assert pose_error_deg(result.R, result.t, pinhole.R, pinhole.t) < 1


def test_a_grid_of_longitudes_and_latitudes_has_rays_with_zeros(rng):
    """Such samples contain zeros on all three axes, so every axis is perpendicular to one of their rays."""
    degrees = np.meshgrid(np.arange(0, 360, 10), np.arange(-80, 90, 10))
    longitude, latitude = np.radians(degrees).reshape(2, -1)
    rays1 = np.stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)], axis=1
    )
    rays1[np.abs(rays1) < 1e-12] = 0.0
    R, t = rotation_from_vector(np.array([0.0, 0.0, 0.3])), np.array([0.0, 0.6, 0.8])
    rays2 = rays1 * rng.uniform(2, 6, (len(rays1), 1)) @ R.T + t
    zeros = np.flatnonzero((rays1 == 0).any(axis=1))
    samples = np.stack([rng.choice(zeros, 5, replace=False) for _ in range(50)]).astype(np.int32)
    assert np.all((rays1[samples] == 0).any(axis=1), axis=1).mean() > 0.1
    poses = Spherical.from_rays(rays1, rays2 / np.linalg.norm(rays2, axis=1, keepdims=True)).solve(samples)
    right = [pose_error_deg(pose[:, :3], pose[:, 3], R, t) < 1e-3 for pose in poses]
    assert np.count_nonzero(right) >= 0.95 * len(samples)
    found = estimate_relative_pose_from_rays(rays1, rays2)
    assert pose_error_deg(found.R, found.t, R, t) < 1e-3


def test_projections_are_inverted(rng):
    rays = rng.normal(0, 1, (1000, 3))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    np.testing.assert_allclose(rays_at(project_rays(rays)), rays, atol=1e-9)
    assert np.isfinite(project_rays(np.array([[0.0, 0, -1], [0, 0, 1]]))).all()


def test_jacobians_are_the_slopes_of_the_residuals():
    rays1, rays2, R, t, _ = scene(4, count=50, outlier_ratio=0.5)
    problem = Spherical.from_rays(*(each / np.linalg.norm(each, axis=1, keepdims=True) for each in (rays1, rays2)))
    model = np.concatenate([R, t[:, None]], axis=1)
    residuals, slopes = problem.model_kernels.jacobian(model, problem.correspondences)
    np.testing.assert_allclose(
        residuals**2, RAY_POSES.residuals_sq(model[None], problem.correspondences)[0], atol=1e-14
    )
    for k in range(5):
        step = np.eye(5)[k] * 1e-6
        ahead, behind = (
            problem.model_kernels.jacobian(problem.model_kernels.retract(model, s), problem.correspondences)[0]
            for s in (step, -step)
        )
        np.testing.assert_allclose((ahead - behind) / 2e-6, slopes[:, k], atol=1e-5, rtol=1e-4)
    weights = np.random.default_rng(0).random(problem.num_points)
    expected = slopes.T @ (weights[:, None] * slopes)
    np.testing.assert_allclose(RAY_POSES.information(model, problem.correspondences, weights), expected, rtol=1e-9)


def test_residuals_are_angles_to_epipolar_planes():
    rays1, rays2, R, t, _ = scene(5, count=50, outlier_ratio=0.0, noise_deg=0.01)
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (rays1, rays2)]
    model = np.concatenate([R, t[:, None]], axis=1)[None]
    points = pack(*map(project_rays, units))
    found = np.sqrt(RAY_POSES.residuals_sq(model, points)[0])
    normals = np.cross(t, units[0] @ R.T)
    angles = np.abs(np.arcsin(np.sum(units[1] * normals, axis=1) / np.linalg.norm(normals, axis=1)))
    # Correcting both rays needs an angle of the size of the noise; correcting only one needs as much or more.
    assert np.all(found <= angles * (1 + 1e-3))
    assert np.all(found >= 0.1 * angles)


@pytest.mark.parametrize(
    ("rays1", "rays2", "named", "message"),
    [
        (np.zeros((9, 2)), np.ones((9, 3)), {}, "rays1 must have shape"),
        (np.ones((9, 3)), np.zeros((9, 3)), {}, "rays2 must not have directions of length zero"),
        (np.full((9, 3), np.nan), np.ones((9, 3)), {}, "rays1 must not contain NaN"),
        (np.ones((9, 3)), np.ones((8, 3)), {}, "same length"),
        (np.ones((9, 3)), np.ones((9, 3)), {"max_error_deg": -1.0}, "max_error_deg"),
        (np.ones((9, 3)), np.ones((9, 3)), {"options": Options(max_error_px=1.0)}, "give max_error_deg"),
        (np.ones((9, 3)), np.ones((9, 3)), {"scores": np.ones(9)}, "score_kind"),
    ],
)
def test_mistakes_are_named(rays1, rays2, named, message):
    with pytest.raises(ValueError, match=message):
        estimate_relative_pose_from_rays(rays1, rays2, **named)


@pytest.mark.parametrize("count", [0, 4, 5, 30])
def test_hopeless_data_is_a_failure(count):
    rays = np.tile([1.0, 2.0, -3.0], (count, 1))
    result = estimate_relative_pose_from_rays(rays, rays)
    assert not result.success
    assert result.R is None
