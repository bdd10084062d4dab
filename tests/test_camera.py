"""Cameras: all input forms, distortion, and its inverse."""

import json
import re

import cv2
import numpy as np
import poselib
import pycolmap
import pytest

from caransac import Camera
from caransac.camera import PARAMETERS
from caransac.camera_priors import UNKNOWN_DISTORTION_DEVIATION, usual_distortion
from caransac.given_cameras import as_camera

EXAMPLES = {
    "SIMPLE_PINHOLE": (800, 512, 384),
    "PINHOLE": (800, 820, 512, 384),
    "SIMPLE_RADIAL": (800, 512, 384, -0.12),
    "RADIAL": (800, 512, 384, -0.15, 0.04),
    "OPENCV": (800, 820, 512, 384, -0.15, 0.04, 0.001, -0.002),
    "FULL_OPENCV": (800, 820, 512, 384, 0.3, -0.1, 0.001, -0.002, 0.02, 0.45, -0.08, 0.01),
    "FOV": (500, 510, 512, 384, 0.9),
    "SIMPLE_DIVISION": (600, 512, 384, -0.25),
    "DIVISION": (600, 610, 512, 384, 0.15),
    "EUCM": (450, 460, 512, 384, 0.6, 1.1),
    "SIMPLE_FISHEYE": (450, 512, 384),
    "FISHEYE": (450, 460, 512, 384),
    "SIMPLE_RADIAL_FISHEYE": (450, 512, 384, 0.03),
    "RADIAL_FISHEYE": (450, 512, 384, 0.03, -0.01),
    "OPENCV_FISHEYE": (450, 460, 512, 384, 0.03, -0.01, 0.002, -0.001),
    "THIN_PRISM_FISHEYE": (450, 460, 512, 384, 0.03, -0.01, 0.001, -0.002, 0.002, -0.001, 0.002, -0.003),
}
FISHEYE = tuple(model for model in PARAMETERS if "FISHEYE" in model)


@pytest.mark.parametrize("model", PARAMETERS)
def test_rays_match_colmap(rng, model):
    pixels = rng.uniform((0, 0), (1024, 768), (200, 2))
    camera = Camera(model, EXAMPLES[model], 1024, 768)
    oracle = pycolmap.Camera(model=model, width=1024, height=768, params=EXAMPLES[model])
    assert np.allclose(camera.pixels_to_rays(pixels), oracle.cam_from_img(pixels), atol=1e-8)
    assert np.array_equal(camera.K, oracle.calibration_matrix())


