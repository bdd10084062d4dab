"""Write the report: page, styles, scripts and content in one file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac._support.arrays import LARGEST_SIDE, as_array, as_reals, as_size, is_integer, shorten
from caransac._support.files import Target, delivering
from caransac._support.untrusted import escape_controls
from caransac.camera import Camera
from caransac.camera_words import describe_focal
from caransac.geometry import Array
from caransac.given_cameras import CameraLike, as_camera
from caransac.results import GeometryResult, HomographyResult, RelativePoseResult, Round, TwoViewResult
from caransac.viewer.content import DrawnResult, describe
from caransac.viewer.geometries import DrawnImage

SCRIPTS = (
    "content.js",
    "epipolar.js",
    "homography.js",
    "frames.js",
    "stage.js",
    "space.js",
    "charts.js",
    "summary.js",
    "copying.js",
    "zooming.js",
    "pointing.js",
    "turning.js",
    "viewer.js",
)  # all scripts share one scope and are loaded in this order
MAX_IMAGE_PX = 1600  # longer side of images: sharp on a large screen, and the report stays below one or two megabytes
JPEG_QUALITY = 82


def write_report(
    path: Target,
    result: DrawnResult | GeometryResult,
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    camera1: CameraLike | None = None,
    camera2: CameraLike | None = None,
    camera_source1: str = "",
    camera_source2: str = "",
    image1: ArrayLike | None = None,
    image2: ArrayLike | None = None,
    size1: tuple[int, int] | None = None,
    size2: tuple[int, int] | None = None,
    scores: ArrayLike | None = None,
    title: str = "",
    max_image_px: int | None = MAX_IMAGE_PX,
) -> Path | IO[Any]:
    """Write one HTML file that shows an estimation. It opens in any browser, without a network.

    The report shows every round if the estimate was made with ``Options(keep_trace=True)``, otherwise only the result.

    Args:
        path: path of the file, or a file that is open for writing.
        result: the result, successful or not. If `caransac.estimate` answered with a homography, that is drawn,
            otherwise its estimate of the epipolar geometry.
        points1: (N, 2) pixels in image 1, as passed to the estimator. The drawing assumes that (0, 0) is the centre of
            the top-left pixel.
        points2: (N, 2) pixels in image 2. If the answer was estimated from refined matches, the report shows the
            refined points, and the loupes show the given ones, too.
        camera1: camera of image 1, as passed to the estimator; None if it was unknown. If it was uncertain or unknown,
            the camera of the result is drawn. For a fundamental matrix the cameras are optional; they enable the 3-D
            view.
        camera2: camera of image 2.
        camera_source1: source of the camera of image 1 in a few words, such as "from EXIF".
        camera_source2: source of the camera of image 2.
        image1: (H, W) or (H, W, 3) uint8 RGB, or None for an empty frame. Images need OpenCV.
        image2: image 2 in the same form.
        size1: (width, height) of image 1 in pixels. By default, the size of the image, of the camera, or of a frame
            around the points. A failed estimation with an unknown camera needs it, or the image.
        size2: size of image 2.
        scores: (N,) one number to show per match, or None.
        title: title of the report, plain text. Control characters are escaped.
        max_image_px: longer side in pixels to which larger images are reduced; None for full resolution. Zooming and
            the loupes then show all details, but the file has many megabytes.

    Returns:
        The path, or the file.

    Raises:
        ValueError: an argument has a wrong shape or impossible values. The message names it.
        ImportError: there are images, but OpenCV is missing.
    """
    if not isinstance(result, DrawnResult | GeometryResult):
        raise ValueError(f"result must be a result of caransac, not {type(result).__name__}")
    geometry = result if isinstance(result, GeometryResult) else None
    result = _drawn(result)
    found1, found2 = _found_cameras(result, geometry)
    count = len(result.inliers)
    pixels1, pixels2 = _reals(points1, "points1", (count, 2)), _reals(points2, "points2", (count, 2))
    if result.num_refined and result.refinement is not None:
        pixels2 = result.refinement.points2
    if max_image_px is not None and not (is_integer(max_image_px) and 1 <= max_image_px <= LARGEST_SIDE):
        raise ValueError(f"max_image_px must be a positive number of pixels or None, not {shorten(max_image_px)}")
    texts = {"title": title, "camera_source1": camera_source1, "camera_source2": camera_source2}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{name} must be a text, not {shorten(text)}")
    views = (
        _View("1", camera1, found1, camera_source1, image1, size1, max_image_px),
        _View("2", camera2, found2, camera_source2, image2, size2, max_image_px),
    )
    assume = isinstance(result, RelativePoseResult)
    images = views[0].draw(pixels1, assume=assume), views[1].draw(pixels2, assume=assume)
    checked = None if scores is None else _reals(scores, "scores", (count,))
    content = describe(result, images, scores=checked, title=escape_controls(title), found=geometry)
    with delivering(path, ".html") as temporary:
        # Otherwise a title could close its HTML element.
        text = json.dumps(content, allow_nan=False).replace("<", "\\u003c")
        page = fill_page("report.html", SCRIPTS, title or "Two-view report", content=text)
        temporary.write_text(page, encoding="utf-8")
    return Path(path) if isinstance(path, str | Path) else path


def _drawn(result: DrawnResult | GeometryResult) -> DrawnResult:
    """Choose the result to draw: the homography for a plane or a rotation, whose epipolar geometry is ambiguous."""
    if not isinstance(result, GeometryResult):
        return result
    if result.H is None:
        return result.epipolar
    shared = {field.name: getattr(result, field.name) for field in fields(TwoViewResult)}
    return HomographyResult(H=result.H, **shared | {"trace": _trace_of_homographies(result)})


def _trace_of_homographies(result: GeometryResult) -> tuple[Round, ...] | None:
    """Return the rounds as homographies. A pose becomes the homography of its rotation; rounds of F are dropped."""
    if result.trace is None or result.trace is not result.epipolar.trace:
        return result.trace
    if not isinstance(result.epipolar, RelativePoseResult) or result.camera1 is None or result.camera2 is None:
        return None
    from_pixels1, to_pixels2 = np.linalg.inv(result.camera1.K), result.camera2.K

    def turned(poses: Array) -> Array:
        H = to_pixels2 @ poses[..., :3] @ from_pixels1
        return np.asarray(H / np.linalg.norm(H, axis=(-2, -1), keepdims=True))

    return tuple(
        replace(each, models=turned(each.models), best=None if each.best is None else turned(each.best))
        for each in result.trace
    )


def _found_cameras(result: DrawnResult, geometry: GeometryResult | None) -> tuple[Camera | None, Camera | None]:
    """Return the cameras that belong to the drawn result."""
    if not isinstance(result, HomographyResult):
        return result.camera1, result.camera2
    return (None, None) if geometry is None else (geometry.camera1, geometry.camera2)


def fill_page(body: str, scripts: Sequence[str], title: str, **parts: str) -> str:
    """Fill the page with a body in one pass, so that inserted text is never interpreted as a placeholder.

    Only the styles and scripts of this package may run. The content security policy lists their hashes and forbids
    loading anything.
    """
    styles, code = _resource("viewer.css"), "\n".join(_resource(name) for name in scripts)
    code = f'(() => {{\n"use strict";\n{code}}})();'
    policy = (
        f"default-src 'none'; img-src data:; style-src {_source_hash(styles)}; script-src {_source_hash(code)}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts |= {"policy": policy, "title": html.escape(escape_controls(title)), "styles": styles, "scripts": code}
    page = _resource("page.html").replace("{{body}}", _resource(body))
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page)


def _resource(name: str) -> str:
    return (files("caransac.viewer") / name).read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@dataclass(frozen=True)
class _View:
    """One of the images, as described by the caller and by the result.

    Attributes:
        number: "1" or "2", for error messages.
        camera: camera that was passed to the estimator, or None.
        found: camera of the result, or None.
        source: source of the camera; empty if unknown.
        image: pixels, or None.
        size: (width, height), or None.
        max_image_px: maximum length of the longer side of the picture; None for no limit.
    """

    number: str
    camera: CameraLike | None
    found: Camera | None
    source: str
    image: ArrayLike | None
    size: tuple[int, int] | None
    max_image_px: int | None

    def draw(self, pixels: Array, *, assume: bool) -> DrawnImage:
        """Return the image with points (n, 2). If `assume` is True, an unknown camera is the estimator's default."""
        shown = None if self.image is None else _checked_image(self.image, f"image{self.number}")
        given = None if self.camera is None else as_camera(self.camera, f"camera{self.number}")
        size = self._known_size(given, shown)
        unknown = given is None and (self.found is None or self.found.focal_deviation > 0)
        if unknown and assume and size is not None:
            given = Camera.of_unknown_focal(*size)
        exact = given is not None and given.focal_deviation == 0
        camera = given if exact else self.found or given
        if size is None:  # a principal point is near the middle of the image
            size = _enclosing(pixels, np.zeros(2) if camera is None else 2 * camera.K[:2, 2])
        jpeg = None if shown is None else encode_jpeg(shown, self.max_image_px)
        focal = "" if camera is None else describe_focal(camera, None if self.camera is None else given, self.source)
        return DrawnImage(pixels, camera, given, focal, size, jpeg)

    def _known_size(self, given: Camera | None, shown: NDArray[np.uint8] | None) -> tuple[int, int] | None:
        if self.size is not None:
            return as_size(self.size, f"size{self.number}")
        if shown is not None:
            return shown.shape[1], shown.shape[0]
        camera = given or self.found
        return (camera.width, camera.height) if camera is not None and camera.width > 0 and camera.height > 0 else None


