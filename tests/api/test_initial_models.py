"""`initial_model` of every call is one more hypothesis of the first round. Also tests the time limit."""

from types import SimpleNamespace

import numpy as np
import pytest
from estimates import METHODS, solve

import caransac
from caransac import Camera, Options
from caransac.geometry import (
    absolute_pose_error_deg,
    essential_from_pose,
    fundamental_from_essential,
    homogeneous,
    join_pose,
    pose_error_deg,
    rotation_from_vector,
    sampson_sq,
)
from caransac.synthetic import make_pair, make_plane, make_query, transfer

TURN = rotation_from_vector(np.deg2rad([0.3, -0.2, 0.3]))  # rotation error of the initial poses
PAIR = make_pair(400, outlier_ratio=0.93, seed=3)
CLEAN = make_pair(400, outlier_ratio=0, noise_px=0, seed=3)
POSE = join_pose(TURN @ PAIR.R, PAIR.t)
K1, K2 = PAIR.camera1.K, PAIR.camera2.K
F = fundamental_from_essential(essential_from_pose(POSE[:, :3], POSE[:, 3]), K1, K2)
SIZES = {"image_size1": (1024, 768), "image_size2": (1024, 768)}
PLANE = make_plane(400, outlier_ratio=0.98, seed=3)
QUERY = make_query(400, outlier_ratio=0.98, seed=3)
UNCERTAIN = Camera.of_unknown_focal(1024, 768)


def few(method):
    """Return options of a search that finds no model among so many outliers without help."""
    return Options(method=method, rounds=1, samples_per_round=8, early_stop=False, max_ratio=2)


def error_of_pose(found):
    return pose_error_deg(found.R, found.t, PAIR.R, PAIR.t) if found.success else np.inf


def error_of_matrix(found):
    """Return the distance in pixels of right matches without noise from the model."""
    return np.sqrt(np.mean(sampson_sq(found.F, CLEAN.points1, CLEAN.points2))) if found.success else np.inf


def relative(**given):
    found = solve("pose", PAIR, **given)
    return error_of_pose(found)


def uncertain(**given):
    return error_of_pose(caransac.estimate_relative_pose(PAIR.points1, PAIR.points2, **SIZES, **given))


def rays(**given):
    units = (homogeneous(c.pixels_to_rays(p)) for c, p in ((PAIR.camera1, PAIR.points1), (PAIR.camera2, PAIR.points2)))
    return error_of_pose(caransac.estimate_relative_pose_from_rays(*units, **given))


def fundamental(**given):
    return error_of_matrix(caransac.estimate_fundamental(PAIR.points1, PAIR.points2, **given))


def fundamental_with_sizes(**given):
    return error_of_matrix(caransac.estimate_fundamental(PAIR.points1, PAIR.points2, **SIZES, **given))


def homography(**given):
    found = caransac.estimate_homography(PLANE.points1, PLANE.points2, **given)
    if not found.success:
        return np.inf
    return np.median(np.linalg.norm(transfer(found.H, PLANE.points1) - transfer(PLANE.H, PLANE.points1), axis=1))


def absolute(camera=QUERY.camera, **given):
    found = caransac.estimate_absolute_pose(QUERY.points2d, QUERY.points3d, camera, **given)
    error = absolute_pose_error_deg if found.success else lambda *_: np.inf
    return error(found.R, found.t, QUERY.R, QUERY.t, QUERY.points3d)


def anything(**given):
    found = caransac.estimate(PAIR.points1, PAIR.points2, PAIR.camera1, PAIR.camera2, **given)
    return error_of_pose(found.epipolar)


def many(**given):
    pair = (PAIR.points1, PAIR.points2, PAIR.camera1, PAIR.camera2)
    named = dict(zip(("points1", "points2", "camera1", "camera2"), pair, strict=True))
    return error_of_pose(caransac.estimate_relative_poses([named | given])[0])