@pytest.mark.parametrize("model", FISHEYE)
def test_a_fisheye_sees_rays_as_colmap_does(rng, model):
    """Directions up to 85 degrees are recovered. Beyond that, and behind the camera, there is no ray."""
    camera = Camera(model, EXAMPLES[model], 1024, 768)
    oracle = pycolmap.Camera(model=model, width=1024, height=768, params=EXAMPLES[model])
    angle, turn = np.deg2rad(rng.uniform(0, 84.9, 300)), rng.uniform(0, 2 * np.pi, 300)
    rays = np.tan(angle)[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    pixels = oracle.img_from_cam(np.c_[rays, np.ones(300)])
    np.testing.assert_allclose(camera.rays_to_pixels(rays), pixels, atol=1e-9)
    found = camera.pixels_to_rays(pixels)
    np.testing.assert_allclose(found, rays, rtol=1e-8, atol=1e-9)
    directions = np.c_[found, np.ones(300)] / np.sqrt(1 + np.sum(found**2, axis=1, keepdims=True))
    np.testing.assert_allclose(directions, oracle.cam_ray_from_img(pixels), atol=1e-7)
    beyond = np.deg2rad(rng.uniform(85.1, 100, 100))[:, None] * [0.6, 0.8]
    seen = camera.distortion.apply(beyond)[0] * [camera.fx, camera.fy] + camera.K[:2, 2]
    assert np.isnan(camera.pixels_to_rays(seen)).all()
    assert camera.pixels_to_rays(camera.K[:2, 2][None]).tolist() == [[0, 0]] or "PRISM" in model


@pytest.mark.parametrize("model", ["FOV", "SIMPLE_DIVISION", "DIVISION", "EUCM"])
def test_lenses_with_closed_forms_see_rays_as_colmap_does(rng, model):
    camera = Camera(model, EXAMPLES[model], 1024, 768)
    oracle = pycolmap.Camera(model=model, width=1024, height=768, params=EXAMPLES[model])
    radius = rng.uniform(0, 1.2 if model == "DIVISION" else 11, 300)  # the maximum for DIVISION with k > 0
    turn = rng.uniform(0, 2 * np.pi, 300)
    rays = radius[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    pixels = oracle.img_from_cam(np.c_[rays, np.ones(300)])
    np.testing.assert_allclose(camera.rays_to_pixels(rays), pixels, atol=1e-9)
    np.testing.assert_allclose(camera.pixels_to_rays(pixels), rays, rtol=1e-6, atol=1e-9)
    limits = {"FOV": np.pi / 2 / 0.9, "SIMPLE_DIVISION": 2.0, "DIVISION": 0.15**-0.5, "EUCM": (0.36 * 1.1) ** -0.5}
    far = limits[model] * np.linspace(1.001, 5, 50)[:, None] * [0.6, 0.8] * [camera.fx, camera.fy] + camera.K[:2, 2]
    assert np.isnan(camera.pixels_to_rays(far)).all()


def test_lenses_with_closed_forms_begin_as_pinholes(rng):
    pixels = rng.uniform((0, 0), (1024, 768), (20, 2))
    pinhole = Camera("PINHOLE", (500, 510, 512, 384), focal_deviation=0.1)
    for model, numbers in (("FOV", (0,)), ("DIVISION", (0,)), ("EUCM", (0, 1))):
        camera = Camera(model, (*pinhole.params, *numbers), focal_deviation=0.1)
        np.testing.assert_allclose(camera.pixels_to_rays(pixels), pinhole.pixels_to_rays(pixels))
        np.testing.assert_allclose(camera.rays_to_pixels(pinhole.pixels_to_rays(pixels)), pixels)
    with pytest.raises(ValueError, match="focal_deviation must be 0 for FOV"):
        Camera("FOV", (500, 510, 512, 384, 0.9), focal_deviation=0.1)


@pytest.mark.parametrize("model", PARAMETERS)
def test_pixels_come_back(rng, model):
    pixels = rng.uniform((0, 0), (1024, 768), (200, 2))
    camera = Camera(model, EXAMPLES[model])
    assert np.allclose(camera.rays_to_pixels(camera.pixels_to_rays(pixels)), pixels, atol=1e-7)


@pytest.mark.parametrize("model", PARAMETERS)
def test_a_pinhole_camera_has_the_same_rays(rng, model):
    camera = Camera(model, EXAMPLES[model], 1024, 768)
    pinhole = camera.pinhole
    assert np.array_equal(pinhole.K, camera.K) and not pinhole.is_distorted
    assert (pinhole.width, pinhole.height) == (1024, 768)
    pixels = rng.uniform((0, 0), (1024, 768), (200, 2))
    moved = camera.undistort_pixels(pixels)
    np.testing.assert_allclose(pinhole.pixels_to_rays(moved), camera.pixels_to_rays(pixels), atol=1e-14)
    assert np.array_equal(moved, pixels) != camera.is_distorted


def test_all_forms_describe_the_same_camera():
    K = np.array([[800, 0, 512], [0, 820, 384], [0, 0, 1]], dtype=np.float32)
    expected = Camera("PINHOLE", (800, 820, 512, 384))
    assert as_camera(K, "camera1") == expected
    assert as_camera(K.tolist(), "camera1") == expected
    assert as_camera(expected, "camera1") is expected
    assert as_camera({"model": "PINHOLE", "params": [800, 820, 512, 384]}, "camera1") == expected
    assert np.allclose(expected.K, K)
    assert expected.mean_focal == 810


def test_a_dict_contains_a_whole_camera_in_plain_types():
    for deviation in (0, 0.05):
        camera = Camera("RADIAL", (800.5, 512, 384, -0.1, 0.01), 1024, 768, deviation)
        assert as_camera(json.loads(json.dumps(camera.to_dict())), "camera1") == camera


@pytest.mark.parametrize(
    ("camera", "fold_px"),
    [
        (Camera("SIMPLE_RADIAL", (500, 0, 0, -0.4)), 304),
        (Camera("RADIAL", (500, 0, 0, -0.35, 0.03)), 341),
        (Camera("RADIAL", (500, 0, 0, 0.1, 0.02)), np.inf),
        (Camera("FULL_OPENCV", (500, 500, 0, 0, -0.35, 0.03, 0, 0, 0, 0, 0, 0)), 341),
        (Camera("FULL_OPENCV", (500, 500, 0, 0, 0, 0, 0, 0, -1.2, 0, 0, 0)), 301),  # r (1 - 1.2 r^6)
        (Camera("FULL_OPENCV", (500, 500, 0, 0, 0, 0, 0, 0, 0, 0.6, 0, 0)), 323),  # r / (1 + 0.6 r^2)
    ],
)
def test_pixels_beyond_the_lens_become_nan(camera, fold_px):
    radii = np.array([100.0, 290, 350, 700, 2000])
    rays = camera.pixels_to_rays(np.stack([radii * 0.6, radii * 0.8], axis=1))
    assert np.isnan(rays).any(axis=1).tolist() == (radii > fold_px).tolist()


def test_colmaps_own_cameras_and_dicts_are_cameras():
    camera = pycolmap.Camera(model="RADIAL", width=1024, height=768, params=EXAMPLES["RADIAL"])
    for form in (camera, camera.todict()):
        assert as_camera(form, "camera1") == Camera("RADIAL", EXAMPLES["RADIAL"], 1024, 768)
    for model in FISHEYE:
        camera = pycolmap.Camera(model=model, width=1024, height=768, params=EXAMPLES[model])
        assert as_camera(camera, "camera1") == Camera(model, EXAMPLES[model], 1024, 768)
    around = pycolmap.Camera(model="EQUIRECTANGULAR", width=1024, height=512, params=[1024, 512])
    with pytest.raises(ValueError, match=r"camera1: model must be one of .*: it is panoramic"):
        as_camera(around, "camera1")
    prism = pycolmap.Camera(model="RAD_TAN_THIN_PRISM_FISHEYE", width=9, height=9, params=[1] * 16)
    with pytest.raises(ValueError, match="its prism terms are not implemented; undistort the points"):
        as_camera(prism, "camera1")


def test_poselibs_cameras_are_cameras():
    dictionary = {"model": "OPENCV", "width": 1024, "height": 768, "params": list(EXAMPLES["OPENCV"])}
    expected = Camera("OPENCV", EXAMPLES["OPENCV"], 1024, 768)
    own = poselib.Camera("OPENCV", EXAMPLES["OPENCV"], 1024, 768)
    assert as_camera(dictionary, "camera1") == as_camera(own, "camera1") == expected
    unsized = poselib.Camera("PINHOLE", EXAMPLES["PINHOLE"], -1, -1)
    assert as_camera(unsized, "camera1") == Camera("PINHOLE", EXAMPLES["PINHOLE"])


@pytest.mark.parametrize("count", [0, 4, 5, 8, 12, 14])
def test_opencvs_pair_of_matrix_and_coefficients_is_a_camera(rng, count):
    fx, fy, cx, cy, *coefficients = EXAMPLES["FULL_OPENCV"]
    K = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1.0]])
    distortion = np.r_[coefficients, np.zeros(6)][:count]
    rays = rng.uniform(-0.5, 0.5, (50, 2))
    pixels, _ = cv2.projectPoints(np.c_[rays, np.ones(50)], np.zeros(3), np.zeros(3), K, distortion)
    for pair in ((K, distortion), [K.tolist(), distortion[None]], (K.astype(np.float32), distortion[:, None])):
        np.testing.assert_allclose(as_camera(pair, "camera1").pixels_to_rays(pixels[:, 0]), rays, atol=1e-7)
    assert as_camera((K, None), "camera1").pixels_to_rays(pixels[:, 0]).shape == (50, 2)