def _enclosing(pixels: Array, at_least: Array) -> tuple[int, int]:
    """Return the size of an image around nearly all points. A few extreme points must not shrink the others."""
    extent = np.percentile(pixels, 99.5, axis=0) if len(pixels) else np.array([640.0, 480.0])
    width, height = np.ceil(np.maximum(np.maximum(extent, at_least), 1.0)).astype(int).tolist()
    return width, height


def _reals(values: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    array = as_reals(values, name)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, one row per match of the result; got {array.shape}")
    return array


def _checked_image(values: ArrayLike, name: str) -> NDArray[np.uint8]:
    image = as_array(values, name)
    colour = image.ndim == 3 and image.shape[2] == 3
    if image.dtype != np.uint8 or not (image.ndim == 2 or colour) or image.size == 0:
        raise ValueError(f"{name} must be (H, W) or (H, W, 3) uint8, got {image.shape} {image.dtype}")
    return np.asarray(image, np.uint8)


def encode_jpeg(image: NDArray[np.uint8], max_image_px: int | None) -> bytes:
    """Encode an image (H, W) or (H, W, 3) RGB as JPEG, with at most `max_image_px` pixels on its longer side."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError("images in a report need OpenCV: pip install 'caransac[images]'") from error

    height, width = image.shape[:2]
    scale = 1.0 if max_image_px is None else max_image_px / max(height, width)
    if scale < 1:
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
    if image.ndim == 3:
        image = np.ascontiguousarray(image[:, :, ::-1])  # OpenCV's order is BGR
    done, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not done:
        raise ValueError("an image could not be written as JPEG")
    return encoded.tobytes()
