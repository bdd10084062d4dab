"""Lenses: derivatives, inverses, and poses from views of more than 180 degrees."""

import numpy as np
import pytest

import caransac
from caransac import Camera, Options
from caransac.geometry import pose_error_deg, rotation_from_vector
from caransac.geometry.lens import MAX_FISHEYE_ANGLE_DEG, Distortion, project, unproject

STRONG = Distortion(0.1, -0.05, 0.02, -0.01, 0.2, -0.1, 0.05, 0.01, -0.02, 0.03, -0.01)
FISHEYES = [
    Camera("FISHEYE", (320, 325, 640, 480), 1280, 960),
    Camera("RADIAL_FISHEYE", (320, 640, 480, 0.02, -0.005), 1280, 960),
    Camera("OPENCV_FISHEYE", (320, 325, 640, 480, 0.02, -0.005, 0.001, 0), 1280, 960),
    Camera("THIN_PRISM_FISHEYE", (320, 325, 640, 480, 0.02, -0.005, 1e-3, -1e-3, 0, 0, 2e-3, 1e-3), 1280, 960),
]


def test_derivatives_match_finite_differences(rng):
    points, step = rng.uniform(-0.7, 0.7, (50, 2)), 1e-6
    _, jacobian = STRONG.apply(points)
    for axis in range(2):
        shift = step * np.eye(2)[axis]
        numeric = (STRONG.apply(points + shift)[0] - STRONG.apply(points - shift)[0]) / (2 * step)
        np.testing.assert_allclose(jacobian[:, :, axis], numeric, atol=1e-8)


def test_displaced_points_come_back(rng):
    points = rng.uniform(-0.5, 0.5, (200, 2))
    np.testing.assert_allclose(STRONG.invert(STRONG.apply(points)[0]), points, atol=1e-9)


def test_rays_of_a_fisheye_end_at_the_largest_angle():
    angles = np.deg2rad([0, 1e-9, 30, MAX_FISHEYE_ANGLE_DEG - 0.01, MAX_FISHEYE_ANGLE_DEG + 0.01, 90, 180])
    points = angles[:, None] * [0.6, -0.8]
    rays = unproject(points, "FISHEYE")
    assert np.isnan(rays).all(axis=1).tolist() == [False] * 4 + [True] * 3
    np.testing.assert_allclose(np.linalg.norm(rays[:4], axis=1), np.tan(angles[:4]))
    np.testing.assert_allclose(project(rays[:4], "FISHEYE"), points[:4], rtol=1e-12)
    assert np.isnan(unproject(np.full((1, 2), np.nan), "FISHEYE")).all()


def views_all_around(camera, seed, count=500, outlier_ratio=0.4):
    """Create points up to 95 degrees off the axis of camera 1. Return pixels, mask of right ones, angles and pose."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(10 * count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    X = directions[directions[:, 2] > np.cos(np.deg2rad(95))][:count] * rng.uniform(3, 10, (count, 1))
    R, t = rotation_from_vector(rng.normal(0, 0.2, 3)), rng.normal(size=3)
    t /= np.linalg.norm(t)

    def project(X):
        across = np.linalg.norm(X[:, :2], axis=1, keepdims=True)
        angles = X[:, :2] / across * np.arctan2(across, X[:, 2:])
        pixels = camera.distortion.apply(angles)[0] * [camera.fx, camera.fy] + camera.K[:2, 2]
        return pixels + rng.normal(0, 0.3, pixels.shape)

    points1, points2 = project(X), project(X @ R.T + t)
    right = rng.random(count) > outlier_ratio
    points2[~right] = rng.uniform((0, 0), (1280, 960), (int((~right).sum()), 2))
    off_axis = np.rad2deg(np.arccos(X[:, 2] / np.linalg.norm(X, axis=1)))
    return points1, points2, right, off_axis, R, t


@pytest.mark.parametrize("camera", FISHEYES, ids=lambda camera: camera.model)
def test_poses_of_fisheye_views(camera):
    errors = []
    for seed in range(5):
        points1, points2, right, off_axis, R, t = views_all_around(camera, seed)
        found = caransac.estimate_relative_pose(points1, points2, camera, camera, options=Options(max_error_px=2.0))
        errors.append(pose_error_deg(found.R, found.t, R, t))
        outside = off_axis > MAX_FISHEYE_ANGLE_DEG + 1
        assert outside.sum() > 30
        assert not found.inliers[outside].any() and not found.probabilities[outside].any()
        assert found.inliers[right & (off_axis < 50)].mean() > 0.8
    assert np.median(errors) < 0.5 and max(errors) < 2


def test_a_pair_outside_the_field_of_view_fails_without_an_exception():
    pixels = 480 + np.random.default_rng(3).uniform(560, 600, (50, 2))
    unsized = Camera("FISHEYE", FISHEYES[0].params)
    found = caransac.estimate_relative_pose(pixels, pixels[::-1], unsized, unsized)
    assert not found.success and found.stop_reason == "too_few_points"
    assert found.inliers.shape == (50,) and not found.inliers.any()
