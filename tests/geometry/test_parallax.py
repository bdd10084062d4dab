"""The parallax of matches with known depth."""

import numpy as np
import pytest

from caransac.camera import Camera
from caransac.geometry import homogeneous, rotation_from_vector
from caransac.geometry.parallax import median_parallax_px

CAMERA = Camera("SIMPLE_PINHOLE", (800, 511.5, 383.5), 1024, 768)


@pytest.mark.parametrize("baseline", [0.0, 0.1, 0.4])
def test_a_sideways_move_shifts_near_points_more_than_far_ones(baseline):
    R = rotation_from_vector([0.02, -0.1, 0.05])
    rng = np.random.default_rng(0)
    rays = rng.uniform(-0.3, 0.3, (400, 2))
    turned = homogeneous(rays) @ R.T
    near = rng.random((400, 1)) < 0.7
    seen = np.where(near, 4.0, 1e6) * turned / turned[:, 2:] + (baseline, 0, 0)
    points1, points2 = CAMERA.rays_to_pixels(rays), CAMERA.rays_to_pixels(seen[:, :2] / seen[:, 2:])
    for start in (R, R @ rotation_from_vector([0, 0.05, 0])):  # the rotation of the pose must not matter
        found = median_parallax_px(start, points1, points2, CAMERA, CAMERA)
        assert found < 0.3 * 800 * baseline / 4 + 1e-3  # the best rotation follows the near points
    far = np.flatnonzero(~near[:, 0])[:100]
    # With half of the points near and half far, the best rotation is between both.
    half = np.concatenate([far, np.flatnonzero(near[:, 0])[:100]])
    found = median_parallax_px(R, points1[half], points2[half], CAMERA, CAMERA)
    assert found <= 800 * baseline / 4 + 1e-3
    assert found >= 0.2 * 800 * baseline / 4 - 1e-3


@pytest.mark.parametrize("angle", [0.0, 0.02, 0.5])
def test_a_pure_rotation_has_no_parallax_for_any_pose(angle):
    R = rotation_from_vector([0.1, angle, -0.05])
    rays = np.random.default_rng(1).uniform(-0.3, 0.3, (100, 2))
    turned = homogeneous(rays) @ R.T
    points1, points2 = CAMERA.rays_to_pixels(rays), CAMERA.rays_to_pixels(turned[:, :2] / turned[:, 2:])
    wrong = R @ rotation_from_vector([0.1, -0.2, 0.03])
    assert median_parallax_px(wrong, points1, points2, CAMERA, CAMERA) < 1e-6


def test_without_a_point_in_front_there_is_no_parallax():
    behind = rotation_from_vector([0, np.pi, 0])
    assert median_parallax_px(behind, np.full((2, 2), 400.0), np.full((2, 2), 400.0), CAMERA, CAMERA) is None
    assert median_parallax_px(np.eye(3), np.empty((0, 2)), np.empty((0, 2)), CAMERA, CAMERA) is None