@pytest.mark.parametrize(
    ("camera", "message"),
    [
        (np.eye(4), "3x3"),
        (np.zeros((3, 3)), "must be"),
        (np.array([[800, 5, 512], [0, 820, 384], [0, 0, 1.0]]), "K must be"),
        (np.diag([-800, 800, 1.0]), "focal"),
        (np.full((3, 3), np.nan), "K must not contain NaN"),
        ({"model": "FISHEYES", "params": [1, 2, 3]}, "SIMPLE_PINHOLE"),
        ({"model": "FISHEYE", "params": [1, 2, 3]}, "fx, fy, cx, cy"),
        ({"model": "FISHEYE", "params": [1, 2, 3, 4], "focal_deviation": 0.1}, "focal_deviation must be 0 for FISHEYE"),
        ((np.eye(3), np.zeros(3)), "distortion must have 4, 5, 8, 12 or 14 coefficients, got 3"),
        ((np.eye(3), np.ones(12)), "thin prisms"),
        ((np.eye(3), [np.nan] * 4), "distortion must not contain NaN"),
        ((np.eye(2), None), "3x3"),
        ({"model": "PINHOLE", "params": [1, 2, 3]}, "fx, fy, cx, cy"),
        ({"model": "PINHOLE", "params": [1, 2, 3, np.inf]}, "finite"),
        ({"model": "PINHOLE", "params": [1e-200, 1, 3, 4]}, "focal length of 1e-06 or more"),
        ({"model": "PINHOLE", "params": [1, 1e200, 3, 4]}, "beyond 1e"),
        ({"model": "SIMPLE_RADIAL", "params": [500, 320, 240, -1e300]}, "beyond 1e"),
        (np.eye(3) * (1 + 1j), "real numbers"),
        ({"model": "PINHOLE"}, "params"),
        ({"model": "PINHOLE", "params": [1, 2, 3, 4], "focal": 3}, "focal"),
        ({"model": "PINHOLE", "params": [1, 2, 3, 4], "focal_deviation": np.nan}, "focal_deviation must be"),
        ({"model": "PINHOLE", "params": [1, 2, 3, 4], "focal_deviation": "5%"}, "focal_deviation must be"),
        ({"model": "PINHOLE", "params": [1, 2, 3, 4], "focal_deviation": 1e-162}, "focal_deviation must be"),
        ({"model": "PINHOLE", "params": [1, 2, 3, 4], "distortion_deviation": -0.1}, "distortion_deviation must be"),
        ({"model": "PINHOLE", "params": [1, 2, 3, 4], "distortion_deviation": np.nan}, "distortion_deviation must be"),
        (
            {"model": "RADIAL", "params": [500, 1, 2, 0.1, 0.1], "distortion_deviation": 0.1},
            "distortion_deviation must be 0 for this RADIAL",
        ),
        (
            {"model": "SIMPLE_FISHEYE", "params": [500, 1, 2], "distortion_deviation": 0.1},
            "distortion_deviation must be 0 for this SIMPLE_FISHEYE",
        ),
        ("camera.txt", ""),
        (None, ""),
    ],
)
def test_impossible_cameras_are_refused_by_name(camera, message):
    with pytest.raises(ValueError, match=f"^camera2: .*{message}"):
        as_camera(camera, "camera2")


