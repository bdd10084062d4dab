"""Read images with OpenCV, estimate focal lengths from EXIF, and detect and match features.

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
from caransac._support.untrusted import check_image, explain_unreadable, read_bytes
from caransac.camera import Camera
from caransac.camera_priors import EXIF_FOCAL_DEVIATION, usual_distortion
from caransac.geometry import Array, Floats
from caransac.io.descriptors import match_vectors

FeatureKind = Literal["rootsift", "orb", "akaze"]
Image = NDArray[np.uint8]

# Maximum length of the longer side in pixels; at full resolution the finest details of photographs are mostly noise.
MAX_SIZE = 1600
SMALLEST_SIZE = 64  # smallest size in pixels that an image may be reduced to
MAX_FEATURES = 12000  # similar to COLMAP, including its second orientations
# Half of COLMAP's value and a quarter of OpenCV's: faint keypoints of larger scale match better than clear ones of the
# finest scale. On drone photographs of 9 megapixels the median number of inliers is 220, 350 and 410 with 0.04, 0.02
# and 0.01.
CONTRAST_THRESHOLD = 0.01
FILM_DIAGONAL_MM = math.hypot(36, 24)
SENSOR_SHAPES = (4 / 3, 3 / 2)  # long side / short side: 4/3 for phones, drones and compact cameras, 3/2 for others
SAME_SHAPE = 0.02  # maximum relative difference between the shapes of an image and of its sensor
UNITS_MM = {2: 25.4, 3: 10.0, 4: 1.0, 5: 0.001}  # millimetres per unit of EXIF's FocalPlaneResolutionUnit


def read_image(path: str | Path) -> Image:
    """Read an image file as (height, width, 3) uint8 RGB, rotated upright by its EXIF orientation.

    Raises:
        OSError: the file does not exist, is a folder or cannot be read.
        ValueError: the file is not an image or is too large; see `untrusted`.
    """
    cv2, path = _opencv(), as_path(path)
    pixels = _decode(_read_checked(path), path, cv2.IMREAD_COLOR)
    return np.ascontiguousarray(pixels[:, :, ::-1])


def read_grey(path: str | Path, size: tuple[int, int] | None = None, *, upright: bool = True) -> Image:
    """Read the grey levels (height, width) of an image file as uint8.

    Args:
        path: path of the file.
        size: (width, height) that the image must have, or None.
        upright: whether to rotate the image by its EXIF orientation. The other orientation is returned if only that one
            has the wanted size.

    Raises:
        OSError: the file does not exist, is a folder or cannot be read.
        ValueError: the file is not an image, is too large, or has another size.
    """
    cv2, path = _opencv(), as_path(path)
    data = _read_checked(path)
    turned, stored = cv2.IMREAD_GRAYSCALE, cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION
    pixels = _decode(data, path, turned if upright else stored)
    if size is not None and pixels.shape == size and size[0] != size[1]:  # (height, width) is (width, height)
        pixels = _decode(data, path, stored if upright else turned)
    if size is not None and pixels.shape != size[::-1]:
        raise ValueError(f"{path} has {pixels.shape[1]} x {pixels.shape[0]} pixels, not {size[0]} x {size[1]}")
    return pixels


def _read_checked(path: Path) -> bytes:
    """Return the content of an image file."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not an image")
    if not path.exists():
        raise FileNotFoundError(f"no such image: {path}")
    data = read_bytes(path)
    check_image(data, path)
    return data


def _decode(data: bytes, path: Path, mode: int) -> Image:
    """Decode the content of an image file in a mode of OpenCV."""
    cv2 = _opencv()
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), mode)
    except cv2.error:  # a broken header that asks for more memory than OpenCV allows
        pixels = None
    if pixels is None:
        raise ValueError(explain_unreadable(data, path))
    return np.asarray(pixels)


def write_image(path: str | Path, image: Image) -> Path:
    """Write (height, width, 3) uint8 RGB to a file and return its path. The suffix selects the format."""
    cv2 = _opencv()
    path, image = as_path(path), as_array(image, "image")
    if image.dtype != np.uint8 or not image.size or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"image must be (H, W, 3) uint8, got {image.shape} {image.dtype}")
    # OpenCV 5 crashes for a name that is not UTF-8, so it sees only the suffix.
    if len(path.suffix) < 2 or not path.suffix.isascii() or not cv2.haveImageWriter(f"image{path.suffix}"):
        raise ValueError(f"OpenCV cannot write {path}: its name must end in .png or .jpg")
    encoded, data = cv2.imencode(path.suffix, np.ascontiguousarray(image[:, :, ::-1]))
    if not encoded:
        raise ValueError(f"OpenCV cannot write {path}")
    with replacing(path) as temporary:
        temporary.write_bytes(data.tobytes())  # OpenCV does not report a full disk
    return path


