"""The same calls of pycolmap and of our drop-in."""

import subprocess
import sys

import numpy as np
import pycolmap
import pytest

import caransac
from caransac import Options
from caransac.geometry import essential_from_pose, pose_error_deg, sampson_sq
from caransac.integrations import pycolmap as ours
from caransac.synthetic import make_pair

PAIR = make_pair(400, outlier_ratio=0.5, noise_px=0.4, seed=6)
POINTS = PAIR.points1, PAIR.points2
DICT = {"model": "SIMPLE_PINHOLE", "width": 1024, "height": 768, "params": list(PAIR.camera1.params)}
CAMERA = pycolmap.Camera(**DICT)
both = pytest.mark.parametrize("module", [pycolmap, ours], ids=["pycolmap", "ours"])
OPTIONS = {"nothing": (), "object": (pycolmap.RANSACOptions(max_error=2.0),), "dict": ({"max_error": 2.0},)}


def check_report(found):
    assert type(found["num_inliers"]) is int
    assert found["inlier_mask"].shape == (400,)
    assert found["inlier_mask"].dtype == bool
    assert found["num_inliers"] == found["inlier_mask"].sum()
    assert (found["inlier_mask"] == PAIR.inliers).mean() > 0.95


@both
@pytest.mark.parametrize("camera", [CAMERA, DICT], ids=["object", "dict"])
@pytest.mark.parametrize("options", OPTIONS)
def test_essential_matrix(module, camera, options):
    found = module.estimate_essential_matrix(*POINTS, camera, camera, *OPTIONS[options])
    check_report(found)
    pose = found["cam2_from_cam1"]
    assert type(pose) is pycolmap.Rigid3d
    R, t = pose.rotation.matrix(), pose.translation
    assert pose_error_deg(R, t, PAIR.R, PAIR.t) < 2
    assert np.linalg.norm(t) == pytest.approx(1)
    assert found["E"].shape == (3, 3)
    expected = essential_from_pose(R, t)
    assert np.allclose(found["E"] * np.sign(np.vdot(found["E"], expected)), expected, atol=1e-6)


@both
@pytest.mark.parametrize("options", OPTIONS)
def test_fundamental_matrix(module, options):
    found = module.estimate_fundamental_matrix(*POINTS, *OPTIONS[options])
    check_report(found)
    assert found["F"].shape == (3, 3)
    assert np.sqrt(np.median(sampson_sq(found["F"], *(points[PAIR.inliers] for points in POINTS)))) < 0.6


@both
def test_names_of_arguments(module):
    points = {"points2D1": PAIR.points1, "points2D2": PAIR.points2}
    options = {"estimation_options": pycolmap.RANSACOptions(random_seed=1)}
    check_report(module.estimate_essential_matrix(**points, camera1=CAMERA, camera2=CAMERA, **options))
    check_report(module.estimate_fundamental_matrix(**points, **options, use_sampson_refinement=False))


@both
@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_points(module, count):
    points = PAIR.points1[:count], PAIR.points2[:count]
    assert module.estimate_essential_matrix(*points, CAMERA, CAMERA) is None
    assert module.estimate_fundamental_matrix(*points) is None


@both
def test_degenerate_points(module):
    same = np.ones((30, 2))
    assert module.estimate_fundamental_matrix(same, same) is None
    if module is ours:
        assert module.estimate_essential_matrix(same, same, CAMERA, CAMERA) is None


@both
def test_half_a_pixel_is_absorbed_by_the_principal_point(module):
    focal, cx, cy = DICT["params"]
    shifted = pycolmap.Camera(**DICT | {"params": [focal, cx + 0.5, cy + 0.5]})
    options = {"max_error": 1.0, "random_seed": 1}
    one = module.estimate_essential_matrix(*POINTS, CAMERA, CAMERA, options)
    two = module.estimate_essential_matrix(*(points + 0.5 for points in POINTS), shifted, shifted, options)
    assert np.allclose(one["cam2_from_cam1"].matrix(), two["cam2_from_cam1"].matrix(), atol=2e-4)
    wrong = module.estimate_essential_matrix(*(points + 5 for points in POINTS), CAMERA, CAMERA, options)
    assert not np.allclose(one["cam2_from_cam1"].matrix(), wrong["cam2_from_cam1"].matrix(), atol=2e-4)


