"""The conventions of docs/conventions.md, each tested on a scene that can be checked by hand."""

import numpy as np

from caransac import Options, estimate_fundamental, estimate_relative_pose
from caransac.geometry import homogeneous

K = np.array([[500, 0, 320], [0, 500, 240], [0, 0, 1.0]])


def views(rng, R, t, n=60):
    """Create pixels of n points in two cameras with x2 = R x1 + t."""
    X = np.c_[rng.uniform(-2, 2, (n, 2)), rng.uniform(4, 8, n)]
    Y = X @ R.T + t
    return (X @ K.T)[:, :2] / X[:, 2:], (Y @ K.T)[:, :2] / Y[:, 2:]


def test_a_camera_that_moves_right_sees_the_scene_move_left(rng):
    points1, points2 = views(rng, np.eye(3), np.array([-1.0, 0, 0]))  # camera 2 is one unit to the right
    assert np.all(points2[:, 0] < points1[:, 0])
    result = estimate_relative_pose(points1, points2, K, K)
    assert np.allclose(result.R, np.eye(3), atol=1e-6)
    assert np.allclose(result.t, [-1, 0, 0], atol=1e-6)


def test_essential_and_fundamental_matrices_take_image_1_on_the_right(rng):
    angle = 0.3
    R = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    t = np.array([-0.8, 0.1, 0.2])
    points1, points2 = views(rng, R, t)
    E = estimate_relative_pose(points1, points2, K, K).E
    F = estimate_fundamental(points1, points2, options=Options(early_stop=False)).F
    rays1, rays2 = (homogeneous(points) @ np.linalg.inv(K).T for points in (points1, points2))
    assert np.abs(np.sum(rays2 * (rays1 @ E.T), axis=1)).max() < 1e-8
    lines = homogeneous(points1) @ F.T
    distances_px = np.abs(np.sum(homogeneous(points2) * lines, axis=1)) / np.linalg.norm(lines[:, :2], axis=1)
    assert distances_px.max() < 1e-3  # not exact, because of the prior about the cameras
    assert np.abs(np.sum(rays1 * (rays2 @ E.T), axis=1)).max() > 1e-2, "the opposite order does not fit"
