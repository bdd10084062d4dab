"""From image files to correspondences, with OpenCV: pixels, focal lengths, features and their nearest neighbours.

Pixels follow OpenCV: the centre of the top-left pixel is (0, 0).
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import as_array, check_whole, is_integer, is_real, shorten
from caransac._support.files import as_path, replacing
from caransac._support.untrusted import check_image, read_bytes
from caransac.camera import Camera
from caransac.camera_priors import EXIF_FOCAL_DEVIATION, usual_distortion
from caransac.geometry import Array, Floats
from caransac.io.descriptors import match_vectors

FeatureKind = Literal["rootsift", "orb", "akaze"]
Image = NDArray[np.uint8]

MAX_SIZE = 1600  # pixels of the longer side; at full resolution the finest details of a photograph are mostly noise
SMALLEST_SIZE = 64  # that an image may be reduced to
MAX_FEATURES = 12000  # about as many as COLMAP keeps, with its second orientations
# Half of COLMAP's, a quarter of OpenCV's: faint keypoints of a larger scale match better than clear ones of the finest.
# On drone photographs of 9 megapixels the median of inliers is 220, 350 and 410 with 0.04, 0.02 and 0.01.
CONTRAST_THRESHOLD = 0.01
FILM_DIAGONAL_MM = math.hypot(36, 24)
SENSOR_SHAPES = (4 / 3, 3 / 2)  # long by short side: phones, drones and compact cameras, larger cameras
SAME_SHAPE = 0.02  # relative difference up to which an image has the shape of a sensor
UNITS_MM = {2: 25.4, 3: 10.0, 4: 1.0, 5: 0.001}  # of EXIF's FocalPlaneResolutionUnit


def read_image(path: str | Path) -> Image:
    """The pixels of an image file, (height, width, 3) uint8 RGB, turned upright as its EXIF orientation says.

    Raises:
        OSError: there is no such file, or it is a folder or cannot be read.
        ValueError: it is not an image, or a vast one; see `untrusted`.
    """
    cv2 = _opencv()
    path = as_path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not an image")
    if not path.exists():
        raise FileNotFoundError(f"no such image: {path}")
    data = read_bytes(path)
    check_image(data, path)
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:  # a broken header that asks for more than OpenCV allows
        pixels = None
    if pixels is None:
        raise ValueError(f"{path} is not an image, or of a kind that OpenCV cannot read; JPEG, PNG and TIFF work")
    return np.ascontiguousarray(pixels[:, :, ::-1])


def write_image(path: str | Path, image: Image) -> Path:
    """Write (height, width, 3) uint8 RGB to a file, whose ending chooses the format; returns the path."""
    cv2 = _opencv()
    path, image = as_path(path), as_array(image, "image")
    if image.dtype != np.uint8 or not image.size or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"image must be (H, W, 3) uint8, got {image.shape} {image.dtype}")
    if not path.suffix or not cv2.haveImageWriter(path.name):
        raise ValueError(f"OpenCV cannot write {path}: let its name end in .png or .jpg")
    encoded, data = cv2.imencode(path.suffix, np.ascontiguousarray(image[:, :, ::-1]))
    if not encoded:
        raise ValueError(f"OpenCV cannot write {path}")
    with replacing(path) as temporary:
        temporary.write_bytes(data.tobytes())  # OpenCV itself would not say that a disk is full
    return path


def focal_from_exif(path: str | Path) -> float | None:
    """Focal length in pixels that the EXIF data of an image file tell, or None where they do not.

    It is FocalLengthIn35mmFilm, by the diagonals of film and sensor, or else FocalLength with FocalPlaneXResolution.
    Both are for square pixels, so the image's orientation makes no difference. An image of another shape than 4:3 and
    3:2, such as 16:9, is taken for the largest part of its shape of either sensor, and the focal length is between
    those of the two.
    """
    known = _exif_focal(path)
    return None if known is None else known[0]


def _exif_focal(path: str | Path) -> tuple[float, float] | None:
    """Focal length in pixels and its relative deviation that the EXIF data of an image file tell, or None."""
    try:
        from PIL import ExifTags, Image
    except ImportError as error:
        raise ImportError("reading EXIF data needs Pillow: pip install 'caransac[images]'") from error
    data = io.BytesIO(read_bytes(as_path(path)))
    with warnings.catch_warnings(), suppress(Exception):  # of a broken file, Pillow may raise anything
        warnings.simplefilter("ignore")
        with Image.open(data) as image:
            exif = image.getexif()
            return _focal_px({**exif, **exif.get_ifd(ExifTags.IFD.Exif)}, image.size)
    return None


def _focal_px(tags: dict[int, Any], size: tuple[int, int]) -> tuple[float, float] | None:
    """Focal length in pixels, and its relative deviation, of an image of some (width, height) with these EXIF tags."""
    from PIL.ExifTags import Base

    def number(tag: Base, default: float = 0.0) -> float:
        try:
            value = float(tags.get(tag, default))
        except (TypeError, ValueError, ZeroDivisionError):
            return default
        return value if math.isfinite(value) and value > 0 else default

    film = number(Base.FocalLengthIn35mmFilm)
    if film > 0:
        diagonal, deviation = _sensor_diagonal(size)
        return film / FILM_DIAGONAL_MM * diagonal, math.hypot(EXIF_FOCAL_DEVIATION, deviation)
    focal_mm, resolution = number(Base.FocalLength), number(Base.FocalPlaneXResolution)
    unit_mm = UNITS_MM.get(int(number(Base.FocalPlaneResolutionUnit, 2)))
    if not focal_mm or not resolution or unit_mm is None:
        return None
    taken = max(number(Base.ExifImageWidth), number(Base.ExifImageHeight))  # the resolution is of the picture as taken
    return focal_mm * resolution / unit_mm * (max(size) / taken if taken else 1.0), EXIF_FOCAL_DEVIATION


def _sensor_diagonal(size: tuple[int, int]) -> tuple[float, float]:
    """Diagonal in pixels of the sensor of which an image is a part, and its relative deviation.

    Cameras that cut an image to another shape write down the focal length of the whole sensor. By the diagonal of a
    16:9 image, it would be 8 per cent too short where the sensor is 4:3, and 5 per cent where it is 3:2.
    """
    short, long = sorted(size)
    if any(abs(long / short / shape - 1) < SAME_SHAPE for shape in SENSOR_SHAPES):
        return math.hypot(*size), 0.0
    small, large = sorted(max(long, short * shape) * math.hypot(1, 1 / shape) for shape in SENSOR_SHAPES)
    return (small + large) / 2, (large - small) / (large + small)


def centred_camera(focal_px: float, image: Image, focal_deviation: float = 0.0) -> Camera:
    """The camera of an image with a focal length in pixels, known to a relative deviation, and its middle as centre."""
    shape = as_array(image, "image").shape
    if len(shape) not in (2, 3):
        raise ValueError(f"image must be (H, W) or (H, W, 3), got shape {shape}")
    height, width = shape[:2]
    if not is_real(focal_px) or not 0 < focal_px < math.inf:
        raise ValueError(f"focal_px must be a positive number of pixels, not {shorten(focal_px)}")
    return Camera("SIMPLE_PINHOLE", (focal_px, (width - 1) / 2, (height - 1) / 2), width, height, focal_deviation)


def camera_from_exif(path: str | Path, image: Image) -> Camera | None:
    """The camera that the EXIF data of an image's file tell, to a few per cent; None where they do not.

    `caransac.estimate_relative_pose` takes either, with the image's size for the latter.
    """
    known = _exif_focal(path)
    if known is None:
        return None
    camera = centred_camera(known[0], image, known[1])
    return replace(camera, distortion_deviation=usual_distortion(known[0] / max(image.shape[:2])))


def match_images(
    image1: Image,
    image2: Image,
    *,
    features: FeatureKind = "rootsift",
    max_features: int = MAX_FEATURES,
    max_size: int = MAX_SIZE,
) -> tuple[Array, Array, Array]:
    """Correspondences of two images: features that are each other's nearest.

    Args:
        image1: (H, W, 3) or (H, W) uint8.
        image2: (H, W, 3) or (H, W) uint8.
        features: "rootsift" (Arandjelović and Zisserman, CVPR 2012), the most accurate; "orb" or "akaze".
        max_features: keypoints per image at most; see `detect` for which.
        max_size: pixels of the longer side at which keypoints are sought, 0 for the images as they are.

    Returns:
        points1 (N, 2) and points2 (N, 2) in pixels of the images as given, and (N,) the ratios of the nearest to the
        second-nearest descriptor's distance, for ``score_kind="ratio"``.
    """
    found1, found2 = (detect(image, features, max_features, max_size) for image in (image1, image2))
    return match_features(found1, found2, features)


def match_features(
    found1: tuple[Array, Floats], found2: tuple[Array, Floats], features: FeatureKind
) -> tuple[Array, Array, Array]:
    """Correspondences of what `detect` found in two images, as `match_images` returns them."""
    (points1, vectors1), (points2, vectors2) = found1, found2
    index1, index2, ratios_sq = match_vectors(vectors1, vectors2)
    ratios = np.sqrt(ratios_sq) if features == "rootsift" else ratios_sq  # squared, ±1 vectors count differing bits
    return points1[index1], points2[index2], ratios


def detect(
    image: Image, features: FeatureKind = "rootsift", max_features: int = MAX_FEATURES, max_size: int = MAX_SIZE
) -> tuple[Array, Floats]:
    """Keypoints of an image: for "rootsift" those of the largest scale first, else the strongest first.

    In photographs the largest ones repeat best: the finest details change between views, by noise, leaves and light,
    however strong they are.

    Args:
        image: (H, W, 3) or (H, W) uint8.
        features: see `match_images`.
        max_features: keypoints at most, the first ones.
        max_size: a larger image is reduced to so many pixels of its longer side before; 0 leaves it as it is.

    Returns:
        (N, 2) pixels of the image as given, and (N, d) descriptors as vectors of one length, for
        `descriptors.match_vectors`: the bits of a binary descriptor become components of ±1.
    """
    if not isinstance(features, str) or features not in get_args(FeatureKind):
        raise ValueError(f"features must be one of {', '.join(get_args(FeatureKind))}, not {shorten(features)}")
    check_whole(max_features, "max_features", 1, 10**6)
    if not is_integer(max_size) or (max_size != 0 and max_size < SMALLEST_SIZE):
        raise ValueError(
            f"max_size must be 0, for images as they are, or at least {SMALLEST_SIZE}, not {shorten(max_size)}"
        )
    cv2 = _opencv()
    grey = _grey(cv2, image)
    reduced = _reduce(cv2, grey, max_size)
    describe = _largest_keypoints if features == "rootsift" else _strongest_keypoints
    keypoints, descriptors = describe(_detector(cv2, features, max_features), reduced, max_features)
    if not keypoints:
        return np.empty((0, 2)), np.empty((0, 1), np.float32)
    points = cv2.KeyPoint_convert(keypoints).astype(float)
    if reduced is not grey:
        # The corner of the image stays where it is, and it is half a pixel off the centre of the first one.
        points = (points + 0.5) * (np.array(grey.shape[::-1]) / reduced.shape[::-1]) - 0.5
    assert descriptors is not None  # there are as many as keypoints
    return points, _vectors(descriptors)


def _grey(cv2: ModuleType, image: Image) -> Image:
    """The grey levels (H, W) of an image, contiguous."""
    image = as_array(image, "image")
    if image.dtype != np.uint8 or not image.size or image.ndim not in (2, 3) or image.shape[2:] not in ((), (3,)):
        raise ValueError(f"image must be (H, W) or (H, W, 3) uint8, got {image.shape} {image.dtype}")
    image = np.ascontiguousarray(image)
    return image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))


def _reduce(cv2: ModuleType, grey: Image, max_size: int) -> Image:
    """An image (H, W) with at most `max_size` pixels on its longer side; itself if it has no more, or with 0."""
    height, width = grey.shape
    if max_size == 0 or max(height, width) <= max_size:
        return grey
    scale = max_size / max(height, width)
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA))  # means of areas: nothing aliases


def _largest_keypoints(detector: Any, grey: Image, count: int) -> tuple[Sequence[Any], NDArray[Any] | None]:
    """Keypoints of the largest scale first, and their descriptors.

    Only those that are kept are described, which takes less time and memory than to describe all that are found.
    """
    every = detector.detect(grey)
    order = np.argsort([-keypoint.size for keypoint in every], kind="stable")[:count]
    keypoints, descriptors = detector.compute(grey, [every[number] for number in order]) if every else ([], None)
    return keypoints, descriptors


def _strongest_keypoints(detector: Any, grey: Image, count: int) -> tuple[Sequence[Any], NDArray[Any] | None]:
    """Keypoints of the highest response first, and their descriptors."""
    every, descriptors = detector.detectAndCompute(grey, None)
    order = np.argsort([-keypoint.response for keypoint in every], kind="stable")[:count]
    return [every[number] for number in order], descriptors[order] if every else None


def installed_features() -> tuple[str, ...]:
    """The kinds of features that the installed OpenCV has; all of them if there is no OpenCV yet."""
    with suppress(ImportError):
        cv2 = _opencv()
        return tuple(kind for kind in get_args(FeatureKind) if kind != "akaze" or _akaze(cv2) is not None)
    return get_args(FeatureKind)


def _detector(cv2: ModuleType, features: FeatureKind, max_features: int) -> Any:
    if features == "rootsift":
        # Asked for a number, OpenCV would keep the keypoints of the highest contrast, which are the finest ones.
        # Without the precise upscaling, keypoints lie a quarter of a pixel off.
        return cv2.SIFT_create(0, contrastThreshold=CONTRAST_THRESHOLD, enable_precise_upscale=True)
    if features == "orb":
        return cv2.ORB_create(max_features)
    create = _akaze(cv2)
    if create is None:
        raise ImportError(
            f"AKAZE is not in this OpenCV ({cv2.__version__}): pip uninstall opencv-python-headless and "
            "pip install opencv-contrib-python-headless, or choose other features"
        )
    return create()


def _akaze(cv2: ModuleType) -> Any:
    """Return what makes AKAZE's detector, or None: OpenCV 5 moved it to the contributed modules."""
    return getattr(cv2, "AKAZE_create", None) or getattr(getattr(cv2, "xfeatures2d", None), "AKAZE_create", None)


def _vectors(descriptors: NDArray[Any]) -> Floats:
    """Descriptors (N, d) as vectors of one length: SIFT's roots, or bits as ±1."""
    if descriptors.dtype == np.uint8:
        return np.unpackbits(descriptors, axis=1).astype(np.float32) * 2 - 1
    total = np.maximum(descriptors.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(np.sqrt(descriptors / total), np.float32)


def _opencv() -> ModuleType:
    try:
        import cv2
    except ImportError as error:
        raise ImportError("reading and matching images needs OpenCV: pip install 'caransac[images]'") from error
    return cv2
