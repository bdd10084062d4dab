"""From image files to correspondences, with OpenCV: pixels, focal lengths, features and their nearest neighbours.

Pixels follow OpenCV: the centre of the top-left pixel is (0, 0).
"""

from __future__ import annotations

import io
import math
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from caransac._support.files import replacing
from caransac.camera import EXIF_FOCAL_DEVIATION, Camera
from caransac.descriptors import match_vectors
from caransac.geometry import Array, Floats

FeatureKind = Literal["rootsift", "orb", "akaze"]
Image = NDArray[np.uint8]

MAX_FEATURES = 8000
FILM_DIAGONAL_MM = math.hypot(36, 24)
UNITS_MM = {2: 25.4, 3: 10.0, 4: 1.0, 5: 0.001}  # of EXIF's FocalPlaneResolutionUnit


def read_image(path: str | Path) -> Image:
    """The pixels of an image file, (height, width, 3) uint8 RGB, turned upright as its EXIF orientation says.

    Raises:
        OSError: there is no such file, or it is a folder or cannot be read.
        ValueError: it is not an image.
    """
    cv2 = _opencv()
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not an image")
    if not path.exists():
        raise FileNotFoundError(f"no such image: {path}")
    data = np.frombuffer(path.read_bytes(), np.uint8)
    try:
        pixels = cv2.imdecode(data, cv2.IMREAD_COLOR) if len(data) else None
    except cv2.error:  # a broken header that asks for more than OpenCV allows
        pixels = None
    if pixels is None:
        raise ValueError(f"{path} is not an image, or of a kind that OpenCV cannot read; JPEG, PNG and TIFF work")
    return np.ascontiguousarray(pixels[:, :, ::-1])


def write_image(path: str | Path, image: Image) -> Path:
    """Write (height, width, 3) uint8 RGB to a file, whose ending chooses the format; returns the path."""
    cv2 = _opencv()
    path, image = Path(path), np.asarray(image)
    if image.dtype != np.uint8 or not image.size or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"image must be (H, W, 3) uint8, got {image.shape} {image.dtype}")
    if not path.suffix or not cv2.haveImageWriter(path.name):
        raise ValueError(f"OpenCV cannot write {path}: let its name end in .png or .jpg")
    with replacing(path) as temporary:
        if not cv2.imwrite(str(temporary), np.ascontiguousarray(image[:, :, ::-1])):
            raise ValueError(f"OpenCV cannot write {path}")
    return path


def focal_from_exif(path: str | Path) -> float | None:
    """Focal length in pixels that the EXIF data of an image file tell, or None where they do not.

    It is FocalLengthIn35mmFilm, by the images' diagonals as the standard has it, or else FocalLength with
    FocalPlaneXResolution. Both are for square pixels, so the image's orientation makes no difference.
    """
    try:
        from PIL import ExifTags, Image
    except ImportError as error:
        raise ImportError("reading EXIF data needs Pillow: pip install 'caransac[images]'") from error
    data = io.BytesIO(Path(path).read_bytes())
    broken = OSError, SyntaxError, ValueError, Image.DecompressionBombError  # what Pillow says of broken or vast files
    with warnings.catch_warnings(), suppress(*broken):
        warnings.simplefilter("ignore")
        with Image.open(data) as image:
            exif = image.getexif()
            return _focal_px({**exif, **exif.get_ifd(ExifTags.IFD.Exif)}, image.size)
    return None


def _focal_px(tags: dict[int, Any], size: tuple[int, int]) -> float | None:
    """Focal length in pixels of an image of some (width, height) with these EXIF tags."""
    from PIL.ExifTags import Base

    def number(tag: Base, default: float = 0.0) -> float:
        try:
            value = float(tags.get(tag, default))
        except (TypeError, ValueError, ZeroDivisionError):
            return default
        return value if math.isfinite(value) and value > 0 else default

    film = number(Base.FocalLengthIn35mmFilm)
    if film > 0:
        return film / FILM_DIAGONAL_MM * math.hypot(*size)
    focal_mm, resolution = number(Base.FocalLength), number(Base.FocalPlaneXResolution)
    unit_mm = UNITS_MM.get(int(number(Base.FocalPlaneResolutionUnit, 2)))
    if not focal_mm or not resolution or unit_mm is None:
        return None
    taken = max(number(Base.ExifImageWidth), number(Base.ExifImageHeight))  # the resolution is of the picture as taken
    return focal_mm * resolution / unit_mm * (max(size) / taken if taken else 1.0)


