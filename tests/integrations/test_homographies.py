"""Homographies: the same calls of OpenCV, PoseLib and pycolmap, and of our drop-ins."""

import subprocess
import sys

import cv2
import numpy as np
import poselib
import pycolmap
import pytest

import caransac
from caransac import Options
from caransac.geometry import homogeneous
from caransac.integrations import opencv
from caransac.integrations import poselib as poselib_drop_in
from caransac.integrations import pycolmap as pycolmap_drop_in
from caransac.synthetic import make_plane

SIZE = np.array([1200.0, 800.0])
H = np.array([[0.9, -0.2, 150.0], [0.15, 1.1, -60.0], [1e-4, -5e-5, 1.0]])
both_cv2 = pytest.mark.parametrize("module", [cv2, opencv], ids=["cv2", "ours"])
both_poselib = pytest.mark.parametrize("module", [poselib, poselib_drop_in], ids=["poselib", "ours"])
both_pycolmap = pytest.mark.parametrize("module", [pycolmap, pycolmap_drop_in], ids=["pycolmap", "ours"])


def transfer(points):
    moved = homogeneous(points) @ H.T
    return moved[:, :2] / moved[:, 2:]


def matches_of_a_plane(seed=0, count=400, outlier_ratio=0.4, noise_px=0.5):
    rng = np.random.default_rng(seed)
    points1 = rng.uniform(0, SIZE, (count, 2))
    points2 = transfer(points1) + rng.normal(0, noise_px, (count, 2))
    right = rng.random(count) >= outlier_ratio
    points2[~right] = rng.uniform(0, SIZE, (int((~right).sum()), 2))
    return points1, points2, right


POINTS1, POINTS2, RIGHT = matches_of_a_plane()
POINTS = POINTS1, POINTS2
SAME = np.ones((50, 2))


def check(found):
    """Assert that a homography moves the corners of the image to their true positions."""
    corners = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]) * SIZE
    moved = homogeneous(corners) @ found.T
    assert np.linalg.norm(moved[:, :2] / moved[:, 2:] - transfer(corners), axis=1).max() < 2


def usac_params(**given):
    params = cv2.UsacParams()
    for name, value in given.items():
        setattr(params, name, value)
    return params


FORMS = {
    "method": ((cv2.RANSAC,), {}),
    "threshold": ((cv2.RANSAC, 3.0), {}),
    "no mask": ((cv2.RANSAC, 3.0, None), {}),
    "all": ((cv2.RANSAC, 3.0, None, 2000, 0.995), {}),
    "names": ((), {"method": cv2.RANSAC, "ransacReprojThreshold": 3.0, "maxIters": 500, "confidence": 0.99}),
    "least median": ((cv2.LMEDS,), {}),
    "prosac": ((cv2.RHO, 4.0), {}),
    "usac": ((cv2.USAC_MAGSAC, 3.0), {}),
    "parameters": ((usac_params(threshold=2.0),), {}),
    "parameters and mask": ((usac_params(threshold=2.0), None), {}),
}


@both_cv2
@pytest.mark.parametrize("form", FORMS)
def test_opencvs_forms(module, form):
    arguments, keywords = FORMS[form]
    found, mask = module.findHomography(*POINTS, *arguments, **keywords)
    check(found)
    assert found.dtype == np.float64 and found[2, 2] == pytest.approx(1, abs=1e-12)
    assert mask.shape == (400, 1) and mask.dtype == np.uint8
    assert (mask.ravel() == RIGHT).mean() > 0.97
    named, _ = module.findHomography(srcPoints=POINTS1, dstPoints=POINTS2, **keywords | {"method": cv2.RANSAC})
    check(named)


@pytest.mark.parametrize("method", range(cv2.USAC_DEFAULT, cv2.USAC_DEFAULT + 7))
def test_opencvs_usac_methods_are_accepted(method):
    check(opencv.findHomography(*POINTS, method, 3.0)[0])


POINT_FORMS = {
    "(N, 1, 2)": lambda points: points[:, None],
    "(1, N, 2)": lambda points: points[None],
    "single precision": lambda points: points.astype(np.float32),
    "homogeneous": lambda points: homogeneous(points) * 2,
    "(N, 1, 3)": lambda points: homogeneous(points)[:, None],
    "device": cv2.UMat,
}


@both_cv2
@pytest.mark.parametrize("form", POINT_FORMS)
def test_opencvs_points(module, form):
    found, mask = module.findHomography(*map(POINT_FORMS[form], POINTS), cv2.RANSAC)
    check(found)
    assert type(mask) is (cv2.UMat if form == "device" else np.ndarray)


