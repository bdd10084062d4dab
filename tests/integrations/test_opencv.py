"""The same calls of cv2 and of our drop-in."""

import subprocess
import sys

import cv2
import numpy as np
import pytest

from caransac import Options
from caransac.geometry import fundamental_from_essential, homogeneous, pose_error_deg, sampson_sq
from caransac.integrations import opencv as ours
from caransac.synthetic import make_pair

PAIR = make_pair(400, outlier_ratio=0.4, noise_px=0.4, seed=3)
K = PAIR.camera1.K
FOCAL, PP = float(K[0, 0]), (float(K[0, 2]), float(K[1, 2]))
both = pytest.mark.parametrize("module", [cv2, ours], ids=["cv2", "ours"])


def usac_params(**given):
    params = cv2.UsacParams()
    for name, value in given.items():
        setattr(params, name, value)
    return params


def pose_error(E, mask, points1=PAIR.points1, points2=PAIR.points2):
    _, R, t, _ = cv2.recoverPose(E, points1, points2, K, mask=mask.copy())
    return pose_error_deg(R, t.ravel(), PAIR.R, PAIR.t)


ESSENTIAL_FORMS = {
    "matrix": (K,),
    "matrix and settings": (K, cv2.RANSAC, 0.999, 1.0, 2000),
    "matrix, mask in its place": (K, cv2.RANSAC, 0.999, 1.0, 2000, None),
    "None is a default": (K, None, None, None, None, None),
    "single precision": (K.astype(np.float32), cv2.USAC_MAGSAC),
    "focal": (FOCAL, PP),
    "focal and settings": (FOCAL, PP, cv2.USAC_ACCURATE, 0.999, 1.0, 2000),
    "two cameras": (K, np.zeros(5), K, np.zeros(4)),
    "two cameras without distortion": (K, None, K, None, cv2.RANSAC, 0.999, 1.0),
    "parameters": (K, K, np.zeros(5), np.zeros(5), usac_params(threshold=1.0)),
}
ESSENTIAL_KEYWORDS = {
    "matrix": {"cameraMatrix": K, "threshold": 1.0},
    "all": {"cameraMatrix": K, "method": cv2.USAC_DEFAULT, "prob": 0.99, "threshold": 1.0, "maxIters": 500},
    "focal": {"focal": FOCAL, "pp": PP, "method": cv2.RANSAC, "prob": 0.999, "threshold": 1.0},
    "two cameras": {"cameraMatrix1": K, "cameraMatrix2": K, "distCoeffs1": None, "distCoeffs2": np.zeros((1, 5))},
}


def check_essential(E, mask):
    assert E.shape == (3, 3)
    assert E.dtype == np.float64
    assert mask.shape == (400, 1)
    assert mask.dtype == np.uint8
    assert set(np.unique(mask)) == {0, 1}
    assert (mask.ravel() == PAIR.inliers).mean() > 0.9
    assert pose_error(E, mask) < 3


@both
@pytest.mark.parametrize("form", ESSENTIAL_FORMS)
def test_essential_by_position(module, form):
    check_essential(*module.findEssentialMat(PAIR.points1, PAIR.points2, *ESSENTIAL_FORMS[form]))


@both
@pytest.mark.parametrize("form", ESSENTIAL_KEYWORDS)
def test_essential_by_name(module, form):
    check_essential(*module.findEssentialMat(points1=PAIR.points1, points2=PAIR.points2, **ESSENTIAL_KEYWORDS[form]))


POINT_FORMS = {
    "(N, 1, 2)": lambda points: points[:, None],
    "(1, N, 2)": lambda points: points[None],
    "single precision": lambda points: points.astype(np.float32),
    "(N, 1, 2) single precision": lambda points: points.astype(np.float32)[:, None],
    "strided": lambda points: np.repeat(points, 2, axis=0)[::2],
    "whole pixels": lambda points: points.round().astype(np.int64),
}


@both
@pytest.mark.parametrize("form", POINT_FORMS)
def test_forms_of_points(module, form):
    points1, points2 = POINT_FORMS[form](PAIR.points1), POINT_FORMS[form](PAIR.points2)
    E, mask = module.findEssentialMat(points1, points2, K, cv2.USAC_DEFAULT)
    assert pose_error(E, mask) < 3
    F, mask = module.findFundamentalMat(points1, points2, cv2.USAC_DEFAULT)
    assert F.shape == (3, 3)
    assert mask.shape == (400, 1)