def focal_from_exif(path: str | Path) -> float | None:
    """Return the focal length in pixels from the EXIF data of an image file, or None if it has none.

    It uses FocalLengthIn35mmFilm and the diagonals of film and sensor, or else FocalLength and FocalPlaneXResolution.
    Both assume square pixels, so the orientation of the image makes no difference. An image that is neither 4:3 nor
    3:2, such as 16:9, is assumed to be the largest crop of either sensor. Its focal length is between the values for
    the two sensors.
    """
    known = _exif_focal(path)
    return None if known is None else known[0]


def _exif_focal(path: str | Path) -> tuple[float, float] | None:
    """Return the focal length in pixels from EXIF and its relative deviation, or None."""
    try:
        from PIL import ExifTags, Image
    except ImportError as error:
        raise ImportError("reading EXIF data needs Pillow: pip install 'caransac[images]'") from error
    data = io.BytesIO(read_bytes(as_path(path)))
    with warnings.catch_warnings(), suppress(Exception):  # Pillow may raise anything for a broken file
        warnings.simplefilter("ignore")
        with Image.open(data) as image:
            exif = image.getexif()
            return _focal_px({**exif, **exif.get_ifd(ExifTags.IFD.Exif)}, image.size)
    return None


def _focal_px(tags: dict[int, Any], size: tuple[int, int]) -> tuple[float, float] | None:
    """Return the focal length in pixels, and its relative deviation, for an image size and its EXIF tags."""
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
    # The resolution refers to the original picture.
    taken = max(number(Base.ExifImageWidth), number(Base.ExifImageHeight))
    return focal_mm * resolution / unit_mm * (max(size) / taken if taken else 1.0), EXIF_FOCAL_DEVIATION


def _sensor_diagonal(size: tuple[int, int]) -> tuple[float, float]:
    """Return the diagonal in pixels of the sensor that an image was cropped from, and its relative deviation.

    Cameras that crop an image to another shape record the focal length of the whole sensor. With the diagonal of a 16:9
    image, the focal length would be 8 per cent too short for a 4:3 sensor and 5 per cent for a 3:2 sensor.
    """
    short, long = sorted(size)
    if any(abs(long / short / shape - 1) < SAME_SHAPE for shape in SENSOR_SHAPES):
        return math.hypot(*size), 0.0
    small, large = sorted(max(long, short * shape) * math.hypot(1, 1 / shape) for shape in SENSOR_SHAPES)
    return (small + large) / 2, (large - small) / (large + small)


def centred_camera(focal_px: float, image: Image, focal_deviation: float = 0.0) -> Camera:
    """Return a camera with a focal length in pixels, its deviation, and the image centre as principal point."""
    shape = as_array(image, "image").shape
    if len(shape) not in (2, 3):
        raise ValueError(f"image must be (H, W) or (H, W, 3), got shape {shape}")
    height, width = shape[:2]
    if not is_real(focal_px) or not 0 < focal_px < math.inf:
        raise ValueError(f"focal_px must be a positive number of pixels, not {shorten(focal_px)}")
    return Camera("SIMPLE_PINHOLE", (focal_px, (width - 1) / 2, (height - 1) / 2), width, height, focal_deviation)


