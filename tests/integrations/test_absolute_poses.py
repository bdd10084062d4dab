"""Absolute poses: the same calls of OpenCV, PoseLib and pycolmap, and of our drop-ins."""

import cv2
import numpy as np
import poselib
import pycolmap
import pytest

import caransac
from caransac.geometry import absolute_pose_error_deg, rotation_from_vector, vector_from_rotation
from caransac.integrations import opencv as our_cv2
from caransac.integrations import poselib as our_poselib
from caransac.integrations import pycolmap as our_pycolmap
from caransac.synthetic import make_query

QUERY = make_query(300, outlier_ratio=0.4, noise_px=0.4, seed=3)
NOTHING = make_query(40, outlier_ratio=1.0, seed=4)
K, DICT = QUERY.camera.K, QUERY.camera.to_dict()
POINTS = QUERY.points3d, QUERY.points2d

opencvs = pytest.mark.parametrize("module", [cv2, our_cv2], ids=["cv2", "ours"])
poselibs = pytest.mark.parametrize("module", [poselib, our_poselib], ids=["poselib", "ours"])
pycolmaps = pytest.mark.parametrize("module", [pycolmap, our_pycolmap], ids=["pycolmap", "ours"])


def error(R, t):
    return absolute_pose_error_deg(R, np.ravel(t), QUERY.R, QUERY.t, QUERY.points3d)


def check_vectors(rvec, tvec, inliers):
    assert rvec.shape == tvec.shape == (3, 1)
    assert error(cv2.Rodrigues(rvec)[0], tvec) < 1
    assert inliers.dtype == np.int32 and inliers.shape == (len(inliers), 1)
    assert QUERY.inliers[inliers.ravel()].mean() > 0.9
    assert len(inliers) > 0.9 * QUERY.inliers.sum()


def usac_params():
    params = cv2.UsacParams()
    params.threshold, params.confidence, params.maxIterations = 4.0, 0.99, 1000
    return params


@opencvs
@pytest.mark.parametrize(
    "points",
    [
        POINTS,
        tuple(points[:, None] for points in POINTS),
        tuple(points[None] for points in POINTS),
        tuple(points.astype(np.float32) for points in POINTS),
    ],
    ids=["(N, d)", "(N, 1, d)", "(1, N, d)", "float32"],
)
def test_solve_pnp_ransac_takes_points_in_all_forms(module, points):
    found, rvec, tvec, inliers = module.solvePnPRansac(*points, K, None)
    assert found is True
    check_vectors(rvec, tvec, inliers)


@opencvs
@pytest.mark.parametrize(
    "flags", [cv2.SOLVEPNP_ITERATIVE, cv2.SOLVEPNP_EPNP, cv2.SOLVEPNP_P3P, cv2.SOLVEPNP_AP3P, cv2.SOLVEPNP_SQPNP]
)
def test_solve_pnp_ransac_takes_settings_and_flags(module, flags):
    found, *rest = module.solvePnPRansac(
        *POINTS, K, np.zeros(5), iterationsCount=1000, reprojectionError=3.0, confidence=0.999, flags=flags
    )
    assert found
    check_vectors(*rest)
    found, *rest = module.solvePnPRansac(*POINTS, K, None, None, None, False, 1000, 3.0, 0.999, None, flags)
    assert found
    check_vectors(*rest)


@opencvs
def test_solve_pnp_ransac_with_usac_params(module):
    found, matrix, rvec, tvec, inliers = module.solvePnPRansac(*POINTS, K, None, params=usac_params())
    assert found
    np.testing.assert_allclose(matrix, K)
    assert error(cv2.Rodrigues(np.asarray(rvec))[0], tvec) < 1
    assert len(inliers) > 100


@opencvs
def test_a_guess_and_planar_flags_are_opencvs(module):
    guess = vector_from_rotation(QUERY.R).reshape(3, 1) + 0.01, QUERY.t.reshape(3, 1) + 0.01
    found, *rest = module.solvePnPRansac(*POINTS, K, None, *(each.copy() for each in guess), useExtrinsicGuess=True)
    assert found and error(cv2.Rodrigues(rest[0])[0], rest[1]) < 1
    if module is our_cv2:
        with pytest.raises(ValueError, match="useExtrinsicGuess"):
            module.solvePnPRansac(*POINTS, K, None, *guess, True, scores=QUERY.scores, score_kind="ratio")


