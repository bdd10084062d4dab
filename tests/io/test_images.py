"""From image files to correspondences."""

import json
import os
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image as PillowImage
from PIL.ExifTags import IFD, Base

import caransac
from caransac.camera_priors import EXIF_FOCAL_DEVIATION
from caransac.geometry import pose_error_deg, sampson_sq
from caransac.io import images
from caransac_lab.render import render_pair


@pytest.fixture(scope="module")
def pair():
    return render_pair(seed=2)


def write_jpeg(path, pixels, exif=None, base=None):
    data = PillowImage.Exif()
    for tag, value in (base or {}).items():
        data[tag] = value
    for tag, value in (exif or {}).items():
        data.get_ifd(IFD.Exif)[tag] = value
    PillowImage.fromarray(pixels).save(path, quality=95, exif=data)
    return path


@pytest.mark.slow
def test_pixels_survive_a_file(tmp_path, pair):
    path = images.write_image(tmp_path / "new" / "image.png", pair.image1)
    assert np.array_equal(images.read_image(path), pair.image1)
    assert np.array_equal(images.read_image(path), np.asarray(PillowImage.open(path)))  # RGB, not BGR


def test_grey_deep_and_transparent_images_become_rgb(tmp_path):
    ramp = np.arange(0, 60000, 1000, dtype=np.uint16).reshape(6, 10)
    cv2.imwrite(str(tmp_path / "deep.png"), ramp)
    cv2.imwrite(str(tmp_path / "alpha.png"), np.full((6, 10, 4), 200, np.uint8))
    for name in ("deep.png", "alpha.png"):
        read = images.read_image(tmp_path / name)
        assert (read.shape, read.dtype) == ((6, 10, 3), np.uint8)


def test_images_that_cannot_be_read_are_named_by_their_kind(tmp_path, rng):
    whole = write_jpeg(tmp_path / "a.jpg", rng.integers(0, 255, (60, 80, 3), np.uint8)).read_bytes()
    (tmp_path / "half.jpg").write_bytes(whole[: len(whole) // 2])
    samples = rng.random((60, 80, 3)).astype(np.float32)
    cv2.imwrite(str(tmp_path / "float_rgb.tif"), samples)
    PillowImage.fromarray(samples[:, :, 0]).save(tmp_path / "float.tif")
    for name, message in (
        ("half.jpg", "is a JPEG image that is truncated or damaged"),
        ("float_rgb.tif", "is a TIFF image that is damaged, or whose samples are not whole numbers"),
        ("float.tif", "is a TIFF image that is damaged, or whose samples are not whole numbers"),
    ):
        with pytest.raises(ValueError, match=f"{name} {message}"):
            images.read_image(tmp_path / name)


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_images_are_turned_upright(tmp_path, orientation):
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:20, :30] = 255
    path = write_jpeg(tmp_path / "a.jpg", pixels, base={Base.Orientation: orientation})
    upright = np.asarray(PillowImage.open(path).transpose(TURNS[orientation]) if orientation > 1 else pixels)
    read = images.read_image(path)
    assert read.shape == upright.shape
    assert np.abs(read.astype(int) - upright).mean() < 8


TURNS = {
    3: PillowImage.Transpose.ROTATE_180,
    6: PillowImage.Transpose.ROTATE_270,
    8: PillowImage.Transpose.ROTATE_90,
}


def test_files_that_are_not_images_are_refused(tmp_path):
    (tmp_path / "text.jpg").write_text("hello")
    (tmp_path / "empty.png").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"no such image: .*none\.jpg"):
        images.read_image(tmp_path / "none.jpg")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        images.read_image(tmp_path)
    for name in ("text.jpg", "empty.png"):
        with pytest.raises(ValueError, match=f"{name} is not an image"):
            images.read_image(tmp_path / name)


