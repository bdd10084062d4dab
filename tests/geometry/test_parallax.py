"""The parallax of matches with known depth."""

import numpy as np
import pytest

from caransac.camera import Camera
from caransac.geometry import homogeneous, rotation_from_vector
from caransac.geometry.parallax import median_parallax_px

CAMERA = Camera("SIMPLE_PINHOLE", (800, 511.5, 383.5), 1024, 768)


@pytest.mark.parametrize("baseline", [0.0, 0.1, 0.4])
def test_a_sideways_move_shifts_points_by_focal_length_over_depth(baseline):
    R, depth = rotation_from_vector([0.02, -0.1, 0.05]), 4.0
    rays = np.random.default_rng(0).uniform(-0.3, 0.3, (50, 2))
    turned = homogeneous(rays) @ R.T
    seen = depth * turned / turned[:, 2:] + (baseline, 0, 0)  # all points at one depth of camera 2
    points1, points2 = CAMERA.rays_to_pixels(rays), CAMERA.rays_to_pixels(seen[:, :2] / seen[:, 2:])
    found = median_parallax_px(R, points1, points2, CAMERA, CAMERA)
    assert found == pytest.approx(800 * baseline / depth, abs=1e-6)


def test_without_a_point_in_front_there_is_none():
    behind = rotation_from_vector([0, np.pi, 0])
    assert median_parallax_px(behind, np.full((3, 2), 400.0), np.full((3, 2), 400.0), CAMERA, CAMERA) is None
    assert median_parallax_px(np.eye(3), np.empty((0, 2)), np.empty((0, 2)), CAMERA, CAMERA) is None