CALLS = {
    "relative": (relative, POSE),
    "uncertain": (uncertain, SimpleNamespace(R=POSE[:, :3], t=POSE[:, 3], camera1=PAIR.camera1, camera2=PAIR.camera2)),
    "rays": (rays, (POSE[:, :3], POSE[:, 3])),
    "fundamental": (fundamental, F),
    "fundamental with sizes": (fundamental_with_sizes, F),
    "homography": (homography, PLANE.H * (1 + 1e-3 * np.arange(9).reshape(3, 3))),
    "absolute": (absolute, join_pose(QUERY.R, 1.01 * QUERY.t)),
    "anything": (anything, POSE),
    "many": (many, POSE),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("call", CALLS)
def test_an_initial_model_is_a_hypothesis_of_the_first_round(call, method):
    estimate, initial = CALLS[call]
    alone, helped = (estimate(options=few(method), **given) for given in ({}, {"initial_model": initial}))
    assert alone > 10  # degrees, or pixels
    assert helped < 1


@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_initial_model_loses(method):
    easy = make_pair(400, outlier_ratio=0.3, seed=3)
    wrong = join_pose(rotation_from_vector(np.array([0.5, -0.5, 0.5])), np.array([0.0, 1.0, 0.0]))
    options = Options(method=method)
    found = solve("pose", easy, initial_model=wrong, options=options)
    assert pose_error_deg(found.R, found.t, easy.R, easy.t) < 1
    plane = make_plane(400, outlier_ratio=0.3, seed=3)
    found = caransac.estimate_homography(plane.points1, plane.points2, initial_model=np.eye(3), options=options)
    assert plane.corner_error_px(found.H) < 3


def test_records_and_results_without_a_model_are_taken():
    nothing = caransac.estimate_relative_pose(np.zeros((3, 2)), np.zeros((3, 2)), PAIR.camera1, PAIR.camera2)
    plain = solve("pose", CLEAN)
    assert np.array_equal(solve("pose", CLEAN, initial_model=nothing).R, plain.R)
    for record in (plain, caransac.RelativePose(plain.R, plain.t)):
        found = solve("pose", PAIR, initial_model=record, options=few("ca-ransac"))
        assert error_of_pose(found) < 1
    known = caransac.estimate_fundamental(CLEAN.points1, CLEAN.points2)
    assert fundamental(initial_model=known, options=few("ca-ransac")) < 1


def test_degenerate_matches_stay_degenerate_with_an_initial_model():
    same = np.ones((40, 2))
    for method in METHODS:
        found = caransac.estimate_relative_pose(
            same, same, PAIR.camera1, PAIR.camera2, initial_model=POSE, options=Options(method=method)
        )
        assert (found.success, found.stop_reason) == (False, "degenerate")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.eye(3), "initial_model must be a pose"),
        (np.ones((3, 4)), "initial_model must have a rotation"),
        (join_pose(-np.eye(3), np.ones(3)), "initial_model must have a rotation"),
        (join_pose(np.eye(3), np.zeros(3)), "initial_model must have a translation"),
        (POSE * np.nan, "initial_model must not contain NaN"),
        ("identity", "initial_model must contain real numbers"),
        ((np.eye(3), np.ones(2)), "initial_model must be a pose"),
    ],
)
def test_wrong_initial_poses_raise(wrong, message):
    with pytest.raises(ValueError, match=message):
        solve("pose", PAIR, initial_model=wrong)
    with pytest.raises(ValueError, match=r"pairs\[0\]: initial_model"):
        many(initial_model=wrong)


def test_wrong_initial_matrices_raise():
    for wrong, message in ((np.eye(4), "must be F of shape"), (np.zeros((3, 3)), "must be F of rank 2")):
        with pytest.raises(ValueError, match=f"initial_model {message}"):
            fundamental(initial_model=wrong)
    with pytest.raises(ValueError, match="initial_model must be H of rank 3"):
        homography(initial_model=F)


@pytest.mark.parametrize("method", METHODS)
def test_time_ends_an_estimation_between_rounds(method):
    options = Options(method=method, rounds=50, samples_per_round=64, early_stop=False, max_seconds=0)
    pair = make_pair(300, outlier_ratio=0.3, seed=1)
    for found in (
        solve("pose", pair, options=options),
        solve("fundamental", pair, options=options),
        # This estimate also fits an unknown lens.
        caransac.estimate_relative_pose(pair.points1, pair.points2, **SIZES, options=options),
        caransac.estimate(pair.points1, pair.points2, pair.camera1, pair.camera2, options=options).epipolar,
    ):
        assert (found.success, found.stop_reason, found.num_hypotheses) == (True, "time", 64)
    assert caransac.RelativePoseResult.from_dict(found.to_dict(full=True)).stop_reason == "time"


@pytest.mark.parametrize("method", METHODS)
def test_an_unreached_time_limit_does_not_change_the_result(method):
    pair = make_pair(300, outlier_ratio=0.3, seed=1)
    limited, free = (solve("pose", pair, options=Options(method=method, max_seconds=s)) for s in (1e6, None))
    assert np.array_equal(limited.R, free.R) and limited.stop_reason == free.stop_reason == "early_stop"