@pytest.mark.parametrize(
    ("exif", "focal"),
    [
        ({}, None),
        ({Base.FocalLengthIn35mmFilm: 50}, 50 * 1000 / np.hypot(36, 24)),  # the image has a diagonal of 1000 pixels
        ({Base.FocalLengthIn35mmFilm: 0}, None),
        ({Base.FocalLength: 5.0}, None),
        ({Base.FocalLength: 5.0, Base.FocalPlaneXResolution: 2540.0}, 500.0),  # the default unit is an inch
        ({Base.FocalLength: 5.0, Base.FocalPlaneXResolution: 150.0, Base.FocalPlaneResolutionUnit: 4}, 750.0),
        ({Base.FocalLength: 5.0, Base.FocalPlaneXResolution: 150.0, Base.FocalPlaneResolutionUnit: 1}, None),
        (
            {
                Base.FocalLength: 5.0,
                Base.FocalPlaneXResolution: 1500.0,
                Base.FocalPlaneResolutionUnit: 3,
                Base.ExifImageWidth: 1600,  # the image was reduced later
                Base.ExifImageHeight: 1200,
            },
            375.0,
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("orientation", [1, 6])
def test_focal_from_exif(tmp_path, exif, focal, orientation):
    path = write_jpeg(tmp_path / "a.jpg", np.zeros((600, 800, 3), np.uint8), exif, {Base.Orientation: orientation})
    assert images.focal_from_exif(path) == (None if focal is None else pytest.approx(focal, rel=1e-6))


def test_cameras_of_exif_data_are_uncertain(tmp_path):
    image = np.zeros((600, 800, 3), np.uint8)
    path = write_jpeg(tmp_path / "a.jpg", image, {Base.FocalLengthIn35mmFilm: 26})
    camera = images.camera_from_exif(path, image)
    assert camera.fx == images.focal_from_exif(path)
    assert (camera.params[1:], camera.width, camera.height) == ((399.5, 299.5), 800, 600)
    assert camera.focal_deviation == EXIF_FOCAL_DEVIATION
    assert images.camera_from_exif(images.write_image(tmp_path / "a.png", image), image) is None


@pytest.mark.parametrize("sensor", [(4000, 3000), (3000, 2000)])
@pytest.mark.parametrize("shape", [16 / 9, 1.0, 2.0, 4 / 3, 3 / 2])
@pytest.mark.parametrize("upright", [False, True])
def test_a_crop_of_the_sensor_keeps_the_focal_length(tmp_path, sensor, shape, upright):
    """The 26 mm camera crops its sensor to an aspect ratio. The test image is ten times smaller than the crop."""
    width, height = min(sensor[0], sensor[1] * shape), min(sensor[1], sensor[0] / shape)
    true_focal = 26 / np.hypot(36, 24) * np.hypot(*sensor) / 10
    image = np.zeros((round(height / 10), round(width / 10), 3), np.uint8)
    image = np.swapaxes(image, 0, 1) if upright else image
    path = write_jpeg(tmp_path / "a.jpg", np.ascontiguousarray(image), {Base.FocalLengthIn35mmFilm: 26})
    camera = images.camera_from_exif(path, image)
    whole = width / height == pytest.approx(sensor[0] / sensor[1])
    if whole:
        assert camera.fx == pytest.approx(true_focal, rel=0.01)
        assert camera.focal_deviation == EXIF_FOCAL_DEVIATION
    elif shape in (4 / 3, 3 / 2):  # the crop has the shape of another complete sensor
        assert camera.fx == pytest.approx(true_focal, rel=0.09)
    else:
        assert camera.fx == pytest.approx(true_focal, rel=0.045)
        assert EXIF_FOCAL_DEVIATION < camera.focal_deviation < 0.06
        spread = abs(camera.fx / true_focal - 1)
        assert camera.focal_deviation == pytest.approx(np.hypot(EXIF_FOCAL_DEVIATION, spread), rel=0.05)


@pytest.mark.slow
def test_focal_of_images_without_exif_is_unknown(tmp_path, pair):
    assert images.focal_from_exif(images.write_image(tmp_path / "a.png", pair.image1)) is None
    (tmp_path / "text.jpg").write_text("hello")
    assert images.focal_from_exif(tmp_path / "text.jpg") is None
    with pytest.raises(FileNotFoundError):
        images.focal_from_exif(tmp_path / "none.jpg")


@pytest.mark.slow
def test_broken_files_give_an_answer_or_a_plain_error(tmp_path, rng):
    whole = write_jpeg(tmp_path / "a.jpg", np.zeros((60, 80, 3), np.uint8), {Base.FocalLength: 5.0}).read_bytes()
    path = tmp_path / "b.jpg"
    for _ in range(200):
        data = bytearray(whole[: rng.integers(1, len(whole))] if rng.random() < 0.3 else whole)
        for place in rng.integers(0, len(data), 4):
            data[place] = rng.integers(256)
        path.write_bytes(data)
        assert images.focal_from_exif(path) is None or images.focal_from_exif(path) > 0
        try:
            assert images.read_image(path).dtype == np.uint8
        except ValueError as error:
            assert "is not an image" in str(error) or "truncated or damaged" in str(error)


@pytest.mark.slow
def test_rootsift_finds_the_pose_and_is_not_biased(pair):
    points1, points2, ratios = images.match_images(pair.image1, pair.image2, max_features=3000)
    result = caransac.estimate_relative_pose(
        points1, points2, pair.camera, pair.camera, scores=ratios, score_kind="ratio"
    )
    assert result.num_inliers > 500
    assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 0.1
    assert ratios.min() > 0
    assert ratios.max() <= 1
    assert np.median(ratios[result.inliers]) < np.median(ratios[~result.inliers])
    # Pixels follow OpenCV: with pixel centres at integers, the residuals to the true geometry are small.
    rays = [pair.camera.pixels_to_rays(points[result.inliers]) for points in (points1, points2)]
    E = caransac.geometry.essential_from_pose(pair.R, pair.t)

    def residual(shift):
        return np.median(sampson_sq(E, *(r + shift / pair.camera.fx for r in rays)))

    assert residual(0.0) < residual(0.5)
    assert residual(0.0) < residual(-0.5)


def test_rootsift_keypoints_are_at_the_blobs(rng):
    y, x = np.mgrid[:240, :240]
    centres = np.stack(np.meshgrid(*[np.arange(30, 220, 40)] * 2), axis=-1).reshape(-1, 2) + rng.uniform(0, 1, (25, 2))
    blobs = (np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 2 / rng.uniform(1.5, 4) ** 2) for cx, cy in centres)
    points, _ = images.detect(np.rint(200 * sum(blobs)).astype(np.uint8))
    offsets = points[:, None] - centres
    nearest = offsets[np.arange(len(points)), np.linalg.norm(offsets, axis=2).argmin(axis=1)]
    assert len(points) >= 25
    assert np.all(np.abs(np.median(nearest, axis=0)) < 0.02)  # OpenCV's default has an offset of 0.25 px


@pytest.mark.slow
def test_orb_finds_the_pose(pair):
    points1, points2, ratios = images.match_images(pair.image1, pair.image2, features="orb")
    result = caransac.estimate_relative_pose(
        points1, points2, pair.camera, pair.camera, scores=ratios, score_kind="ratio"
    )
    assert result.num_inliers > 300
    assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 0.5


def test_akaze_finds_the_pose_or_names_the_package(pair):
    if hasattr(cv2, "AKAZE_create") or hasattr(cv2, "xfeatures2d"):
        points1, points2, ratios = images.match_images(pair.image1, pair.image2, features="akaze")
        result = caransac.estimate_relative_pose(
            points1, points2, pair.camera, pair.camera, scores=ratios, score_kind="ratio"
        )
        assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 0.2
    else:
        with pytest.raises(ImportError, match="pip install opencv-contrib-python-headless"):
            images.match_images(pair.image1, pair.image2, features="akaze")


@pytest.mark.slow
@pytest.mark.parametrize("features", ["rootsift", "orb"])
@pytest.mark.parametrize("count", [1, 50, 500])
def test_the_first_features_are_kept(pair, features, count):
    every, vectors = images.detect(pair.image1, features, 500)
    points, fewer = images.detect(pair.image1, features, count)
    assert len(points) == len(fewer) == count
    if features == "rootsift":  # ORB divides the number among its scales
        np.testing.assert_array_equal(points, every[:count])
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


def blob_image(centres, sigmas, size):
    """Create an image (width, height) with bright blobs at pixels (N, 2)."""
    image = np.zeros(size[::-1])
    for (cx, cy), sigma in zip(centres, sigmas, strict=True):
        left, top = int(cx - 5 * sigma), int(cy - 5 * sigma)
        y, x = np.mgrid[top : int(cy + 5 * sigma), left : int(cx + 5 * sigma)]
        image[y, x] += np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 2 / sigma**2)
    return np.rint(200 * image).astype(np.uint8)


def test_features_of_the_largest_scale_come_first(pair):
    sift = cv2.SIFT_create(0, contrastThreshold=images.CONTRAST_THRESHOLD, enable_precise_upscale=True)
    scales = {keypoint.pt: keypoint.size for keypoint in sift.detect(cv2.cvtColor(pair.image1, cv2.COLOR_RGB2GRAY))}
    points, _ = images.detect(pair.image1, max_features=700)
    found = [scales[tuple(point)] for point in points]
    assert len(scales) > 2000
    assert found == sorted(found, reverse=True)
    assert np.sum(np.array(list(scales.values())) > found[-1]) < 700  # no larger feature is left out


@pytest.mark.slow
@pytest.mark.parametrize("size", [(2400, 1500), (1500, 2400), (1700, 1601)])
def test_points_of_large_images_are_in_their_own_pixels(rng, size):
    columns, rows = (np.arange(100, side - 99, 200) for side in size)
    centres = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
    centres = centres + rng.uniform(0, 1, centres.shape)
    points, _ = images.detect(blob_image(centres, rng.uniform(6, 12, len(centres)), size))
    offsets = points[:, None] - centres
    nearest = offsets[np.arange(len(points)), np.linalg.norm(offsets, axis=2).argmin(axis=1)]
    assert len(points) >= len(centres)
    # Scaling about the centre of the first pixel would give an error of (s - 1) / 2.
    assert np.all(np.abs(np.median(nearest, axis=0)) < 0.03)


@pytest.mark.slow
def test_only_larger_images_are_reduced(pair):
    def detect(image, **size):
        return images.detect(image, max_features=500, **size)[0]

    larger = cv2.resize(pair.image1, (1700, 1275), interpolation=cv2.INTER_CUBIC)
    assert not np.array_equal(detect(larger), detect(larger, max_size=0))
    np.testing.assert_array_equal(detect(larger, max_size=1700), detect(larger, max_size=0))
    np.testing.assert_array_equal(detect(pair.image1), detect(pair.image1, max_size=0))
    points1, points2, _ = images.match_images(larger, larger, max_size=400, max_features=500)
    assert np.all(points1.max(axis=0) > 1000)
    np.testing.assert_array_equal(points1, points2)
    assert len(detect(larger[:1])) == 0  # a side of one pixel is not reduced to zero


@pytest.mark.slow
def test_a_large_noisy_pair_has_a_pose_at_the_default_size(pair, rng):
    width, height = 3200, 2400  # five times the rendered size
    camera = images.centred_camera(5 * pair.camera.fx, np.empty((height, width)))
    noisy = [
        np.clip(cv2.resize(image, (width, height)) + rng.normal(0, 25, (height, width, 1)), 0, 255).astype(np.uint8)
        for image in (pair.image1, pair.image2)
    ]
    points1, points2, ratios = images.match_images(*noisy, max_features=4000)
    result = caransac.estimate_relative_pose(points1, points2, camera, camera, scores=ratios, score_kind="ratio")
    assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 0.2
    assert result.num_inliers > 300


PHOTOS = os.environ.get("CARANSAC_PHOTOS")  # a folder of photographs of several megapixels, with their poses.json


@pytest.mark.skipif(PHOTOS is None, reason="CARANSAC_PHOTOS must be a folder of photographs")
def test_photographs_of_a_drone_have_poses():
    known = json.loads((Path(PHOTOS) / "poses.json").read_text())
    focal, cx, cy, k = known["camera"]["params"]
    size = known["camera"]["width"], known["camera"]["height"]
    camera = caransac.Camera("SIMPLE_RADIAL", (focal, cx - 0.5, cy - 0.5, k), *size)
    found = {name: images.detect(images.read_image(Path(PHOTOS) / name)) for name in known["images"]}
    inliers, errors = [], []
    for first, second in known["pairs"]:
        points1, points2, ratios = images.match_features(found[first], found[second], "rootsift")
        result = caransac.estimate_relative_pose(points1, points2, camera, camera, scores=ratios, score_kind="ratio")
        poses = [np.array(known["images"][name][part]) for name in (first, second) for part in ("R", "t")]
        inliers.append(result.num_inliers)
        errors.append(pose_error_deg(result.R, result.t, *caransac.geometry.relative_pose(*poses)))
    # COLMAP's own features and matches have 62 to 375 inliers, 311 in the median, and errors up to 5 degrees.
    assert min(inliers) > 80
    assert np.median(inliers) > 350
    assert np.sum(np.array(errors) < 5) >= 8
    assert max(errors) < 10


def test_grey_images_and_views_of_arrays_do(pair):
    grey = cv2.cvtColor(pair.image1, cv2.COLOR_RGB2GRAY)
    assert np.array_equal(images.detect(grey, max_features=50)[0], images.detect(pair.image1, max_features=50)[0])
    assert len(images.detect(pair.image1[::2, ::2], max_features=50)[0]) == 50


def test_images_without_features_have_no_matches(pair):
    blank = np.zeros((100, 100, 3), np.uint8)
    for first, second in ((blank, blank), (blank, pair.image1), (pair.image1, blank)):
        points1, points2, ratios = images.match_images(first, second, max_features=100)
        assert points1.shape == points2.shape == (0, 2)
        assert ratios.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": "surf"}, "features must be one of rootsift, orb, akaze"),
        ({"max_features": 0}, "max_features must be a whole number from 1"),
        ({"max_size": 63}, "max_size must be 0, for the full size, or at least 64, not 63"),
        ({"max_size": -1}, "max_size must be 0"),
        ({"image": np.zeros((9, 9))}, "uint8"),
        ({"image": np.zeros((9, 9, 4), np.uint8)}, "image must be"),
        ({"image": np.zeros((0, 9), np.uint8)}, "image must be"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        images.detect(**({"image": np.zeros((9, 9), np.uint8)} | arguments))


def test_images_that_cannot_be_written_are_refused(tmp_path):
    image = np.zeros((9, 9, 3), np.uint8)
    for wrong in (image[:, :, 0], image.astype(float), image[:0]):
        with pytest.raises(ValueError, match="image must be"):
            images.write_image(tmp_path / "a.png", wrong)
    for name in ("a.xyz", "a"):
        with pytest.raises(ValueError, match=r"its name must end in .png or .jpg"):
            images.write_image(tmp_path / name, image)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not have such names")
def test_images_are_written_to_names_that_are_not_utf8(tmp_path):
    """OpenCV 5 crashes for such a name."""
    image = np.full((9, 9, 3), 70, np.uint8)
    path = images.write_image(tmp_path / "caf\udce9.png", image)
    assert np.array_equal(images.read_image(path), image)
    with pytest.raises(ValueError, match=r"its name must end in .png or .jpg"):
        images.write_image(tmp_path / "a.p\udce9g", image)


def test_a_camera_of_no_focal_length_is_refused():
    with pytest.raises(ValueError, match="focal_px must be a positive number"):
        images.centred_camera(None, np.zeros((9, 9, 3), np.uint8))


@pytest.mark.parametrize(
    ("module", "call"),
    [("cv2", lambda path: images.read_image(path)), ("PIL", lambda path: images.focal_from_exif(path))],
)
def test_a_missing_library_names_the_extra(monkeypatch, tmp_path, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'caransac\[images\]'"):
        call(tmp_path)
