"""Settings of the drop-ins that are too large for a float, or arrays instead of numbers: errors name them."""

import numpy as np
import pytest

from caransac.integrations import opencv, poselib, pycolmap
from caransac.integrations.poselib_settings import options_from
from caransac.synthetic import make_pair

PAIR = make_pair(40, outlier_ratio=0.2, seed=3)
POINTS = PAIR.points1, PAIR.points2
SPACE = np.column_stack([PAIR.camera1.pixels_to_rays(PAIR.points1), np.ones(40)]) * 4
K = PAIR.camera1.K
CAMERA = {"model": "PINHOLE", "width": 1280, "height": 960, "params": [K[0, 0], K[1, 1], K[0, 2], K[1, 2]]}
HOSTILE = [10**400, -(10**400), 10**5000, np.longdouble("1e4000"), np.array([1.0, 2.0])]
RANSAC = ("max_error", "confidence", "random_seed")


def pycolmap_pose(**settings):
    refined = {name: settings.pop(name) for name in ("refine_focal_length",) if name in settings}
    focal = {name: settings.pop(name) for name in ("estimate_focal_length",) if name in settings}
    camera = pycolmap.Camera(model="PINHOLE", width=1280, height=960, params=CAMERA["params"])
    return pycolmap.estimate_and_refine_absolute_pose(
        PAIR.points1, SPACE, camera, {"ransac": settings, **focal}, refined
    )


CALLS = {
    "findEssentialMat": (
        lambda **given: opencv.findEssentialMat(*POINTS, K, **given),
        ("prob", "threshold", "method"),
    ),
    "findEssentialMat of a focal length": (
        lambda **given: opencv.findEssentialMat(*POINTS, **{"pp": (640.0, 480.0), "focal": 900.0, **given}),
        ("focal",),
    ),
    "findFundamentalMat": (
        lambda **given: opencv.findFundamentalMat(*POINTS, **given),
        ("ransacReprojThreshold", "confidence", "method"),
    ),
    "findHomography": (
        lambda **given: opencv.findHomography(*POINTS, **{"method": 8, **given}),
        ("ransacReprojThreshold", "confidence", "method"),
    ),
    "solvePnPRansac": (
        lambda **given: opencv.solvePnPRansac(SPACE, PAIR.points1, K, None, **given),
        ("reprojectionError", "confidence"),
    ),
    "poselib": (
        lambda **given: poselib.estimate_relative_pose(*POINTS, CAMERA, CAMERA, given),
        ("max_epipolar_error", "success_prob", "seed"),
    ),
    "pycolmap": (lambda **given: pycolmap.estimate_fundamental_matrix(*POINTS, given), RANSAC),
    "pycolmap pose": (pycolmap_pose, RANSAC),
    "pycolmap two views": (
        lambda **given: pycolmap.estimate_two_view_geometry(K, PAIR.points1, K, PAIR.points2, None, given),
        ("min_inlier_ratio",),
    ),
}


@pytest.mark.parametrize("value", HOSTILE, ids=["huge", "negative", "too long to print", "long double", "array"])
@pytest.mark.parametrize("call", CALLS)
def test_invalid_numbers_in_settings_are_named(call, value):
    if "pycolmap" in call:
        pytest.importorskip("pycolmap")
    estimate, names = CALLS[call]
    for name in names:
        with pytest.raises(ValueError, match=name):
            estimate(**{name: value})


def test_switches_and_flags_that_are_arrays_are_named():
    neither = np.array([1.0, 2.0])
    for name in ("useExtrinsicGuess", "flags"):
        with pytest.raises(ValueError, match=name):
            opencv.solvePnPRansac(SPACE, PAIR.points1, K, None, **{name: neither})
    with pytest.raises(ValueError, match="refine_focal_length"):
        poselib.estimate_absolute_pose(PAIR.points1, SPACE, CAMERA, {}, {"refine_focal_length": neither})
    pytest.importorskip("pycolmap")
    for name in ("refine_focal_length", "estimate_focal_length", "max_num_trials"):
        with pytest.raises(ValueError, match=name):
            pycolmap_pose(**{name: neither})
    for value in (-1, 1.5, neither):
        with pytest.raises(ValueError, match="min_num_inliers"):
            pycolmap.estimate_two_view_geometry(K, PAIR.points1, K, PAIR.points2, None, {"min_num_inliers": value})


@pytest.mark.parametrize("limits", [{"max_iterations": 10**9}, {"max_iterations": 10**9, "min_iterations": 10**9}])
def test_limits_beyond_a_million_are_a_million(limits):
    options = options_from(limits, None)
    assert options.rounds * options.samples_per_round <= 1_000_200
    assert options.early_stop == ("min_iterations" not in limits)