@both_cv2
def test_opencvs_mask_is_filled(module):
    for mask in (np.full((400, 1), 7, np.uint8), cv2.UMat(np.full((400, 1), 7, np.uint8))):
        _, found = module.findHomography(*POINTS, cv2.RANSAC, 3.0, mask)
        assert type(found) is type(mask)
        content = mask if isinstance(mask, np.ndarray) else mask.get()
        assert (content.ravel() == RIGHT).mean() > 0.97


def test_least_squares_and_four_points_are_opencvs():
    clean = POINTS1[RIGHT], POINTS2[RIGHT]
    for arguments in ((*clean,), (*clean, 0), (*clean, None), (POINTS1[:4], transfer(POINTS1[:4]), cv2.RANSAC, 5.0)):
        theirs = cv2.findHomography(*[0 if argument is None else argument for argument in arguments])
        for mine, their in zip(opencv.findHomography(*arguments), theirs, strict=True):
            assert np.array_equal(mine, their)
    check(opencv.findHomography(POINTS1[:4], transfer(POINTS1[:4]), cv2.RANSAC)[0])


@both_cv2
@pytest.mark.parametrize("method", [cv2.RANSAC, cv2.LMEDS, cv2.RHO, cv2.USAC_MAGSAC])
def test_opencv_without_a_homography(module, method):
    found, mask = module.findHomography(SAME, SAME, method)
    assert found is None and mask.shape == (50, 1) and not mask.any()
    if module is opencv:  # cv2 raises
        assert opencv.findHomography(POINTS1[:3], POINTS2[:3], method) == (None, None)
        assert opencv.findHomography([], [], method) == (None, None)


@both_cv2
@pytest.mark.parametrize("threshold", [0.8, 2.0])
def test_opencvs_threshold_means_the_same_at_equal_scales(module, threshold):
    points1, points2, _ = matches_of_a_plane(seed=2, count=2000, noise_px=1.0)
    found, mask = module.findHomography(points1, points2, cv2.RANSAC, threshold)
    moved = homogeneous(points1) @ found.T
    within = np.linalg.norm(moved[:, :2] / moved[:, 2:] - points2, axis=1) <= threshold
    assert (within == (mask.ravel() > 0)).mean() > 0.97


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((99,), {}, "method: must be cv2.RANSAC"),
        ((), {"scores": np.ones(400), "score_kind": "ratio"}, "method: must be cv2.RANSAC, .* not 0"),
        ((cv2.RANSAC, 0.0), {}, "ransacReprojThreshold: max_error_px must be"),
        ((cv2.RANSAC, 3.0, None, 0), {}, "maxIters: samples_per_round must be"),
        ((cv2.RANSAC, 3.0, None, 10, 1.0), {}, "confidence: success_probability must be"),
        ((), {"params": 3}, "params must be a cv2.UsacParams"),
    ],
)
def test_mistakes_in_opencvs_call_raise(arguments, keywords, message):
    with pytest.raises(ValueError, match=message):
        opencv.findHomography(*POINTS, *arguments, **keywords)
    with pytest.raises(ValueError, match="srcPoints must not contain NaN"):
        opencv.findHomography(POINTS1 * np.nan, POINTS2, cv2.RANSAC)
    with pytest.raises(ValueError, match="dstPoints must have shape"):
        opencv.findHomography(POINTS1, POINTS2[:, :1], cv2.RANSAC)
    with pytest.raises(TypeError, match=r"findHomography\(\): .* this form takes"):
        opencv.findHomography(*POINTS, treshold=3.0)


def test_settings_of_opencv_reach_the_estimator():
    found, mask = opencv.findHomography(*POINTS, cv2.RANSAC, 1.5, None, 150, 0.9, options=Options(seed=5))
    options = Options(max_error_px=1.5, success_probability=0.9, rounds=1, samples_per_round=150, seed=5)
    expected = caransac.estimate_homography(*POINTS, options=options)
    assert np.array_equal(found, expected.H / expected.H[2, 2])
    assert np.array_equal(mask.ravel(), expected.inliers)
    default = Options(max_error_px=3.0, success_probability=0.995, rounds=8, samples_per_round=250)
    expected = caransac.estimate_homography(*POINTS, options=default)
    assert np.array_equal(opencv.findHomography(*POINTS, cv2.RANSAC)[0], expected.H / expected.H[2, 2])