@both
@pytest.mark.parametrize("shape", [(400, 3), (400, 1, 3), (1, 400, 3)])
def test_homogeneous_points_of_a_fundamental_matrix(module, shape):
    def homogeneous_form(points, scale):
        return (homogeneous(points) * scale).reshape(shape)

    F, mask = module.findFundamentalMat(homogeneous_form(PAIR.points1, 2.0), homogeneous_form(PAIR.points2, -0.5))
    plain, plain_mask = module.findFundamentalMat(PAIR.points1, PAIR.points2)
    np.testing.assert_allclose(F, plain, atol=1e-5)
    assert (mask == plain_mask).mean() > 0.99
    with pytest.raises((cv2.error, ValueError)):
        module.findEssentialMat(homogeneous_form(PAIR.points1, 1.0), homogeneous_form(PAIR.points2, 1.0), K)


@both
def test_homogeneous_points_at_infinity_are_accepted(module):
    points1 = homogeneous(PAIR.points1)
    points1[:3, 2] = 0
    F, mask = module.findFundamentalMat(points1, PAIR.points2)
    assert F.shape == (3, 3)
    assert (mask.ravel()[3:] == PAIR.inliers[3:]).mean() > 0.85


@both
@pytest.mark.parametrize("which", ["points1", "points2", "cameraMatrix", "all"])
def test_device_arrays(module, which):
    def upload(name, value):
        return cv2.UMat(value) if which in (name, "all") else value

    points = upload("points1", PAIR.points1), upload("points2", PAIR.points2)
    E, mask = module.findEssentialMat(*points, upload("cameraMatrix", K))
    assert type(E) is np.ndarray and type(mask) is cv2.UMat
    check_essential(E, mask.get())
    two, mask = module.findEssentialMat(*points, upload("cameraMatrix", K), None, K, None)
    check_essential(two, mask.get())
    F, mask = module.findFundamentalMat(*points)
    assert type(F) is np.ndarray and (type(mask) is cv2.UMat) == (which != "cameraMatrix")


@both
def test_a_mask_on_a_device_is_filled(module):
    for find, arguments in ((module.findEssentialMat, (K,)), (module.findFundamentalMat, (cv2.FM_RANSAC, 3.0, 0.99))):
        given = cv2.UMat(np.full((400, 1), 7, np.uint8))
        for _, mask in (find(PAIR.points1, PAIR.points2, *arguments, mask=given),):
            assert type(mask) is cv2.UMat
            assert np.array_equal(mask.get(), given.get())
            assert set(np.unique(given.get())) == {0, 1} and given.get().sum() > 150
    given = cv2.UMat(np.full((400, 1), 7, np.uint8))
    module.findFundamentalMat(PAIR.points1, PAIR.points2, cv2.FM_RANSAC, 3.0, 0.99, given)
    assert given.get().max() == 1


def test_lists_are_points_too():
    E, mask = ours.findEssentialMat(PAIR.points1.tolist(), [tuple(point) for point in PAIR.points2], K.tolist())
    check_essential(E, mask)


FUNDAMENTAL_FORMS = {
    "nothing": (),
    "method": (cv2.FM_RANSAC,),
    "settings": (cv2.FM_RANSAC, 2.0, 0.999),
    "iterations": (cv2.FM_RANSAC, 2.0, 0.999, 3000),
    "all": (cv2.FM_RANSAC, 2.0, 0.999, 3000, None),
    "least median": (cv2.FM_LMEDS,),
    "usac": (cv2.USAC_MAGSAC, 1.0, 0.999, 3000),
    "parameters": (usac_params(threshold=1.5),),
}


@both
@pytest.mark.parametrize("form", FUNDAMENTAL_FORMS)
def test_fundamental(module, form):
    F, mask = module.findFundamentalMat(PAIR.points1, PAIR.points2, *FUNDAMENTAL_FORMS[form])
    assert F.shape == (3, 3)
    assert F.dtype == np.float64
    assert mask.shape == (400, 1)
    assert mask.dtype == np.uint8
    assert np.sqrt(np.median(sampson_sq(F, PAIR.points1[PAIR.inliers], PAIR.points2[PAIR.inliers]))) < 0.7
    assert (mask.ravel() == PAIR.inliers).mean() > 0.85
    if form != "usac" and form != "parameters":
        assert F[2, 2] == 1