def test_distorted_cameras_of_all_models():
    rays = PAIR.camera1.pixels_to_rays(PAIR.points1), PAIR.camera2.pixels_to_rays(PAIR.points2)
    for model, params in {
        "RADIAL": [800, 512, 384, -0.15, 0.04],
        "FULL_OPENCV": [800, 820, 512, 384, 0.3, -0.1, 0.001, -0.002, 0.02, 0.45, -0.08, 0.01],
    }.items():
        camera = pycolmap.Camera(model=model, width=1024, height=768, params=params)
        bent = (camera.img_from_cam(np.column_stack([ray, np.ones(len(ray))])) for ray in rays)
        pose = ours.estimate_essential_matrix(*bent, camera, camera, {"max_error": 1.0})["cam2_from_cam1"]
        assert pose_error_deg(pose.rotation.matrix(), pose.translation, PAIR.R, PAIR.t) < 2


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (None, {"max_error_px": 4.0}),
        ({}, {"max_error_px": 4.0}),
        (pycolmap.RANSACOptions(), {"max_error_px": 4.0}),
        ({"max_error": 1.0, "random_seed": 5}, {"max_error_px": 1.0, "seed": 5}),
        ({"confidence": 0.5, "max_num_trials": 300}, {"max_error_px": 4.0, "success_probability": 0.5, "rounds": 2,
                                                      "samples_per_round": 150}),
        (pycolmap.RANSACOptions(max_num_trials=512, min_num_trials=512), {"max_error_px": 4.0, "rounds": 2,
                                                                          "early_stop": False}),
        (Options(seed=9, rounds=1), {"seed": 9, "rounds": 1}),
    ],
)  # fmt: skip
def test_settings_mean_the_same(settings, options):
    scores = {"scores": PAIR.scores, "score_kind": "ratio"}
    expected = caransac.estimate_relative_pose(*POINTS, DICT, DICT, **scores, options=Options(**options))
    found = ours.estimate_essential_matrix(*POINTS, CAMERA, CAMERA, settings, **scores)
    assert np.array_equal(found["E"], expected.E)
    assert np.array_equal(found["inlier_mask"], expected.inliers)
    assert np.array_equal(found["probabilities"], expected.probabilities)
    assert found["confidence"] == expected.confidence
    expected = caransac.estimate_fundamental(*POINTS, options=Options(**options))
    assert np.array_equal(ours.estimate_fundamental_matrix(*POINTS, settings)["F"], expected.F)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*POINTS, CAMERA, CAMERA, {"max_eror": 1}), "unknown setting of estimation_options 'max_eror'; did you mean"),
        ((*POINTS, CAMERA, CAMERA, {"max_error": 0}), "max_error: max_error_px must be"),
        ((*POINTS, CAMERA, CAMERA, {"random_seed": -2}), "random_seed: seed must be"),
        ((*POINTS, CAMERA, CAMERA, {"max_num_trials": 0}), "max_num_trials: "),
        ((*POINTS, CAMERA, CAMERA, 3), "estimation_options must be a pycolmap.RANSACOptions"),
        (
            (*POINTS, CAMERA, pycolmap.Camera(model="EQUIRECTANGULAR", width=9, height=9, params=[9, 9])),
            "camera2: model must",
        ),
        ((*POINTS, DICT | {"focal": 3}, CAMERA), "camera1: a camera dict has model"),
        ((PAIR.points1, PAIR.points2[:9], CAMERA, CAMERA), "same length"),
        ((PAIR.points1, PAIR.points2 * np.inf, CAMERA, CAMERA), "points2 must not contain NaN"),
    ],
)
def test_mistakes_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        ours.estimate_essential_matrix(*arguments)


@pytest.mark.slow
def test_without_pycolmap():
    program = """
import sys
sys.modules["pycolmap"] = None
from caransac.integrations import pycolmap
from caransac.synthetic import make_pair
pair = make_pair(100)
print(pycolmap.estimate_fundamental_matrix(pair.points1, pair.points2)["F"].shape)
try:
    pycolmap.estimate_essential_matrix(pair.points1, pair.points2, pair.camera1, pair.camera2)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(3, 3)", "pycolmap's objects need pycolmap: pip install 'caransac[colmap]'"]