@pytest.mark.parametrize(
    ("text", "camera"),
    [
        ("500,320,240", Camera("SIMPLE_PINHOLE", (500, 320, 240))),
        ("500, 510, 320, 240", Camera("PINHOLE", (500, 510, 320, 240))),
        ("simple_radial:640x480:500,320,240,-0.1", Camera("SIMPLE_RADIAL", (500, 320, 240, -0.1), 640, 480)),
        ("RADIAL:500,320,240,0.1,1e-3", Camera("RADIAL", (500, 320, 240, 0.1, 0.001))),
        ("500,320,240±5%", Camera("SIMPLE_PINHOLE", (500, 320, 240), focal_deviation=0.05)),
        ("pinhole:640x480:500,500,320,240 +- 0.02", Camera("PINHOLE", (500, 500, 320, 240), 640, 480, 0.02)),
        ("500,320,240;k1=-0.1", Camera("SIMPLE_RADIAL", (500, 320, 240, -0.1))),
        ("500,320,240±5%;k1=-0.1±0.02", Camera("SIMPLE_RADIAL", (500, 320, 240, -0.1), 0, 0, 0.05, 0.02)),
        ("500,510,320,240;k1±0.02", Camera("OPENCV", (500, 510, 320, 240, 0, 0, 0, 0), 0, 0, 0.0, 0.02)),
        (
            "SIMPLE_RADIAL:640x480:500,320,240,-0.1;k1 +- 0.02",
            Camera("SIMPLE_RADIAL", (500, 320, 240, -0.1), 640, 480, 0.0, 0.02),
        ),
        (
            "500,320,240;k1=unknown",
            Camera("SIMPLE_RADIAL", (500, 320, 240, 0), distortion_deviation=UNKNOWN_DISTORTION_DEVIATION),
        ),
    ],
)
def test_from_text(text, camera):
    assert Camera.from_text(text) == camera


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not of the form"),
        ("500", "has 1 numbers"),
        ("500,320,middle", "is not of the form"),
        ("PINHOLE:640:1,2,3,4", "is not of the form"),
        ("1:2:3:4", "is not of the form"),
        ("FOUR:640x480:500,320,240", "'FOUR:.*model must be one of"),
        ("FISHEYE:640x480:500,500,320,240±5%", "focal_deviation must be 0 for FISHEYE"),
        ("OPENCV:640x480:500,500,320,240", "params of OPENCV must be"),
        ("-500,320,240", "positive focal length"),
        ("nan,320,240", "finite"),
        ("500,320,240±much", "followed by ±5%"),
        ("500,320,240±500%", "focal_deviation must be 0 .exact. or from 1e-09 to 1"),
        ("500,320,240;k1", "is not of the form"),
        ("500,320,240;k1=bent", "is not of the form"),
        ("500,320,240;k1±20", "is not of the form"),
        ("RADIAL:500,320,240,0.1,1e-3;k1±0.1", "the lens of this RADIAL has other coefficients than k1"),
    ],
)
def test_texts_of_no_camera_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        Camera.from_text(text)


