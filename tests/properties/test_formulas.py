"""Identities of the formulas in geometry, metrics, cameras and synthetic scenes, for all valid numbers."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from caransac import Camera, geometry
from caransac.synthetic import make_pair
from caransac_lab import metrics
from caransac_lab.synthetic import random_pair, random_plane

pytestmark = pytest.mark.slow

COORDINATES = st.floats(-3, 3)
VECTORS = hnp.arrays(np.float64, 3, elements=COORDINATES)
POINTS = hnp.arrays(np.float64, (12, 2), elements=st.floats(-2, 2))
ERRORS = hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 180))
CAMERAS = st.builds(
    lambda f, cx, cy, k: Camera("SIMPLE_RADIAL", (f, cx, cy, k), 1000, 800),
    st.floats(300, 3000),
    st.floats(300, 700),
    st.floats(300, 500),
    st.floats(-0.05, 0.05),
)


@st.composite
def poses(draw):
    R, t = geometry.rotation_from_vector(draw(VECTORS)), draw(VECTORS)
    assume(np.linalg.norm(t) > 1e-3)
    return R, t / np.linalg.norm(t)


@given(pose=poses())
def test_a_pose_is_among_the_poses_of_its_essential_matrix(pose):
    rotations, translations = geometry.poses_from_essential(geometry.essential_from_pose(*pose))
    errors = [geometry.pose_error_deg(R, t, *pose) for R, t in zip(rotations, translations, strict=True)]
    assert min(errors) < 1e-4
    assert all(np.isclose(np.linalg.det(R), 1) for R in rotations)


@given(pose=poses(), back=poses())
def test_poses_of_one_world_compose(pose, back):
    (R1, t1), (R2, t2) = pose, back
    R, t = geometry.relative_pose(R1, t1, R2, t2)
    assert np.allclose(R @ R1, R2, atol=1e-12)
    assert np.isnan(t).all() or np.isclose(np.linalg.norm(t), 1)


@given(vector=VECTORS)
def test_quaternions_and_angles_belong_to_their_rotation(vector):
    R = geometry.rotation_from_vector(vector)
    w, x, y, z = geometry.quaternion_from_rotation(R)
    assert w >= 0
    assert np.isclose(w * w + x * x + y * y + z * z, 1)
    axis = geometry.cross_matrix([x, y, z])
    assert np.allclose(np.eye(3) + 2 * w * axis + 2 * axis @ axis, R, atol=1e-9)
    turned = np.linalg.norm(vector) % (2 * np.pi)
    assert np.isclose(geometry.rotation_angle_deg(R), np.degrees(min(turned, 2 * np.pi - turned)), atol=1e-5)


@given(pose=poses(), points=POINTS, depth=st.floats(0.5, 9))
def test_points_of_a_pose_lie_on_its_epipolar_lines_and_scale_does_not_matter(pose, points, depth):
    R, t = pose
    seen = geometry.homogeneous(points) * depth @ R.T + t
    assume((seen[:, 2] > 0.1).all())
    E, points2 = geometry.essential_from_pose(R, t), seen[:, :2] / seen[:, 2:]
    lines = (geometry.homogeneous(points) @ E.T)[:, :2], (geometry.homogeneous(points2) @ E)[:, :2]
    # Excludes points on both epipoles, which have no distance.
    assume((np.hypot(*(np.linalg.norm(each, axis=1) for each in lines)) > 1e-4).all())
    distances_sq = geometry.sampson_sq(E, points, points2)
    assert distances_sq.max(initial=0) < 1e-12
    assert np.allclose(geometry.sampson_sq(-7 * E, points, points2), distances_sq, atol=1e-12)


@given(pose=poses(), camera1=CAMERAS, camera2=CAMERAS)
def test_fundamental_and_essential_matrices_are_two_forms_of_one(pose, camera1, camera2):
    E = geometry.essential_from_pose(*pose)
    F = geometry.fundamental_from_essential(E, camera1.K, camera2.K)
    assert np.allclose(geometry.essential_from_fundamental(F, camera1.K, camera2.K), E, atol=1e-9)


@given(camera=CAMERAS, pixels=hnp.arrays(np.float64, (9, 2), elements=st.floats(0, 1000)))
def test_pixels_come_back_from_their_rays(camera, pixels):
    rays = camera.pixels_to_rays(pixels)
    seen = np.isfinite(rays).all(axis=1)
    assert np.allclose(camera.rays_to_pixels(rays[seen]), pixels[seen], atol=1e-3)


@given(errors=ERRORS, limit=st.floats(0.1, 90), seed=st.integers(0, 99))
def test_figures_of_merit_are_shares_for_any_order(errors, limit, seed):
    area = metrics.auc(errors, limit)
    assert 0 <= area <= 100
    assert np.isclose(metrics.auc(np.random.default_rng(seed).permutation(errors), limit), area)
    assert metrics.auc(errors, 2 * limit) >= area - 1e-9
    assert metrics.auc(np.append(errors, metrics.FAILURE_DEG), limit) <= area + 1e-9
    summary = metrics.summarise(errors)
    assert errors.min() <= summary["Med"] <= errors.max()
    assert summary["AUC1"] <= summary["AUC5"] + 1e-9


@given(
    probabilities=hnp.arrays(np.float64, 20, elements=st.floats(0, 1)),
    outcomes=hnp.arrays(np.int64, 20, elements=st.integers(0, 1)),
    num_bins=st.integers(1, 15),
)
def test_calibration_counts_everything_once(probabilities, outcomes, num_bins):
    predicted, observed, counts = metrics.calibration_bins(probabilities, outcomes, num_bins).T
    assert counts.sum() == 20
    assert np.isclose(counts @ predicted, probabilities.sum())
    assert np.isclose(counts @ observed, outcomes.sum())
    assert 0 <= metrics.expected_calibration_error(probabilities, outcomes, num_bins) <= 1


@given(count=st.integers(0, 300), share=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_synthetic_pairs_have_the_requested_properties(count, share, seed):
    pair = make_pair(count, outlier_ratio=share, seed=seed)
    assert pair.points1.shape == pair.points2.shape == (count, 2)
    assert pair.scores.shape == (count,)
    assert np.isfinite(pair.points1).all()
    again = make_pair(count, outlier_ratio=share, seed=seed)
    assert np.array_equal(pair.points2, again.points2)
    assert abs(np.sum(~pair.inliers) - share * count) <= 1


@pytest.mark.parametrize("draw", [random_pair, random_plane])
@given(count=st.integers(100, 400), share=st.floats(0.2, 0.9), seed=st.integers(0, 2**32))
def test_realistic_pairs_have_the_requested_properties(draw, count, share, seed):
    pair = draw(np.random.default_rng(seed), num_points=count, inlier_ratio=share)
    assert pair.points1.shape == pair.points2.shape == (count, 2)
    assert np.isfinite(pair.points1).all()
    assert np.isfinite(pair.points2).all()
    assert pair.scores.shape == (count,)