def test_solve_pnp_ransac_fails_as_a_value_and_refuses_nonsense():
    found, rvec, tvec, inliers = our_cv2.solvePnPRansac(*(points[:3] * 0 for points in POINTS), K, None)
    assert (found, inliers) == (False, None) and not rvec.any() and not tvec.any()
    with pytest.raises(TypeError, match="reprojectonError"):
        our_cv2.solvePnPRansac(*POINTS, K, None, reprojectonError=2.0)
    with pytest.raises(ValueError, match="objectPoints"):
        our_cv2.solvePnPRansac(QUERY.points2d, QUERY.points2d, K, None)
    with pytest.raises(ValueError, match="objectPoints and imagePoints must have the same length"):
        our_cv2.solvePnPRansac(QUERY.points3d, QUERY.points2d[1:], K, None)
    with pytest.raises(ValueError, match="imagePoints must not contain"):
        our_cv2.solvePnPRansac(QUERY.points3d, QUERY.points2d * np.nan, K, None)


@poselibs
@pytest.mark.parametrize("settings", [{}, {"max_reproj_error": 3.0, "seed": 1}], ids=["defaults", "settings"])
def test_poselib(module, settings):
    pose, info = module.estimate_absolute_pose(QUERY.points2d, QUERY.points3d, DICT, settings, {})
    assert error(pose.R, pose.t) < 1
    assert {"refinements", "iterations", "num_inliers", "inlier_ratio", "model_score", "inliers"} <= info.keys()
    assert len(info["inliers"]) == 300
    assert np.mean(np.array(info["inliers"]) == QUERY.inliers) > 0.9
    assert info["num_inliers"] == sum(info["inliers"])


@poselibs
def test_poselib_takes_bundle_options(module):
    bundle = {"loss_type": "HUBER", "loss_scale": 1.0, "max_iterations": 50}
    pose, _ = module.estimate_absolute_pose(QUERY.points2d, QUERY.points3d, DICT, {}, bundle)
    assert error(pose.R, pose.t) < 1


def test_poselib_refines_the_focal_length():
    off = QUERY.camera.adjusted(1.05, (0, 0), 0.0)
    settings = {"max_error": 3.0, "ransac": {"seed": 2}, "bundle": {"refine_focal_length": True}}
    pose, info = our_poselib.estimate_absolute_pose(QUERY.points2d, QUERY.points3d, off, opt=settings)
    assert error(pose.R, pose.t) < 1
    assert info["camera"]["params"][0] == pytest.approx(QUERY.camera.fx, rel=0.01)
    assert info["covariance"].shape == (7, 7) and info["confidence"] is not None


def test_poselib_reports_a_failure_without_a_pose():
    pose, info = our_poselib.estimate_absolute_pose(NOTHING.points2d[:2], NOTHING.points3d[:2], DICT)
    assert not info["success"] and info["num_inliers"] == 0 and not pose.t.any()
    with pytest.raises(ValueError, match="max_reproj_eror"):
        our_poselib.estimate_absolute_pose(QUERY.points2d, QUERY.points3d, DICT, {"max_reproj_eror": 3.0})


@pytest.mark.parametrize("module", [poselib, our_poselib])
def test_an_initial_pose_is_a_hypothesis(module):
    hard = make_query(400, outlier_ratio=0.98, seed=3)
    near = poselib.CameraPose()
    near.R, near.t = hard.R, 1.001 * hard.t
    few = {"max_iterations": 8, "min_iterations": 8, "max_reproj_error": 2.0}
    pose, info = module.estimate_absolute_pose(hard.points2d, hard.points3d, DICT, few, {}, near)
    assert absolute_pose_error_deg(pose.R, pose.t, hard.R, hard.t, hard.points3d) < 0.5
    _, alone = module.estimate_absolute_pose(hard.points2d, hard.points3d, DICT, few, {})
    assert alone["num_inliers"] < info["num_inliers"]


