"""Planes and rotations are distinguished from scenes with depth, and the second pose of a plane is found."""

import numpy as np
import pytest

import caransac
from caransac import Options
from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair, make_plane
from caransac_lab.synthetic.hard_scenes import make_hard_pair

AUTO = Options(max_error_px="auto")


def estimate(kind, seed, outlier_ratio, options=AUTO):
    pair = make_hard_pair(kind, np.random.default_rng(seed), outlier_ratio)
    return pair, caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera, pair.camera, options=options)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
@pytest.mark.parametrize("outlier_ratio", [0.0, 0.4])
@pytest.mark.parametrize(("kind", "expected"), [("depth", None), ("plane", "planar"), ("rotation", "rotation")])
def test_kinds_of_scenes_are_distinguished(kind, expected, outlier_ratio, method):
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


def sized(kind, seed):
    """The pose that the sizes of the images give, and whether the direction is right."""
    pair = make_hard_pair(kind, np.random.default_rng(seed))
    size = pair.camera.width, pair.camera.height
    found = caransac.estimate_relative_pose(pair.points1, pair.points2, image_size1=size, image_size2=size)
    return found, pose_error_deg(found.R, found.t, pair.R, pair.t) < 5


def test_a_facade_matched_to_its_next_windows_is_not_trusted():
    found = [sized("repeated facade", seed) for seed in range(12)]
    wrong = [result.confidence for result, right in found if not right]
    assert len(wrong) >= 10
    assert sum(confidence >= 0.5 for confidence in wrong) <= 2  # 6 were above 0.9 without the test for copies


def test_scenes_with_depth_and_small_parallax_are_no_copies_of_a_plane():
    for seed in range(8):
        assert sized("depth", seed)[0].confidence > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("scored", [False, True])
def test_homographies_of_scenes_without_a_plane_are_not_trusted(scored):
    for seed in range(30):
        pair = make_pair(500, outlier_ratio=0.5, seed=seed)
        scores = {"scores": pair.scores, "score_kind": "ratio"} if scored else {}
        assert not caransac.estimate_homography(pair.points1, pair.points2, **scores).is_confident(), seed


@pytest.mark.slow
@pytest.mark.parametrize("noise_px", [0.3, 1.0, 4.0])
def test_homographies_of_planes_are_trusted(noise_px):
    for seed in range(6):
        plane = make_plane(500, outlier_ratio=0.7, noise_px=noise_px, seed=seed)
        found = caransac.estimate_homography(plane.points1, plane.points2)
        assert plane.corner_error_px(found.H) < 10
        assert found.confidence > 0.9
