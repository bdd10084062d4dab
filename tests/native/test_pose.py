"""Poses from essential matrices."""

import numpy as np
import pytest
from scenes import contaminated_scene, random_problems, solve

from caransac import geometry, kernels
from caransac.geometry import join_pose, split_pose

pytestmark = pytest.mark.kernels


def test_the_true_pose_is_among_the_poses_of_its_sample(rng):
    x1, x2, R, t = random_problems(rng, 500, 5)
    poses, sample = solve(kernels.five_point_poses, x1, x2)
    best = np.full(500, np.inf)
    np.minimum.at(best, sample, np.abs(poses - join_pose(R, t)[sample]).max(axis=(1, 2)))
    assert np.mean(best < 1e-6) >= 0.995


@pytest.mark.parametrize("count", [0, 1, 64, 150])
def test_poses_come_from_essential_matrices_with_their_sample_in_front(rng, count):
    x1, x2, _, _, _ = contaminated_scene(rng, 100)
    samples = kernels.sample_uniform(np.arange(100, dtype=np.int32), 5, count, seed=0)
    points = kernels.pack(x1, x2)
    expected, expected_sample = [], []
    for E, sample in zip(*kernels.five_point(points, samples), strict=True):
        members = samples[sample]
        for R, t in zip(*geometry.poses_from_essential(E), strict=True):
            if np.all(geometry.depths(R, t, x1[members], x2[members]) > 0):
                expected.append(join_pose(R, t))
                expected_sample.append(sample)
    poses, sample = kernels.five_point_poses(points, samples)
    assert np.array_equal(sample, expected_sample)
    assert np.allclose(poses, np.reshape(expected, (-1, 3, 4)), atol=1e-6)
    rotations, translations = split_pose(poses)
    assert np.allclose(rotations @ rotations.swapaxes(1, 2), np.eye(3), atol=1e-12)
    assert np.allclose(np.linalg.norm(translations, axis=1), 1)


def test_positive_depths_match_triangulation(rng):
    x1, x2, R, t = random_problems(rng, 1, 40)
    x2[0, :20] = rng.uniform(-3, 3, (20, 2))
    expected = np.all(geometry.depths(R[0], t[0], x1[0], x2[0]) > 0, axis=1)
    assert 0 < expected.sum() < 40
    in_front = kernels.positive_depths(join_pose(R, t), kernels.pack(x1[0], x2[0]))
    assert np.array_equal(in_front[0] > 0, expected)