@both
@pytest.mark.parametrize("shape", [(400, 1), (400,), (1, 400)])
def test_a_mask_passed_in_is_filled(module, shape):
    for find, arguments in ((module.findEssentialMat, (K,)), (module.findFundamentalMat, ())):
        given = np.full(shape, 7, np.uint8)
        _, mask = find(PAIR.points1, PAIR.points2, *arguments, mask=given)
        assert mask is given
        assert set(np.unique(given)) == {0, 1}
        assert given.sum() > 150


@both
def test_a_mask_of_the_wrong_shape_is_not_changed(module):
    for given in (np.zeros((5, 1), np.uint8), np.zeros((400, 1), bool)):
        _, mask = module.findEssentialMat(PAIR.points1, PAIR.points2, K, mask=given)
        assert mask is not given
        assert mask.shape == (400, 1)
        assert not given.any()


@both
@pytest.mark.parametrize("count", [1, 4, 6])
def test_too_few_points(module, count):
    few = PAIR.points1[:count], PAIR.points2[:count]
    if count < 5:
        assert module.findEssentialMat(*few, K) == (None, None)
    assert module.findFundamentalMat(*few) == (None, None)


def test_no_points():
    assert ours.findEssentialMat([], [], K) == (None, None)
    assert ours.findFundamentalMat(np.zeros((0, 1, 2)), np.zeros((0, 2))) == (None, None)


@both
def test_degenerate_points(module):
    same = np.ones((50, 2))
    for find, arguments in ((module.findEssentialMat, (K, cv2.USAC_MAGSAC)), (module.findFundamentalMat, ())):
        matrix, mask = find(same, same, *arguments)
        assert matrix is None
        assert mask.shape == (50, 1)
        assert mask.dtype == np.uint8
        if module is ours:  # cv2 returns uninitialised memory
            assert not mask.any()


@pytest.mark.parametrize("count", [5, 6, 7, 8])
def test_never_a_stack_of_candidates(count):
    for matrix, mask in (
        ours.findEssentialMat(PAIR.points1[:count], PAIR.points2[:count], K),
        ours.findFundamentalMat(PAIR.points1[:count], PAIR.points2[:count]),
    ):
        assert matrix is None or matrix.shape == (3, 3)
        assert mask is None or mask.shape == (count, 1)
        assert (matrix is None) == (mask is None or not mask.any())


def test_a_failure_clears_the_mask():
    given = np.full((3, 1), 7, np.uint8)
    matrix, mask = ours.findEssentialMat(PAIR.points1[:3], PAIR.points2[:3], K, mask=given)
    assert matrix is None
    assert mask is given
    assert not given.any()


def line_distances(F, points1, points2):
    """Return the larger distance in pixels of each match to its two epipolar lines."""
    lines2, lines1 = homogeneous(points1) @ F.T, homogeneous(points2) @ F
    error = np.abs(np.sum(homogeneous(points2) * lines2, axis=1))
    return error / np.minimum(np.linalg.norm(lines1[:, :2], axis=1), np.linalg.norm(lines2[:, :2], axis=1))


@both
@pytest.mark.parametrize("threshold", [0.5, 1.5])
def test_thresholds_mean_the_same(module, threshold):
    pair = make_pair(1500, outlier_ratio=0.3, noise_px=1.0, seed=4)
    points = pair.points1, pair.points2
    E, mask = module.findEssentialMat(*points, K, cv2.RANSAC, 0.999, threshold)
    within = sampson_sq(fundamental_from_essential(E, K, K), *points) <= threshold**2
    assert (within == mask.ravel()).mean() > 0.99  # ours also rejects points behind a camera
    F, mask = module.findFundamentalMat(*points, cv2.USAC_DEFAULT, threshold, 0.999)
    assert ((sampson_sq(F, *points) <= threshold**2) == mask.ravel()).mean() > 0.999
    F, mask = module.findFundamentalMat(*points, cv2.FM_RANSAC, threshold, 0.999)
    assert ((line_distances(F, *points) <= threshold) == mask.ravel()).mean() > 0.97
    assert (mask.ravel() == 1).sum() == pytest.approx((line_distances(F, *points) <= threshold).sum(), rel=0.03)


