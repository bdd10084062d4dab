"""Results do not depend on the order of matches, the order of the images, or the unit and origin of pixels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scenes

from caransac import Camera, Options, estimate_fundamental, estimate_homography, estimate_relative_pose
from caransac.geometry import angle_between_deg, pose_error_deg

pytestmark = pytest.mark.slow

THRESHOLD_PX = 2.0
SAME_DEG = 1.0  # two estimates of a scene with depth differ less, although their samples differ
FEW = settings(max_examples=25)
SHIFTS = st.tuples(st.integers(-500, 500), st.integers(-500, 500))


def options(scale=1.0):
    return Options(max_error_px=THRESHOLD_PX * scale, early_stop=False)


def moved(camera, scale, shift):
    """Return the camera for pixels that were scaled and then shifted."""
    focal, cx, cy = camera.params
    return Camera("SIMPLE_PINHOLE", (focal * scale, cx * scale + shift[0], cy * scale + shift[1]))


def pose_of(pair, points1, points2, *, scale=1.0, shift=(0, 0)):
    cameras = moved(pair.camera1, scale, shift), moved(pair.camera2, scale, shift)
    given_scores = {"scores": pair.scores, "score_kind": pair.score_kind}
    return estimate_relative_pose(points1, points2, *cameras, options=options(scale), **given_scores)


def agree(first, second):
    """Assert that two results about the same matches agree."""
    assert first.success
    assert second.success
    assert np.mean(first.inliers == second.inliers) > 0.97
    assert np.mean(np.abs(first.probabilities - second.probabilities)) < 0.05


@FEW
@given(pair=scenes(), seed=st.integers(0, 2**20))
def test_the_order_of_matches_does_not_matter(pair, seed):
    order = np.random.default_rng(seed).permutation(len(pair.points1))
    back = np.argsort(order)
    for call in (
        lambda x1, x2, **scored: estimate_relative_pose(x1, x2, pair.camera1, pair.camera2, **scored),
        estimate_fundamental,
    ):
        found = call(pair.points1, pair.points2, options=options(), scores=pair.scores, score_kind=pair.score_kind)
        scored = {"scores": pair.scores[order], "score_kind": pair.score_kind}
        other = call(pair.points1[order], pair.points2[order], options=options(), **scored)
        assert found.success
        assert other.success
        assert np.mean(found.inliers == other.inliers[back]) > 0.97
        assert np.mean(np.abs(found.probabilities - other.probabilities[back])) < 0.05


@FEW
@given(pair=scenes())
def test_swapped_images_have_the_inverse_pose(pair):
    found = pose_of(pair, pair.points1, pair.points2)
    other = pose_of(pair, pair.points2, pair.points1)
    agree(found, other)
    assert pose_error_deg(other.R, other.t, found.R.T, -found.R.T @ found.t) < SAME_DEG


@FEW
@given(pair=scenes())
def test_swapped_images_have_the_transposed_fundamental_matrix(pair):
    found, other = (
        estimate_fundamental(*points, options=options(), scores=pair.scores, score_kind=pair.score_kind)
        for points in ((pair.points1, pair.points2), (pair.points2, pair.points1))
    )
    agree(found, other)


@FEW
@given(pair=scenes(), exponent=st.integers(-2, 3))
def test_pixels_of_twice_the_size_have_the_same_pose_to_the_bit(pair, exponent):
    scale = 2.0**exponent  # a power of two, so that nothing is rounded differently
    found = pose_of(pair, pair.points1, pair.points2)
    other = pose_of(pair, pair.points1 * scale, pair.points2 * scale, scale=scale)
    assert found.success
    assert np.array_equal(found.R, other.R)
    assert np.array_equal(found.t, other.t)
    assert np.array_equal(found.inliers, other.inliers)
    assert np.array_equal(found.probabilities, other.probabilities)


@FEW
@given(pair=scenes(), scale=st.floats(0.2, 5), shift=SHIFTS)
def test_the_unit_and_the_origin_of_pixels_do_not_matter_for_poses(pair, scale, shift):
    found = pose_of(pair, pair.points1, pair.points2)
    points = (points * scale + shift for points in (pair.points1, pair.points2))
    other = pose_of(pair, *points, scale=scale, shift=shift)
    agree(found, other)
    assert pose_error_deg(other.R, other.t, found.R, found.t) < SAME_DEG


@FEW
@given(pair=scenes(), scale=st.floats(0.2, 5), shift=SHIFTS)
def test_the_unit_and_the_origin_of_pixels_do_not_matter_for_fundamental_matrices(pair, scale, shift):
    scored = {"scores": pair.scores, "score_kind": pair.score_kind}
    found = estimate_fundamental(pair.points1, pair.points2, options=options(), **scored)
    points = (points * scale + shift for points in (pair.points1, pair.points2))
    other = estimate_fundamental(*points, options=options(scale), **scored)
    agree(found, other)


@FEW
@given(seed=st.integers(0, 2**20), scale=st.floats(0.2, 5), shift=SHIFTS)
def test_homographies_follow_pixels_and_images(seed, scale, shift):
    rng = np.random.default_rng(seed)
    points1 = rng.uniform(0, 1000, (200, 2))
    H = np.array([[0.9, 0.1, 20], [-0.05, 1.1, -30], [1e-4, -2e-4, 1]])
    points2 = transferred(H, points1) + rng.normal(size=(200, 2)) * 0.5
    points2[:60] = rng.uniform(0, 1000, (60, 2))
    found = estimate_homography(points1, points2, options=options())
    back = estimate_homography(points2, points1, options=options())
    other = estimate_homography(points1 * scale + shift, points2 * scale + shift, options=options(scale))
    agree(found, back)
    agree(found, other)
    corners = np.array([[0.0, 0], [1000, 0], [1000, 1000], [0, 1000]])
    expected = transferred(found.H, corners)
    assert np.abs(transferred(np.linalg.inv(back.H), corners) - expected).max() < 5
    assert np.abs((transferred(other.H, corners * scale + shift) - shift) / scale - expected).max() < 5


def transferred(H, points):
    moved = np.c_[points, np.ones(len(points))] @ H.T
    return moved[:, :2] / moved[:, 2:]


@FEW
@given(pair=scenes())
def test_turned_pixels_turn_the_pose(pair):
    """A rotation of image 2 by 180 degrees about its centre rotates camera 2 about its axis."""
    found = pose_of(pair, pair.points1, pair.points2)
    _, cx, cy = pair.camera2.params
    other = pose_of(pair, pair.points1, 2 * np.array([cx, cy]) - pair.points2)
    agree(found, other)
    half = np.diag([-1.0, -1, 1])
    assert pose_error_deg(other.R, other.t, half @ found.R, half @ found.t) < SAME_DEG
    assert angle_between_deg(found.t, found.t) < 1e-9