def camera_from_exif(path: str | Path, image: Image) -> Camera | None:
    """Return the camera of an image from the EXIF data of its file, accurate to a few per cent; None without EXIF.

    `caransac.estimate_relative_pose` accepts the camera or None. If it is None, also pass the size of the image.
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
    """Match the features of two images by mutual nearest neighbours.

    Args:
        image1: (H, W, 3) or (H, W) uint8.
        image2: (H, W, 3) or (H, W) uint8.
        features: "rootsift" (Arandjelović and Zisserman, CVPR 2012), the most accurate; "orb" or "akaze".
        max_features: maximum number of keypoints per image; see `detect` for their order.
        max_size: length in pixels of the longer side to which images are reduced for detection; 0 for full size.

    Returns:
        points1 (N, 2) and points2 (N, 2) in pixels of the original images, and ratios (N,) of the distance to the
        nearest and to the second-nearest descriptor, for ``score_kind="ratio"``.
    """
    found1, found2 = (detect(image, features, max_features, max_size) for image in (image1, image2))
    return match_features(found1, found2, features)


def match_features(
    found1: tuple[Array, Floats], found2: tuple[Array, Floats], features: FeatureKind
) -> tuple[Array, Array, Array]:
    """Match the features that `detect` found in two images. Return the same as `match_images`."""
    (points1, vectors1), (points2, vectors2) = found1, found2
    index1, index2, ratios_sq = match_vectors(vectors1, vectors2)
    # Squared distances of ±1 vectors count differing bits.
    ratios = np.sqrt(ratios_sq) if features == "rootsift" else ratios_sq
    return points1[index1], points2[index2], ratios


def detect(
    image: Image, features: FeatureKind = "rootsift", max_features: int = MAX_FEATURES, max_size: int = MAX_SIZE
) -> tuple[Array, Floats]:
    """Detect keypoints: the largest scale first for "rootsift", otherwise the strongest first.

    In photographs the largest keypoints repeat best. The finest details change between views because of noise, leaves
    and light, however strong they are.

    Args:
        image: (H, W, 3) or (H, W) uint8.
        features: see `match_images`.
        max_features: maximum number of keypoints.
        max_size: length in pixels of the longer side to which larger images are reduced first; 0 for full size.

    Returns:
        (N, 2) pixels of the original image, and (N, d) descriptors as vectors of equal length for
        `descriptors.match_vectors`. The bits of a binary descriptor become components of ±1.
    """
    if not isinstance(features, str) or features not in get_args(FeatureKind):
        raise ValueError(f"features must be one of {', '.join(get_args(FeatureKind))}, not {shorten(features)}")
    check_whole(max_features, "max_features", 1, 10**6)
    if not is_integer(max_size) or (max_size != 0 and max_size < SMALLEST_SIZE):
        raise ValueError(f"max_size must be 0, for the full size, or at least {SMALLEST_SIZE}, not {shorten(max_size)}")
    cv2 = _opencv()
    grey = _grey(cv2, image)
    reduced = _reduce(cv2, grey, max_size)
    describe = _largest_keypoints if features == "rootsift" else _strongest_keypoints
    keypoints, descriptors = describe(_detector(cv2, features, max_features), reduced, max_features)
    if not keypoints:
        return np.empty((0, 2)), np.empty((0, 1), np.float32)
    points = cv2.KeyPoint_convert(keypoints).astype(float)
    if reduced is not grey:
        # Scaling keeps the corner of the image fixed. The corner is half a pixel away from the centre of the first
        # pixel.
        points = (points + 0.5) * (np.array(grey.shape[::-1]) / reduced.shape[::-1]) - 0.5
    assert descriptors is not None  # one descriptor per keypoint
    return points, _vectors(descriptors)


def _grey(cv2: ModuleType, image: Image) -> Image:
    """Return the grey levels (H, W) of an image in contiguous memory."""
    image = as_array(image, "image")
    if image.dtype != np.uint8 or not image.size or image.ndim not in (2, 3) or image.shape[2:] not in ((), (3,)):
        raise ValueError(f"image must be (H, W) or (H, W, 3) uint8, got {image.shape} {image.dtype}")
    image = np.ascontiguousarray(image)
    return image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))


def _reduce(cv2: ModuleType, grey: Image, max_size: int) -> Image:
    """Reduce an image (H, W) so that its longer side has at most `max_size` pixels; 0 keeps its size."""
    height, width = grey.shape
    if max_size == 0 or max(height, width) <= max_size:
        return grey
    scale = max_size / max(height, width)
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA))  # averages areas, which avoids aliasing


def _largest_keypoints(detector: Any, grey: Image, count: int) -> tuple[Sequence[Any], NDArray[Any] | None]:
    """Return the `count` keypoints of the largest scale, and their descriptors.

    Only these keypoints are described, which takes less time and memory than describing all of them.
    """
    every = detector.detect(grey)
    order = np.argsort([-keypoint.size for keypoint in every], kind="stable")[:count]
    keypoints, descriptors = detector.compute(grey, [every[number] for number in order]) if every else ([], None)
    return keypoints, descriptors


def _strongest_keypoints(detector: Any, grey: Image, count: int) -> tuple[Sequence[Any], NDArray[Any] | None]:
    """Return the `count` keypoints of the highest response, and their descriptors."""
    every, descriptors = detector.detectAndCompute(grey, None)
    order = np.argsort([-keypoint.response for keypoint in every], kind="stable")[:count]
    return [every[number] for number in order], descriptors[order] if every else None


def installed_features() -> tuple[str, ...]:
    """Return the feature kinds of the installed OpenCV, or all kinds if OpenCV is missing."""
    with suppress(ImportError):
        cv2 = _opencv()
        return tuple(kind for kind in get_args(FeatureKind) if kind != "akaze" or _akaze(cv2) is not None)
    return get_args(FeatureKind)


def _detector(cv2: ModuleType, features: FeatureKind, max_features: int) -> Any:
    if features == "rootsift":
        # With a maximum number, OpenCV would keep the keypoints with the highest contrast, which are the finest ones.
        # Without the precise upscaling, keypoints are off by a quarter of a pixel.
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
    """Return the factory of AKAZE's detector, or None. OpenCV 5 moved it to the contributed modules."""
    return getattr(cv2, "AKAZE_create", None) or getattr(getattr(cv2, "xfeatures2d", None), "AKAZE_create", None)


def _vectors(descriptors: NDArray[Any]) -> Floats:
    """Convert descriptors (N, d) to vectors of equal length: RootSIFT, or bits as ±1."""
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