COEFFICIENTS = np.array([-0.2, 0.05, 0.001, -0.002, 0.01])


@both
def test_distortion_is_removed(module):
    rays = cv2.undistortPoints(PAIR.points1, K, None)[:, 0], cv2.undistortPoints(PAIR.points2, K, None)[:, 0]
    K2 = np.array([[700.0, 0, 400], [0, 720, 300], [0, 0, 1]])
    still = np.zeros(3)
    bent1 = cv2.projectPoints(homogeneous(rays[0]), still, still, K, COEFFICIENTS)[0]
    bent2 = cv2.projectPoints(homogeneous(rays[1]), still, still, K2, COEFFICIENTS[:4] * 0.5)[0]
    E, mask = module.findEssentialMat(bent1, bent2, K, COEFFICIENTS, K2, COEFFICIENTS[:4] * 0.5, threshold=1.0)
    assert pose_error(E, mask) < 3
    params = usac_params(threshold=1.0)
    E, mask = module.findEssentialMat(bent1, bent2, K, K2, COEFFICIENTS, COEFFICIENTS[:4] * 0.5, params)
    assert pose_error(E, mask) < 3


@both
def test_normalised_points(module):
    rays = PAIR.camera1.pixels_to_rays(PAIR.points1), PAIR.camera2.pixels_to_rays(PAIR.points2)
    for camera in ((np.eye(3),), (), (1.0, (0.0, 0.0))):
        E, mask = module.findEssentialMat(*rays, *camera, method=cv2.RANSAC, threshold=1 / FOCAL)
        check_essential(E, mask)


def test_settings_reach_the_estimator():
    base = Options(seed=5, rounds=1, samples_per_round=150, early_stop=False)
    points = PAIR.points1, PAIR.points2

    def same(first, second):
        return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))

    stated = ours.findEssentialMat(*points, K, cv2.RANSAC, 0.9, 0.7, 150, options=Options(seed=5, early_stop=False))
    assert same(stated, ours.findEssentialMat(*points, K, cv2.LMEDS, 0.9, 0.7, options=base))
    params = usac_params(threshold=0.7, confidence=0.9, maxIterations=150, randomGeneratorState=5)
    zero = np.zeros(5)
    assert same(stated, ours.findEssentialMat(*points, K, K, zero, zero, params, options=Options(early_stop=False)))
    assert not same(stated, ours.findEssentialMat(*points, K, cv2.RANSAC, 0.9, 0.8, options=base))
    scored = ours.findEssentialMat(*points, K, scores=PAIR.scores, score_kind="ratio", options=base)
    assert not same(scored, ours.findEssentialMat(*points, K, options=base))
    assert same(ours.findFundamentalMat(*points), ours.findFundamentalMat(*points, cv2.FM_RANSAC, 3.0, 0.99, 1000))


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((K, cv2.FM_8POINT), {}, "method: must be cv2.RANSAC"),
        ((K, cv2.RHO), {}, "method: must be cv2.RANSAC"),
        ((K, cv2.RANSAC, 1.0), {}, "prob: success_probability must be between 0 and 1"),
        ((K, cv2.RANSAC, 0.99, 0.0), {}, "threshold: max_error_px must be"),
        ((K, cv2.RANSAC, 0.99, np.nan), {}, "threshold: max_error_px must be"),
        ((K, cv2.RANSAC, 0.99, 1.0, 0), {}, "maxIters: samples_per_round must be"),
        ((K, cv2.RANSAC, 0.99, 1.0, 10.5), {}, "maxIters: .* must be a whole number"),
        ((K[:2],), {}, "cameraMatrix: K must be 3x3"),
        ((K + np.eye(3, k=1),), {}, "cameraMatrix: K must be"),
        ((-1.0,), {}, "focal must be a positive length"),
        ((FOCAL, (1, 2, 3)), {}, "pp a point"),
        ((K, np.zeros(3), K, None), {}, "distCoeffs1: distortion must have 4, 5, 8, 12 or 14 coefficients, got 3"),
        ((K, None, K, np.ones(12)), {}, "distCoeffs2: distortion: thin prisms"),
        ((K, K, None, None), {"params": 3}, "params must be a cv2.UsacParams"),
        ((K,), {"options": {"seed": 1}}, "options must be a caransac.Options"),
        ((K,), {"scores": [1, 2]}, "scores must have shape"),
    ],
)
def test_mistakes_raise_value_errors(arguments, keywords, message):
    with pytest.raises(ValueError, match=message):
        ours.findEssentialMat(PAIR.points1, PAIR.points2, *arguments, **keywords)


