"""Poses from essential matrices and back."""

import numpy as np
import pytest
from scenes import contaminated_scene, essentials, random_problems

from caransac import geometry, kernels

pytestmark = pytest.mark.kernels


def test_the_true_pose_comes_back(rng):
    x1, x2, R, t = random_problems(rng, 500, 6)
    for sign in (1, -1):
        rotations, translations, index = kernels.pose_from_essential(sign * essentials(R, t), x1, x2)
        assert np.array_equal(index, np.arange(500))
        assert np.allclose(rotations, R, atol=1e-9)
        assert np.allclose(translations, t, atol=1e-9)


def test_a_point_behind_a_camera_refuses_the_pose(rng):
    x1, x2, R, t = random_problems(rng, 50, 5)
    x2[7, 3] = -10 * x2[7, 3]  # on the far side of the image: the triangulated depth changes sign
    in_front = np.array([np.all(geometry.depths(R[i], t[i], x1[i], x2[i]) > 0) for i in range(50)])
    _, _, index = kernels.pose_from_essential(essentials(R, t), x1, x2)
    assert np.array_equal(index, np.flatnonzero(in_front))


def test_what_is_no_essential_matrix_has_no_pose(rng):
    x1, x2, _, _ = random_problems(rng, 2, 5)
    _, _, index = kernels.pose_from_essential(np.stack([np.zeros((3, 3)), np.full((3, 3), np.nan)]), x1, x2)
    assert len(index) == 0
    x1, x2, R, t = random_problems(rng, 200, 5)
    U, _, Vt = np.linalg.svd(essentials(R, t))
    _, _, index = kernels.pose_from_essential(U @ np.diag([1, 0.1, 0]) @ Vt, x1, x2)
    assert len(index) == 0
    with pytest.raises(ValueError, match="at least one point"):
        kernels.pose_from_essential(essentials(R, t), x1[:, :0], x2[:, :0])


@pytest.mark.parametrize("count", [0, 1, 64, 150])
def test_poses_of_samples_are_those_of_their_essential_matrices(rng, count):
    x1, x2, _, _, _ = contaminated_scene(rng, 100)
    samples = kernels.sample_uniform(np.arange(100), 5, count, seed=0)
    models, sample = kernels.five_point(x1[samples], x2[samples])
    members = samples[sample]
    expected_R, expected_t, index = kernels.pose_from_essential(models, x1[members], x2[members])
    rotations, translations, origin = kernels.five_point_poses(x1, x2, samples)
    assert np.array_equal(origin, sample[index])
    assert np.allclose(rotations, expected_R, atol=1e-9)
    assert np.allclose(translations, expected_t, atol=1e-9)


def test_samples_of_no_points_are_refused():
    points = np.zeros((6, 2))
    for member in (-1, 6):
        with pytest.raises(ValueError, match="indices of points"):
            kernels.five_point_poses(points, points, [[0, 1, 2, 3, member]])
    with pytest.raises(ValueError, match="same length"):
        kernels.five_point_poses(points, points[1:], [[0, 1, 2, 3, 4]])
    with pytest.raises(TypeError):
        kernels.five_point_poses(points, points, [[0, 1, 2, 3]])


def test_positive_depths_match_triangulation(rng):
    x1, x2, R, t = random_problems(rng, 1, 40)
    x2[0, :20] = rng.uniform(-3, 3, (20, 2))
    expected = np.all(geometry.depths(R[0], t[0], x1[0], x2[0]) > 0, axis=1)
    assert 0 < expected.sum() < 40
    assert np.array_equal(kernels.positive_depths(R, t, x1[0], x2[0])[0] > 0, expected)


def test_matrices_from_poses(rng):
    x1, x2, R, t = random_problems(rng, 20, 30)
    assert np.allclose(kernels.essential_from_pose(R, t), geometry.essential_from_pose(R, t))
    K1 = np.array([[900, 0, 500], [0, 880, 400], [0, 0, 1.0]])
    K2 = np.array([[700, 0, 320], [0, 710, 240], [0, 0, 1.0]])
    F = kernels.fundamental_from_pose(R, t, K1, K2)
    for i in range(20):
        expected = geometry.fundamental_from_essential(essentials(R, t)[i], K1, K2)
        assert np.allclose(F[i], expected, atol=1e-12)
        pixels1, pixels2 = geometry.homogeneous(x1[i]) @ K1.T, geometry.homogeneous(x2[i]) @ K2.T
        assert geometry.sampson_sq(F[i], pixels1[:, :2], pixels2[:, :2]).max() < 1e-16
