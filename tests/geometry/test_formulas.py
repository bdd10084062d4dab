"""The numpy formulas: against definitions and other libraries."""

import cv2
import numpy as np
import pycolmap
import pytest
from scenes import random_poses, random_problems

from caransac import geometry


def test_cross_matrix_is_the_cross_product(rng):
    a, b = rng.normal(size=(2, 10, 3))
    assert np.allclose(np.einsum("nij,nj->ni", geometry.cross_matrix(a), b), np.cross(a, b))


def test_relative_pose_matches_colmap(rng):
    (R1, R2), (t1, t2) = random_poses(rng, 2, max_angle=3)
    first, second = (pycolmap.Rigid3d(pycolmap.Rotation3d(R), 2 * t) for R, t in ((R1, t1), (R2, t2)))
    expected = (second * first.inverse()).matrix()
    R, t = geometry.relative_pose(R1, 2 * t1, R2, 2 * t2[:, None])
    assert np.allclose(R, expected[:, :3])
    assert np.allclose(t, expected[:, 3] / np.linalg.norm(expected[:, 3]))


def test_sampson_distance_is_the_distance_to_the_manifold_to_first_order(rng):
    x1, x2, R, t = (array[0] for array in random_problems(rng, 1, 50))
    E = geometry.essential_from_pose(R, t)
    shifted1, shifted2 = x1 + rng.normal(size=x1.shape) * 1e-5, x2 + rng.normal(size=x2.shape) * 1e-5
    F = geometry.fundamental_from_essential(E, np.eye(3), np.eye(3))
    corrected1, corrected2 = cv2.correctMatches(F, shifted1[None], shifted2[None])
    nearest_sq = np.sum((corrected1[0] - shifted1) ** 2 + (corrected2[0] - shifted2) ** 2, axis=1)
    assert np.allclose(np.sqrt(geometry.sampson_sq(E, shifted1, shifted2)), np.sqrt(nearest_sq), atol=1e-7)


def test_rotation_from_vector_matches_opencv(rng):
    for vector in [*rng.normal(size=(20, 3)), np.zeros(3), np.array([np.pi, 0, 0])]:
        assert np.allclose(geometry.rotation_from_vector(vector), cv2.Rodrigues(vector)[0])


def test_quaternions_become_rotations(rng):
    for vector in [*rng.normal(size=(20, 3)), [np.pi, 0, 0], [0, 0, 0]]:
        R = geometry.rotation_from_vector(vector)
        for scale in (1.0, -3.0):
            found = geometry.rotation_from_quaternion(scale * geometry.quaternion_from_rotation(R))
            np.testing.assert_allclose(found, R, atol=1e-12)


def test_quaternions_match_colmap(rng):
    half_turns = [np.diag([1, -1, -1]), np.diag([-1, 1, -1]), np.diag([-1, -1, 1])]
    for R in [*random_poses(rng, 50, max_angle=np.pi)[0], np.eye(3), *half_turns]:
        x, y, z, w = pycolmap.Rotation3d(np.asarray(R, float)).quat
        expected = np.array([w, x, y, z]) * (-1 if w < 0 else 1)
        found = geometry.quaternion_from_rotation(R)
        assert found[0] >= 0
        assert np.allclose(found, expected) or (w == 0 and np.allclose(found, -expected))


@pytest.mark.parametrize("angle_deg", [0.0, 1e-7, 0.5, 90.0, 179.9999, 180.0])
def test_angles_are_accurate_everywhere(rng, angle_deg):
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    R = geometry.rotation_from_vector(np.radians(angle_deg) * axis)
    assert geometry.rotation_angle_deg(R) == pytest.approx(angle_deg, abs=1e-6)
    across = np.cross(axis, [1.0, 0, 0])
    assert geometry.angle_between_deg(across, R @ across) == pytest.approx(angle_deg, abs=1e-6)


def test_the_pose_error_is_the_larger_error_and_depends_on_the_sign(rng):
    (R,), (t,) = random_poses(rng, 1)
    assert geometry.pose_error_deg(R, t, R, t) == pytest.approx(0, abs=1e-6)
    assert geometry.pose_error_deg(R, -t, R, t) == pytest.approx(180)
    turned = geometry.rotation_from_vector(np.radians([0, 0, 3.0])) @ R
    assert geometry.pose_error_deg(turned, t, R, t) == pytest.approx(3)


def test_msac_scores_run_from_one_to_zero():
    assert geometry.msac_scores([0, 1, 4, 9], 2.0).tolist() == [1, 0.75, 0, 0]


def test_essential_and_fundamental_matrices_become_each_other(rng):
    (R,), (t,) = random_poses(rng, 1)
    K1, K2 = (
        np.array([[500.0, 0, 320], [0, 510, 240], [0, 0, 1]]),
        np.array([[800.0, 0, 500], [0, 790, 400], [0, 0, 1]]),
    )
    E = geometry.essential_from_pose(R, t)
    F = geometry.fundamental_from_essential(E, K1, K2)
    assert np.allclose(geometry.essential_from_fundamental(F, K1, K2), E)


def test_one_of_the_four_poses_of_an_essential_matrix_is_the_pose(rng):
    for R, t in zip(*random_poses(rng, 20), strict=True):
        rotations, translations = geometry.poses_from_essential(-3 * geometry.essential_from_pose(R, t))
        assert np.allclose(np.linalg.det(rotations), 1)
        errors = [geometry.pose_error_deg(*pose, R, t) for pose in zip(rotations, translations, strict=True)]
        assert sorted(errors)[0] < 1e-5
        assert sorted(errors)[1] > 1


def test_the_mean_of_poses_is_a_pose_between_them(rng):
    R, t, turn = geometry.rotation_from_vector(rng.normal(size=3)), np.array([0.6, 0.0, 0.8]), 0.05 * rng.normal(size=3)
    turned = [geometry.rotation_from_vector(sign * turn) @ R for sign in (1, -1)]
    moved = [geometry.rotation_from_vector(sign * turn) @ t for sign in (1, -1)]
    poses = np.stack([geometry.join_pose(*pose) for pose in zip(turned, moved, strict=True)])
    np.testing.assert_allclose(geometry.mean_pose(poses, np.ones(2))[:, :3], R, atol=1e-12)
    middle = geometry.mean_pose(poses, np.array([3.0, 1.0]))
    np.testing.assert_allclose(middle[:, :3] @ middle[:, :3].T, np.eye(3), atol=1e-12)
    assert np.linalg.norm(middle[:, 3]) == pytest.approx(1)
    away = [geometry.rotation_angle_deg(middle[:, :3] @ each.T) for each in turned]
    assert away[1] / away[0] == pytest.approx(3, rel=0.01)
    np.testing.assert_allclose(geometry.mean_pose(poses, np.array([0.0, 1.0])), poses[1], atol=1e-12)


@pytest.mark.parametrize("rank", [0, 2, 6])
def test_symmetric_inverse_is_the_pseudo_inverse(rng, rank):
    factor = rng.normal(size=(6, rank)) * np.logspace(0, 3, rank)
    matrix = factor @ factor.T
    np.testing.assert_allclose(
        geometry.symmetric_inverse(matrix), np.linalg.pinv(matrix, hermitian=True), rtol=1e-6, atol=1e-9
    )