@both_poselib
@pytest.mark.parametrize("arguments", [(), ({"max_reproj_error": 3.0}, {}), ({}, {"loss_type": "TRUNCATED"}, None)])
def test_poselibs_homography(module, arguments):
    found, info = module.estimate_homography(*POINTS, *arguments)
    check(found)
    assert np.linalg.norm(found) == pytest.approx(1)
    assert type(info["inliers"]) is list and info["num_inliers"] == sum(info["inliers"])
    assert (np.array(info["inliers"]) == RIGHT).mean() > 0.97
    assert info["inlier_ratio"] == info["num_inliers"] / 400


def test_thresholds_of_poselib_in_both_versions():
    for settings, threshold in (
        ({}, 12.0),
        ({"max_reproj_error": 2.0, "max_epipolar_error": 9.0}, 2.0),
        ({"ransac": {"seed": 0}}, 1.0),
        ({"max_error": 2.5, "ransac": {}, "bundle": {}}, 2.5),
    ):
        expected = caransac.estimate_homography(*POINTS, options=Options(max_error_px=threshold))
        found, info = poselib_drop_in.estimate_homography(*POINTS, settings)
        assert np.array_equal(found, expected.H) and info["num_inliers"] == expected.num_inliers
    named, _ = poselib_drop_in.estimate_homography(*POINTS, opt={"max_error": 2.5})
    assert np.array_equal(named, found)
    for wrong, message in (
        ({"ransac_opt": {"max_reproj_eror": 1}}, "did you mean 'max_reproj_error'"),
        ({"initial_H": np.zeros((3, 3))}, "initial_model must be H of rank 3"),
    ):
        with pytest.raises(ValueError, match=message):
            poselib_drop_in.estimate_homography(*POINTS, **wrong)


@pytest.mark.parametrize("module", [poselib, poselib_drop_in])
def test_an_initial_homography_is_a_hypothesis(module):
    hard = make_plane(400, outlier_ratio=0.98, seed=3)
    few = {"max_iterations": 8, "min_iterations": 8, "max_reproj_error": 3.0}
    H, _ = module.estimate_homography(hard.points1, hard.points2, few, {}, hard.H)
    assert hard.corner_error_px(H) < 5 < hard.corner_error_px(np.eye(3))


def test_poselib_without_a_homography():
    for points in ((POINTS1[:3], POINTS2[:3]), (SAME, SAME)):
        found, info = poselib_drop_in.estimate_homography(*points)
        assert np.array_equal(found, np.eye(3)) and not info["success"]
        assert info["num_inliers"] == 0 and info["model_score"] == sys.float_info.max


@both_pycolmap
@pytest.mark.parametrize("options", [(), ({"max_error": 3.0},), (pycolmap.RANSACOptions(max_error=3.0),)])
def test_pycolmaps_homography(module, options):
    found = module.estimate_homography_matrix(*POINTS, *options)
    check(found["H"])
    assert np.linalg.norm(found["H"]) == pytest.approx(1)
    assert found["inlier_mask"].dtype == bool and found["num_inliers"] == found["inlier_mask"].sum()
    assert (found["inlier_mask"] == RIGHT).mean() > 0.97


@both_pycolmap
def test_pycolmap_without_a_homography(module):
    assert module.estimate_homography_matrix(POINTS1[:3], POINTS2[:3]) is None
    assert module.estimate_homography_matrix(SAME, SAME) is None


def test_probabilities_and_confidence_are_returned():
    found = pycolmap_drop_in.estimate_homography_matrix(*POINTS, {"max_error": 2.0, "random_seed": 3})
    expected = caransac.estimate_homography(*POINTS, options=Options(max_error_px=2.0, seed=3))
    assert np.array_equal(found["H"], expected.H)
    assert np.array_equal(found["probabilities"], expected.probabilities)
    assert found["confidence"] == expected.confidence


@pytest.mark.slow
def test_the_original_libraries_are_not_needed():
    program = """
import sys
sys.modules |= {"cv2": None, "poselib": None, "pycolmap": None}
import numpy as np
from caransac.integrations import opencv, poselib, pycolmap
points = np.random.default_rng(0).uniform(0, 1000, (50, 2))
print(opencv.findHomography(points, points, opencv.RANSAC)[0].round(3).tolist())
print(poselib.estimate_homography(points, points)[1]["num_inliers"])
print(pycolmap.estimate_homography_matrix(points, points)["num_inliers"])
opencv.findHomography(points, points)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert np.allclose(eval(lines[0]), np.eye(3)) and lines[1:] == ["50", "50"]
    assert "ImportError: a method that is not robust needs OpenCV: pip install opencv-python-headless" in done.stderr