def test_a_mask_that_cannot_be_written_is_named():
    mask = np.zeros((len(PAIR.points1), 1), np.uint8)
    mask.setflags(write=False)
    with pytest.raises(ValueError, match="mask must be writable"):
        ours.findEssentialMat(PAIR.points1, PAIR.points2, K, mask=mask)


@both
def test_no_limit_of_iterations(module):
    """The largest integer of C, which scripts use for "no limit"."""
    E, _ = module.findEssentialMat(PAIR.points1, PAIR.points2, K, cv2.RANSAC, 0.999, 1.0, 2**31 - 1)
    assert E.shape == (3, 3)
    F, _ = module.findFundamentalMat(PAIR.points1, PAIR.points2, cv2.FM_RANSAC, 1.0, 0.99, 2**31 - 1)
    assert F.shape == (3, 3)


@pytest.mark.parametrize("method", [cv2.FM_7POINT, cv2.FM_8POINT, 0])
@pytest.mark.parametrize("count", [7, 8, 40])
def test_methods_without_robustness_are_opencvs(method, count):
    right = np.flatnonzero(PAIR.inliers)[:count]
    points = PAIR.points1[right], PAIR.points2[right]
    F, mask = cv2.findFundamentalMat(*points, method)
    for found in (ours.findFundamentalMat(*points, method), ours.findFundamentalMat(*points, method=method)):
        assert (F is None) == (found[0] is None) and np.array_equal(found[0], F) and np.array_equal(found[1], mask)
    with pytest.raises(ValueError, match=r"method: must be cv2\.RANSAC"):
        ours.findFundamentalMat(*points, method, scores=np.ones(count), score_kind="ratio")


def test_unknown_methods_raise():
    with pytest.raises(ValueError, match="method: must be"):
        ours.findFundamentalMat(PAIR.points1, PAIR.points2, 99)


@pytest.mark.parametrize(
    "keywords", [{"treshold": 1.0}, {"cameraMatrix": K, "ransacReprojThreshold": 1.0}, {"cameraMatrix1": K}]
)
def test_unknown_and_missing_arguments_raise(keywords):
    with pytest.raises(TypeError, match=r"findEssentialMat\(\): .* this form takes"):
        ours.findEssentialMat(PAIR.points1, PAIR.points2, **keywords)
    with pytest.raises(TypeError, match=r"findFundamentalMat\(\)"):
        ours.findFundamentalMat(PAIR.points1, PAIR.points2, **keywords)


@pytest.mark.parametrize(
    ("points1", "message"),
    [
        (np.full((400, 2), np.nan), "points1 must not contain NaN"),
        (PAIR.points1.T, "points1 must have shape"),
        (PAIR.points1[:-1], "same length"),
        (np.c_[PAIR.points1, PAIR.points1], "points1 must have shape"),
        ([[1, 2], [3]], "points1 must be an array"),
        ("points", "points1 must contain real numbers"),
    ],
)
def test_hostile_points_raise(points1, message):
    with pytest.raises(ValueError, match=message):
        ours.findEssentialMat(points1, PAIR.points2, K)
    with pytest.raises(ValueError, match=message):
        ours.findFundamentalMat(points1, PAIR.points2)


@pytest.mark.slow
def test_opencv_is_not_needed():
    program = """
import sys
sys.modules["cv2"] = None
from caransac.integrations import opencv
from caransac.synthetic import make_pair
pair = make_pair(100)
print(opencv.findEssentialMat(pair.points1, pair.points2, pair.camera1.K)[0].shape)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(3, 3)"