def centred_camera(focal_px: float, image: Image, focal_deviation: float = 0.0) -> Camera:
    """The camera of an image with a focal length in pixels, known to a relative deviation, and its middle as centre."""
    height, width = image.shape[:2]
    return Camera("SIMPLE_PINHOLE", (focal_px, (width - 1) / 2, (height - 1) / 2), width, height, focal_deviation)


def camera_from_exif(path: str | Path, image: Image) -> Camera | None:
    """The camera that the EXIF data of an image's file tell, to a few per cent; None where they do not.

    `caransac.estimate_relative_pose` takes either, with the image's size for the latter.
    """
    focal = focal_from_exif(path)
    return None if focal is None else centred_camera(focal, image, EXIF_FOCAL_DEVIATION)


def match_images(
    image1: Image, image2: Image, *, features: FeatureKind = "rootsift", max_features: int = MAX_FEATURES
) -> tuple[Array, Array, Array]:
    """Correspondences of two images: features that are each other's nearest.

    Args:
        image1: (H, W, 3) or (H, W) uint8.
        image2: (H, W, 3) or (H, W) uint8.
        features: "rootsift" (Arandjelović and Zisserman, CVPR 2012), the most accurate; "orb" or "akaze".
        max_features: keypoints per image at most, the strongest ones.

    Returns:
        points1 (N, 2) and points2 (N, 2) in pixels, and (N,) the ratios of the nearest to the second-nearest
        descriptor's distance, for ``score_kind="ratio"``.
    """
    return match_features(detect(image1, features, max_features), detect(image2, features, max_features), features)


def match_features(
    found1: tuple[Array, Floats], found2: tuple[Array, Floats], features: FeatureKind
) -> tuple[Array, Array, Array]:
    """Correspondences of what `detect` found in two images, as `match_images` returns them."""
    (points1, vectors1), (points2, vectors2) = found1, found2
    index1, index2, ratios_sq = match_vectors(vectors1, vectors2)
    ratios = np.sqrt(ratios_sq) if features == "rootsift" else ratios_sq  # squared, ±1 vectors count differing bits
    return points1[index1], points2[index2], ratios


def detect(image: Image, features: FeatureKind = "rootsift", max_features: int = MAX_FEATURES) -> tuple[Array, Floats]:
    """Keypoints of an image, the strongest first.

    Returns:
        (N, 2) pixels, and (N, d) descriptors as vectors of one length, for `descriptors.match_vectors`: the bits of a
        binary descriptor become components of ±1.
    """
    if features not in get_args(FeatureKind):
        raise ValueError(f"features must be one of {', '.join(get_args(FeatureKind))}, not {features!r}")
    if not 1 <= max_features <= 10**6:
        raise ValueError(f"max_features must be from 1 to a million, not {max_features}")
    cv2 = _opencv()
    image = np.asarray(image)
    if image.dtype != np.uint8 or not image.size or image.ndim not in (2, 3) or image.shape[2:] not in ((), (3,)):
        raise ValueError(f"image must be (H, W) or (H, W, 3) uint8, got {image.shape} {image.dtype}")
    grey = image if image.ndim == 2 else cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY)
    keypoints, descriptors = _detector(cv2, features, max_features).detectAndCompute(np.ascontiguousarray(grey), None)
    if not keypoints:
        return np.empty((0, 2)), np.empty((0, 1), np.float32)
    order = np.argsort([-keypoint.response for keypoint in keypoints], kind="stable")[:max_features]
    points = cv2.KeyPoint_convert(keypoints)[order].astype(float)
    return points, _vectors(descriptors[order])


def _detector(cv2: ModuleType, features: FeatureKind, max_features: int) -> Any:
    if features == "rootsift":
        # Without the precise upscaling, keypoints lie a quarter of a pixel off.
        return cv2.SIFT_create(max_features, enable_precise_upscale=True)
    if features == "orb":
        return cv2.ORB_create(max_features)
    # OpenCV 5 moved AKAZE to the contributed modules.
    create = getattr(cv2, "AKAZE_create", None) or getattr(getattr(cv2, "xfeatures2d", None), "AKAZE_create", None)
    if create is None:
        raise ImportError(
            f"AKAZE is not in this OpenCV ({cv2.__version__}): pip uninstall opencv-python-headless and "
            "pip install opencv-contrib-python-headless, or choose other features"
        )
    return create()


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
