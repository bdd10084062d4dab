"""Planes and rotations are told from scenes with depth, and a plane's second pose is found."""

import numpy as np
import pytest

import caransac
from caransac import Options
from caransac.geometry import cross_matrix, homogeneous, pose_error_deg, rotation_from_vector
from caransac.robust.degeneracy import poses_from_homography
from caransac.synthetic.hard_scenes import make_hard_pair

AUTO = Options(max_error_px="auto")


def estimate(kind, seed, outlier_ratio, options=AUTO):
    pair = make_hard_pair(kind, np.random.default_rng(seed), outlier_ratio)
    return pair, caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera, pair.camera, options=options)


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
@pytest.mark.parametrize("outlier_ratio", [0.0, 0.4])
@pytest.mark.parametrize(("kind", "expected"), [("depth", None), ("plane", "planar"), ("rotation", "rotation")])
def test_scenes_are_told_apart(kind, expected, outlier_ratio, method):
    found = [estimate(kind, seed, outlier_ratio, Options(max_error_px="auto", method=method))[1] for seed in range(8)]
    assert sum(result.degeneracy == expected for result in found) >= 7


def test_one_of_the_poses_of_a_plane_is_right():
    ambiguous = 0
    for seed in range(20):
        pair, result = estimate("plane", seed, 0.3)
        poses = [(result.R, result.t), *result.alternatives]
        ambiguous += len(poses) > 1
        assert min(pose_error_deg(*pose, pair.R, pair.t) for pose in poses) < 5, seed
        for R, t in poses:
            assert np.allclose(R @ R.T, np.eye(3), atol=1e-9)
            assert np.linalg.norm(t) == pytest.approx(1)
    assert ambiguous > 0


def test_scenes_with_depth_have_no_alternatives():
    assert all(estimate("depth", seed, 0.3)[1].alternatives == () for seed in range(10))


@pytest.mark.parametrize("kind", ["plane", "rotation"])
def test_a_homography_leaves_the_fundamental_matrix_undetermined(kind):
    pair = make_hard_pair(kind, np.random.default_rng(3), 0.3)
    result = caransac.estimate_fundamental(pair.points1, pair.points2, options=AUTO)
    assert result.degeneracy == "planar"
    assert result.confidence < 0.5


def test_a_failure_has_no_degeneracy():
    result = caransac.estimate_relative_pose(np.zeros((3, 2)), np.zeros((3, 2)), np.eye(3), np.eye(3))
    assert not result.success
    assert result.degeneracy is None
    assert result.alternatives == ()


def test_the_poses_of_a_homography_are_those_it_was_made_of(rng):
    for _ in range(100):
        R, t = rotation_from_vector(0.3 * rng.normal(size=3)), 0.4 * rng.normal(size=3)
        normal = np.array([*(0.4 * rng.normal(size=2)), 1.0])
        H = (R + np.outer(t, normal)) * rng.choice([-2.0, 0.5])
        rays = rng.uniform(-0.4, 0.4, (20, 2))
        if np.any(homogeneous(rays) @ normal < 0.1) or np.linalg.det(R + np.outer(t, normal)) < 0.05:
            continue
        poses = poses_from_homography(H, rays)
        direction = t / np.linalg.norm(t)
        assert min(np.abs(pose - np.c_[R, direction]).max() for pose in poses) < 1e-6
        # Each of them maps the plane as the homography does: the essential matrix vanishes on its pairs.
        moved = homogeneous(rays) @ H.T
        for pose in poses:
            E = cross_matrix(pose[:, 3]) @ pose[:, :3]
            assert np.abs(np.einsum("ni,ij,nj->n", moved, E, homogeneous(rays))).max() < 1e-9


def test_a_rotation_has_no_poses_to_choose_from():
    R = rotation_from_vector(np.array([0.1, 0.2, 0.0]))
    assert poses_from_homography(R, np.zeros((4, 2))) == []