def check_report(found):
    pose = found["cam_from_world"]
    assert type(pose) is pycolmap.Rigid3d
    assert error(pose.rotation.matrix(), pose.translation) < 1
    assert found["num_inliers"] == found["inlier_mask"].sum()
    assert (found["inlier_mask"] == QUERY.inliers).mean() > 0.9


@pycolmaps
@pytest.mark.parametrize("name", ["estimate_absolute_pose", "estimate_and_refine_absolute_pose"])
@pytest.mark.parametrize("options", ["none", "dict", "object"])
def test_pycolmap(module, name, options):
    ransac = {"max_error": 3.0, "max_num_trials": 2000}
    given = {
        "none": (),
        "dict": ({"ransac": ransac},),
        "object": (pycolmap.AbsolutePoseEstimationOptions({"ransac": pycolmap.RANSACOptions(ransac)}),),
    }[options]
    check_report(getattr(module, name)(QUERY.points2d, QUERY.points3d, pycolmap.Camera(**DICT), *given))


@pycolmaps
def test_the_covariance_for_pycolmap_agrees_with_the_scatter(module):
    found = module.estimate_and_refine_absolute_pose(
        QUERY.points2d, QUERY.points3d, pycolmap.Camera(**DICT), {"ransac": {"max_error": 3.0}}, {}, True
    )
    check_report(found)
    assert found["covariance"].shape == (6, 6)
    assert 1e-5 < np.sqrt(found["covariance"][0, 0]) < 1e-2


@pycolmaps
def test_pycolmap_writes_the_focal_length_into_the_camera(module):
    camera = pycolmap.Camera(**QUERY.camera.adjusted(1.04, (0, 0), 0.0).to_dict())
    found = module.estimate_and_refine_absolute_pose(
        QUERY.points2d, QUERY.points3d, camera, {"ransac": {"max_error": 12.0}}, {"refine_focal_length": True}
    )
    pose = found["cam_from_world"]
    assert error(pose.rotation.matrix(), pose.translation) < 1
    assert camera.params[0] == pytest.approx(QUERY.camera.fx, rel=0.01)


def test_pycolmap_estimates_an_unknown_focal_length():
    camera = pycolmap.Camera(**QUERY.camera.adjusted(1.3, (0, 0), 0.0).to_dict())
    found = our_pycolmap.estimate_absolute_pose(
        QUERY.points2d, QUERY.points3d, camera, {"estimate_focal_length": True, "ransac": {"max_error": 3.0}}
    )
    check_report(found)
    assert camera.params[0] == pytest.approx(QUERY.camera.fx, rel=0.02)


def test_unsupported_arguments_of_pycolmap_are_refused():
    call = our_pycolmap.estimate_and_refine_absolute_pose
    assert call(QUERY.points2d[:2], QUERY.points3d[:2], DICT) is None
    for wrong in ({"ransak": {}}, {"ransac": {"max_eror": 1.0}}):
        with pytest.raises(ValueError, match="unknown setting"):
            call(QUERY.points2d, QUERY.points3d, DICT, wrong)
    with pytest.raises(ValueError, match="refine_extra_params"):
        call(QUERY.points2d, QUERY.points3d, DICT, {}, {"refine_extra_params": True})


def test_rotation_vectors_come_back(rng):
    for length in (0.0, 1e-9, 0.5, 3.0, np.pi - 1e-6):
        vector = rng.normal(size=3)
        vector *= length / np.linalg.norm(vector)
        np.testing.assert_allclose(vector_from_rotation(rotation_from_vector(vector)), vector, atol=1e-7)


def test_scores_help_all_of_them():
    options = caransac.Options(seed=5)
    known = {"scores": QUERY.scores, "score_kind": "ratio"}
    found, rvec, tvec, _ = our_cv2.solvePnPRansac(*POINTS, K, None, options=options, **known)
    direct = caransac.estimate_absolute_pose(QUERY.points2d, QUERY.points3d, K, options=options, **known)
    assert found
    np.testing.assert_allclose(rotation_from_vector(rvec.ravel()), direct.R, atol=1e-9)
    np.testing.assert_allclose(tvec.ravel(), direct.t)