def test_deviations_survive_dicts_and_other_lenses():
    camera = Camera("SIMPLE_RADIAL", (500, 320, 240, -0.1), 640, 480, 0.05, 0.02)
    assert Camera.from_dict(camera.to_dict()) == camera
    assert "distortion_deviation" not in Camera("SIMPLE_PINHOLE", (500, 320, 240)).to_dict()
    assert Camera.from_matrix(np.diag([500.0, 500, 1]), distortion_deviation=0.1).distortion_deviation == 0.1
    assert camera.adjusted(2.0, (0.0, 0.0), 0.01).distortion_deviation == 0.02
    assert camera.with_lens(0.2, 0.0) == Camera("SIMPLE_RADIAL", (500, 320, 240, 0.2), 640, 480, 0.05)
    assert camera.pinhole.distortion_deviation == 0


def test_long_lenses_bend_less():
    assert usual_distortion(0.7) == usual_distortion(0.85) == UNKNOWN_DISTORTION_DEVIATION
    assert usual_distortion(1.7) == pytest.approx(UNKNOWN_DISTORTION_DEVIATION / 2)
    assert Camera.of_unknown_focal(640, 480).distortion_deviation == UNKNOWN_DISTORTION_DEVIATION


WRONG_SIDES = [-1, -640, 640.5, 10**7, 1e300, float("nan"), float("inf"), True, "640", None, b"640", [640]]


@pytest.mark.parametrize("value", WRONG_SIDES, ids=repr)
@pytest.mark.parametrize("name", ["width", "height"])
def test_a_side_that_no_image_has_is_refused_by_name(name, value):
    size = {"width": 640, "height": 480, name: value}
    params = EXAMPLES["SIMPLE_PINHOLE"]
    ways = {
        "constructor": lambda: Camera("SIMPLE_PINHOLE", params, **size),
        "matrix": lambda: Camera.from_matrix(np.diag([800.0, 800.0, 1.0]), **size),
        "dict": lambda: Camera.from_dict({"model": "SIMPLE_PINHOLE", "params": params, **size}),
        "text": lambda: Camera.from_text(f"SIMPLE_PINHOLE:{size['width']}x{size['height']}:800,512,384"),
        "unknown focal length": lambda: Camera.of_unknown_focal(**size),
    }
    if value == "640":
        del ways["text"]  # a text always contains numbers
    for way, make in ways.items():
        with pytest.raises(ValueError, match=f"{name}|WIDTHxHEIGHT" if way == "text" else name):
            make()


def test_integer_sides_of_any_type_and_unknown_sides_are_accepted():
    for side in (640, 640.0, np.float32(640), np.uint16(640)):
        camera = Camera("SIMPLE_PINHOLE", EXAMPLES["SIMPLE_PINHOLE"], side, 480)
        assert (camera.width, type(camera.width)) == (640, int)
    unknown = Camera("SIMPLE_PINHOLE", EXAMPLES["SIMPLE_PINHOLE"], 0, 0)
    assert (unknown.width, unknown.height) == (0, 0)
    assert Camera.from_text("SIMPLE_PINHOLE:0x0:800,512,384").width == 0


@pytest.mark.parametrize("model", PARAMETERS)
def test_the_principal_point_has_names(model):
    camera = Camera(model, [10.0 + i for i in range(len(PARAMETERS[model]))])
    assert (camera.cx, camera.cy) == camera.intrinsics[2:] == tuple(camera.K[:2, 2])


@pytest.mark.parametrize("given", [(800, 320, 240), [800.0, 800.0, 320.0, 240.0], 800.0])
def test_numbers_are_not_a_camera_and_the_error_lists_the_valid_forms(given):
    forms = ["caransac.Camera", "Camera.from_text", "3x3 matrix K", "dict", "pycolmap.Camera", "poselib.Camera"]
    with pytest.raises(ValueError, match=r"camera1: K must be 3x3, got shape.*" + ".*".join(map(re.escape, forms))):
        as_camera(given, "camera1")
