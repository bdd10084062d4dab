"""The same calls of poselib and of our drop-in."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import poselib
import pytest

import caransac
from caransac import Options
from caransac.geometry import (
    essential_from_pose,
    fundamental_from_essential,
    pose_error_deg,
    rotation_from_vector,
    sampson_sq,
)
from caransac.integrations import poselib as ours
from caransac.synthetic import make_pair

PAIR = make_pair(400, outlier_ratio=0.5, noise_px=0.4, seed=6)
POINTS = PAIR.points1, PAIR.points2
CAMERA = {"model": "SIMPLE_PINHOLE", "width": 1024, "height": 768, "params": list(PAIR.camera1.params)}
both = pytest.mark.parametrize("module", [poselib, ours], ids=["poselib", "ours"])


def check_info(info):
    types = {
        "refinements": int,
        "iterations": int,
        "num_inliers": int,
        "inlier_ratio": float,
        "model_score": float,
        "inliers": list,
    }
    assert {name: type(info[name]) for name in types} == types
    assert len(info["inliers"]) == 400
    assert {type(inlier) for inlier in info["inliers"]} == {bool}
    assert info["num_inliers"] == sum(info["inliers"])
    assert info["inlier_ratio"] == info["num_inliers"] / 400
    assert (np.array(info["inliers"]) == PAIR.inliers).mean() > 0.95


CALLS = {
    "positions": ((CAMERA, CAMERA, {"max_epipolar_error": 1.0}, {}), {}),
    "no settings": ((CAMERA, CAMERA), {}),
    "names": ((), {"camera1_dict": CAMERA, "camera2_dict": CAMERA, "ransac_opt": {"seed": 3}, "bundle_opt": {}}),
    "objects": ((), {name: poselib.Camera(*[CAMERA[key] for key in ("model", "params", "width", "height")])
                     for name in ("camera1", "camera2")}),
    "all settings": ((CAMERA, CAMERA, poselib.RansacOptions(), poselib.BundleOptions(), None), {}),
}  # fmt: skip


@both
@pytest.mark.parametrize("call", CALLS)
def test_relative_pose(module, call):
    arguments, keywords = CALLS[call]
    pose, info = module.estimate_relative_pose(*POINTS, *arguments, **keywords)
    check_info(info)
    assert pose_error_deg(pose.R, pose.t, PAIR.R, PAIR.t) < 2
    assert pose.R.shape == (3, 3)
    assert pose.t.shape == (3,)
    assert pose.q.shape == (4,)
    assert np.array_equal(pose.Rt, np.column_stack([pose.R, pose.t]))
    assert np.allclose(pose.center(), -pose.R.T @ pose.t)
    same = poselib.CameraPose()
    same.q, same.t = pose.q, pose.t  # our pose can be converted to theirs
    assert np.allclose(same.R, pose.R)


@both
def test_the_size_of_a_camera_does_not_matter(module):
    small = CAMERA | {"width": 10, "height": 10}
    pose, _ = module.estimate_relative_pose(*POINTS, small, small)
    assert pose_error_deg(pose.R, pose.t, PAIR.R, PAIR.t) < 2


@both
@pytest.mark.parametrize("arguments", [(), ({"max_epipolar_error": 1.0}, {}), ({}, {"loss_type": "TRUNCATED"}, None)])
def test_fundamental(module, arguments):
    F, info = module.estimate_fundamental(*POINTS, *arguments)
    check_info(info)
    assert F.shape == (3, 3)
    assert np.linalg.norm(F) == pytest.approx(1)
    assert np.sqrt(np.median(sampson_sq(F, PAIR.points1[PAIR.inliers], PAIR.points2[PAIR.inliers]))) < 0.6


@pytest.mark.slow
@both
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("arguments", [(), ({"max_epipolar_error": 1.0}, {}), ({}, {"loss_type": "TRUNCATED"}, None)])
def test_shared_focal_relative_pose(module, centred, arguments):
    centre = np.array(PAIR.camera1.params[1:])
    points = [points - centre if centred else points for points in POINTS]
    pp = np.zeros(2) if centred else centre
    pair, info = module.estimate_shared_focal_relative_pose(*points, pp, *arguments)
    check_info(info)
    assert pose_error_deg(pair.pose.R, pair.pose.t, PAIR.R, PAIR.t) < 2
    for camera in (pair.camera1, pair.camera2):
        assert camera.model_name() == "SIMPLE_PINHOLE"
        assert (camera.model_id, camera.width, camera.height) == (0, -1, -1)
        assert camera.focal() == camera.focal_x() == camera.focal_y() == camera.params[0]
        assert camera.focal() == pytest.approx(PAIR.camera1.fx, rel=0.05)
        assert np.linalg.norm(camera.principal_point() - pp) < 5
        assert np.array_equal(camera.principal_point(), camera.params[1:])
        pixels = np.array([[100.0, 200.0], [300.0, 50.0]])
        rays = np.asarray(camera.unproject(pixels))
        assert np.allclose(rays, (pixels - camera.principal_point()) / camera.focal())
        assert np.allclose(camera.project(rays), pixels)
    assert "SIMPLE_PINHOLE -1 -1" in repr(pair)


@both
def test_a_shared_focal_needs_no_principal_point_and_its_cameras_are_taken(module):
    centre = np.array(PAIR.camera1.params[1:])
    points = [points - centre for points in POINTS]
    pair, _ = module.estimate_shared_focal_relative_pose(*points)
    pose, info = module.estimate_relative_pose(*points, pair.camera1, pair.camera2)
    check_info(info)
    assert pose_error_deg(pose.R, pose.t, PAIR.R, PAIR.t) < 2


def test_a_shared_focal_length_has_a_deviation():
    pair, _ = ours.estimate_shared_focal_relative_pose(*POINTS, PAIR.camera1.params[1:], scores=PAIR.scores,
                                                       score_kind="ratio")  # fmt: skip
    # PoseLib has no distortion here.
    assumed = replace(caransac.Camera.of_unknown_focal(1024, 768), distortion_deviation=0.0)
    expected = caransac.estimate_relative_pose(
        *POINTS, assumed, assumed, same_camera=True, scores=PAIR.scores, score_kind="ratio"
    )
    assert pair.camera1.focal_deviation == pytest.approx(expected.camera1.focal_deviation, rel=0.1)
    assert pair.camera1.focal() == pytest.approx(expected.camera1.fx, rel=0.005)
    assert 0 < pair.camera1.focal_deviation < 0.08


@both
@pytest.mark.parametrize("convert", [np.float32, lambda points: points[::-1][::-1], list, np.ndarray.tolist])
def test_forms_of_points(module, convert):
    points = (convert(points) for points in POINTS)
    pose, info = module.estimate_relative_pose(*points, CAMERA, CAMERA, {}, {})
    check_info(info)
    assert pose_error_deg(pose.R, pose.t, PAIR.R, PAIR.t) < 2


def test_scores_compare_in_the_same_way():
    _, theirs = poselib.estimate_relative_pose(*POINTS, CAMERA, CAMERA)
    _, found = ours.estimate_relative_pose(*POINTS, CAMERA, CAMERA)
    assert found["model_score"] == pytest.approx(theirs["model_score"] * PAIR.camera1.fx**2, rel=0.02)


def test_probabilities_and_confidence_are_returned():
    _, info = ours.estimate_relative_pose(*POINTS, CAMERA, CAMERA, scores=PAIR.scores, score_kind="ratio")
    assert info["probabilities"][PAIR.inliers].mean() > 0.8 > 0.2 > info["probabilities"][~PAIR.inliers].mean()
    assert info["confidence"] > 0.9


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"max_epipolar_error": 0.7}, {"max_error_px": 0.7}),
        ({"max_error": 0.7}, {"max_error_px": 0.7}),
        ({"max_error": 0.7, "ransac": {"seed": 4}, "bundle": {"verbose": False}}, {"max_error_px": 0.7, "seed": 4}),
        ({"success_prob": 0.5, "seed": 2}, {"success_probability": 0.5, "seed": 2}),
        ({"max_iterations": 100}, {"rounds": 1, "samples_per_round": 100}),
        ({"max_iterations": 600, "min_iterations": 600}, {"rounds": 3, "samples_per_round": 200, "early_stop": False}),
        ({"max_iterations": 100_000, "min_iterations": 1000}, {}),
        (poselib.RansacOptions(), {}),
        (Options(seed=9, rounds=1), {"seed": 9, "rounds": 1}),
        ({"progressive_sampling": True, "real_focal_check": False}, {}),
    ],
)
def test_settings_mean_the_same(settings, options):
    told = settings if isinstance(settings, Options) else Options(**{"max_error_px": 1.0} | options)
    expected = caransac.estimate_relative_pose(*POINTS, CAMERA, CAMERA, options=told)
    for keywords in ({"ransac_opt": settings}, {"opt": settings}):
        pose, info = ours.estimate_relative_pose(*POINTS, CAMERA, CAMERA, **keywords)
        np.testing.assert_allclose(pose.R, expected.R, rtol=0, atol=1e-14)  # the conversion to a quaternion rounds
        assert np.array_equal(pose.t, expected.t)
        assert info["iterations"] == expected.num_hypotheses
        assert info["inliers"] == expected.inliers.tolist()
    expected = caransac.estimate_fundamental(*POINTS, options=told)
    F, _ = ours.estimate_fundamental(*POINTS, settings, {})
    assert np.array_equal(F, expected.F)


# Values of poselib.RansacOptions() and poselib.BundleOptions() in version 3.0.
RANSAC_3 = {
    "max_iterations": 100_000,
    "min_iterations": 1000,
    "dyn_num_trials_mult": 3.0,
    "success_prob": 0.9999,
    "seed": 0,
    "progressive_sampling": False,
    "max_prosac_iterations": 100_000,
}
BUNDLE_3 = {
    "max_iterations": 100,
    "loss_scale": 1.0,
    "loss_type": "CAUCHY",
    "gradient_tol": 1e-10,
    "step_tol": 1e-8,
    "relative_cost_tol": 1e-10,
    "initial_lambda": 1e-3,
    "min_lambda": 1e-10,
    "max_lambda": 1e10,
    "lambda_factor": 10.0,
    "verbose": False,
    "lambda_update": "NIELSEN",
    "damping": "LEVENBERG",
}


def test_all_settings_of_version_3_are_understood():
    options = {
        "max_error": 0.7,
        "tangent_sampson": False,
        "real_focal_check": False,
        "ransac": RANSAC_3 | {"seed": 4},
        "bundle": BUNDLE_3,
    }
    expected = caransac.estimate_relative_pose(*POINTS, CAMERA, CAMERA, options=Options(max_error_px=0.7, seed=4))
    for arguments, keywords in (((options,), {}), ((), {"opt": options}), ((options, None), {})):
        pose, info = ours.estimate_relative_pose(*POINTS, CAMERA, CAMERA, *arguments, **keywords)
        assert np.array_equal(pose.t, expected.t) and info["inliers"] == expected.inliers.tolist()
        F, info = ours.estimate_fundamental(*POINTS, *arguments, **keywords)
        assert F.shape == (3, 3) and info["num_inliers"] > 150
        pair, info = ours.estimate_shared_focal_relative_pose(*POINTS, (512, 384), *arguments, **keywords)
        assert pair.camera1.focal() > 0 and info["num_inliers"] > 150


@both
def test_iterations_can_be_fixed(module):
    _, info = module.estimate_relative_pose(*POINTS, CAMERA, CAMERA, {"max_iterations": 512, "min_iterations": 512}, {})
    assert info["iterations"] == 512


@both
@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_points(module, count):
    points = PAIR.points1[:count], PAIR.points2[:count]
    pose, info = module.estimate_relative_pose(*points, CAMERA, CAMERA)
    assert (info["num_inliers"], info["inlier_ratio"]) == (0, 0.0)
    assert info["inliers"] == [False] * count
    assert info["model_score"] == sys.float_info.max
    assert type(info["inlier_ratio"]) is float
    # Scripts such as posebench's use these values without a check.
    assert np.array_equal(pose.R, np.eye(3)) and np.array_equal(pose.t, np.zeros(3))
    if module is ours:  # poselib returns uninitialised memory for these
        assert not info["success"] and info["confidence"] == 0
        shared, info = ours.estimate_shared_focal_relative_pose(*points)
        assert np.array_equal(shared.pose.Rt, np.eye(3, 4)) and shared.camera1.focal() > 0
        assert (info["num_inliers"], info["success"]) == (0, False)
        F, info = ours.estimate_fundamental(*points)
        assert np.array_equal(F, np.eye(3))
        assert (info["num_inliers"], info["success"], info["confidence"]) == (0, False, 0)


@both
def test_no_limit_of_iterations(module):
    settings = {"max_iterations": 2**31 - 1, "max_epipolar_error": 1.0}
    _, info = module.estimate_relative_pose(*POINTS, CAMERA, CAMERA, settings)
    assert info["num_inliers"] > 150


def test_a_list_of_no_points():
    """An empty list, which poselib itself rejects."""
    pose, info = ours.estimate_relative_pose([], [], CAMERA, CAMERA)
    assert np.array_equal(pose.Rt, np.eye(3, 4)) and info["inliers"] == []
    assert not ours.estimate_homography([], [])[1]["success"]
    assert not ours.estimate_fundamental([], [])[1]["success"]
    assert not ours.estimate_absolute_pose([], [], CAMERA)[1]["success"]


def test_degenerate_points():
    same = np.ones((30, 2))
    pose, info = ours.estimate_relative_pose(same, same, CAMERA, CAMERA)
    assert np.array_equal(pose.Rt, np.eye(3, 4))
    assert (info["num_inliers"], info["success"]) == (0, False)
    assert np.array_equal(ours.estimate_fundamental(same, same)[0], np.eye(3))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"ransac_opt": {"max_epipolar_eror": 1}}, "unknown setting of ransac_opt 'max_epipolar_eror'; did you mean"),
        ({"opt": {"max_error": 1, "ransac": {"sed": 1}}}, "'sed'; did you mean 'seed'"),
        ({"opt": {"bundle": {"loss": 1}}}, "unknown setting of bundle 'loss'; did you mean 'loss_\\w+'"),
        ({"bundle_opt": {"los_type": "HUBER"}}, "unknown setting of bundle_opt 'los_type'; did you mean 'loss_type'"),
        ({"ransac_opt": {"max_epipolar_error": -1}}, "max_epipolar_error: max_error_px must be"),
        ({"ransac_opt": {"max_iterations": 0}}, "max_iterations: samples_per_round must be"),
        ({"ransac_opt": {"max_iterations": "many"}}, "max_iterations: "),
        ({"ransac_opt": {"min_iterations": 1.5}}, "min_iterations: "),
        ({"ransac_opt": {"success_prob": 1.0}}, "success_prob: success_probability must be"),
        ({"ransac_opt": {"real_focal_check": True}}, "real_focal_check: only False is supported"),
        ({"opt": {"tangent_sampson": True}}, "tangent_sampson: only False is supported"),
        ({"ransac_opt": [1]}, "ransac_opt must be a dict"),
        ({"bundle_opt": poselib.CameraPose()}, "bundle_opt must be a dict"),
        ({"ransac_opt": {}, "opt": {}}, "ransac_opt and opt are the same argument"),
    ],
)
def test_mistakes_in_settings_raise(keywords, message):
    with pytest.raises(ValueError, match=message):
        ours.estimate_relative_pose(*POINTS, CAMERA, CAMERA, **keywords)
    with pytest.raises(ValueError, match=message):
        ours.estimate_fundamental(*POINTS, **keywords)


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((*POINTS, CAMERA), {}, "camera2 is missing"),
        ((*POINTS, CAMERA, CAMERA), {"camera1": CAMERA}, "camera1_dict and camera1 are the same argument"),
        ((*POINTS, CAMERA, CAMERA | {"model": "PINHOL"}), {}, "camera2: model must be one of"),
        ((*POINTS, CAMERA, CAMERA), {"initial_pose": np.eye(3)}, "initial_model must be a pose"),
        ((PAIR.points1, PAIR.points2[:9], CAMERA, CAMERA), {}, "same length"),
        ((PAIR.points1 * np.nan, PAIR.points2, CAMERA, CAMERA), {}, "points1 must not contain NaN"),
    ],
)
def test_mistakes_raise(arguments, keywords, message):
    with pytest.raises(ValueError, match=message):
        ours.estimate_relative_pose(*arguments, **keywords)


def test_initial_models_have_the_same_effect_as_in_poselib():
    hard = make_pair(400, outlier_ratio=0.93, seed=3)
    points, few = (hard.points1, hard.points2), {"max_iterations": 8, "min_iterations": 8}
    near, K = poselib.CameraPose(), hard.camera1.K
    near.R, near.t = rotation_from_vector(np.deg2rad([0.3, -0.2, 0.3])) @ hard.R, hard.t
    F = fundamental_from_essential(essential_from_pose(near.R, near.t), K, K)
    camera = poselib.Camera(*[CAMERA[key] for key in ("model", "params", "width", "height")])
    known, right = poselib.ImagePair(), np.flatnonzero(hard.inliers)
    known.pose, known.camera1, known.camera2 = near, camera, camera
    calls = {
        "estimate_relative_pose": ((CAMERA, CAMERA), near, poselib.CameraPose()),
        "estimate_fundamental": ((), F, None),
        "estimate_shared_focal_relative_pose": (((512.0, 384.0),), known, poselib.ImagePair()),
    }
    for name, (cameras, initial, nothing) in calls.items():
        for module in (poselib, ours):
            found = [
                np.array(getattr(module, name)(*points, *cameras, few, {}, each)[1]["inliers"])[right].mean()
                for each in (nothing, initial)
            ]
            assert found[0] < 0.4 and found[1] > 0.7, (module, name, found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*POINTS, [1, 2, 3]), r"pp must have shape \(2,\), got \(3,\)"),
        ((*POINTS, [np.nan, 2]), "pp must not contain NaN"),
        ((PAIR.points1, PAIR.points2[:9]), "same length"),
        ((*POINTS, (0, 0), {"max_epipolar_eror": 1}), "unknown setting of ransac_opt"),
    ],
)
def test_mistakes_about_a_shared_focal_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        ours.estimate_shared_focal_relative_pose(*arguments)


@pytest.mark.slow
def test_poselib_is_not_needed():
    program = """
import sys
sys.modules["poselib"] = None
from caransac.integrations import poselib
from caransac.synthetic import make_pair
pair = make_pair(100)
print(poselib.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, {}, {})[0].R.shape)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(3, 3)"
