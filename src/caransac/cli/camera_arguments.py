"""Cameras of two views from options, files of matches, and EXIF data."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from caransac._support.arrays import LARGEST_SIDE
from caransac.camera import Camera
from caransac.camera_priors import parse_lens, split_deviation
from caransac.camera_words import describe_focal
from caransac.geometry import Array
from caransac.io import images
from caransac.io.images import Image
from caransac.io.matches import Matches

# Source of a camera: --camera, --focal, the file of matches, EXIF data, the matches themselves; or none.
CameraSource = Literal["camera", "focal", "file", "exif", "estimated", "unknown"]
SOURCE_TEXTS = {
    "camera": "from --camera",
    "focal": "from --focal",
    "file": "from the file of matches",
    "exif": "from EXIF",
    "unknown": "unknown",
}
IF_KNOWN = "give --focal or --camera if you know it"
MOST_OUTSIDE = 0.05  # maximum share of matches outside of their image; above it the size is wrong

Size = tuple[int, int]  # (width, height)


class Photo(NamedTuple):
    """An image and its file."""

    path: Path
    pixels: Image

    @property
    def size(self) -> Size:
        """(width, height) in pixels."""
        return self.pixels.shape[1], self.pixels.shape[0]


class KnownCamera(NamedTuple):
    """Camera of one view, as far as it is known.

    Attributes:
        camera: the camera, or None if its focal length is unknown.
        size: (width, height) of the image, or None.
        source: source of the camera; "estimated" if only the size is known, so that the focal length will be estimated.
    """

    camera: Camera | None
    size: Size | None
    source: CameraSource


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the group of options about the cameras."""
    cameras = parser.add_argument_group(
        "cameras",
        "Give an option once for both images, or twice: first for image 1, then for\nimage 2. Without these "
        "options, the cameras come from the file of matches or\nfrom the EXIF data of the images. An unknown focal "
        "length is estimated from\nthe matches. An uncertain one, written as 1200±5% or 1200+-5% or read "
        "from\nEXIF data, is refined with the pose.",
    )
    known = cameras.add_mutually_exclusive_group()
    known.add_argument(
        "--camera",
        action="append",
        default=[],
        metavar="CAMERA",
        help="f,cx,cy or fx,fy,cx,cy or COLMAP's MODEL:WIDTHxHEIGHT:params, in pixels, followed by ±5%% if the focal "
        "length is uncertain; the top-left pixel's centre is (0, 0), so subtract 0.5 from COLMAP's cx and cy",
    )
    known.add_argument(
        "--focal",
        action="append",
        default=[],
        metavar="F",
        help="focal length in pixels, 1200 or 1200±5%%; the principal point is the middle of the image",
    )
    cameras.add_argument(
        "--distortion",
        action="append",
        default=[],
        metavar="K1",
        help="radial distortion, k1 of COLMAP's SIMPLE_RADIAL. -0.05 is exact; with -0.05±0.02 or unknown, k1 is "
        "estimated with the pose if the matches constrain it (default: the value of --camera; unknown for unknown "
        "cameras and cameras from EXIF data)",
    )
    cameras.add_argument(
        "--image-size",
        action="append",
        default=[],
        metavar="WxH",
        help="size of the images in pixels, for --matches without images",
    )
    alike = cameras.add_mutually_exclusive_group()
    alike.add_argument(
        "--same-camera",
        action="store_true",
        default=None,
        help="one camera took both images at one zoom, so that they share an uncertain focal length (default: decide "
        "by the cameras, sizes and matches)",
    )
    alike.add_argument(
        "--different-cameras",
        dest="same_camera",
        action="store_false",
        help="two cameras took the images, or one camera that zoomed",
    )
    cameras.add_argument(
        "--fundamental",
        action="store_true",
        help="estimate a fundamental matrix, which needs no cameras, instead of a pose",
    )


def find_camera(
    arguments: argparse.Namespace, number: int, photo: Photo | None, matches: Matches | None
) -> KnownCamera:
    """Return the known camera of view 0 or 1."""
    stored, size = (None, None) if matches is None else _stored(matches, number)
    measured = "the image"
    asked = _of_view(arguments.image_size, number, "--image-size")
    if asked is not None and matches is not None:
        size, measured = _parse_size(asked, (matches.points1, matches.points2)[number]), "--image-size"
    if photo is not None:
        size, measured = photo.size, str(photo.path)

    known = _find_camera(arguments, number, photo, stored, size, measured)
    lens = _of_view(arguments.distortion, number, "--distortion")
    return known if lens is None else known._replace(camera=_with_lens(known, lens))


def _find_camera(
    arguments: argparse.Namespace,
    number: int,
    photo: Photo | None,
    stored: Camera | None,
    size: Size | None,
    measured: str,
) -> KnownCamera:
    """Return the known camera of a view, before --distortion is applied."""
    text, focal = _of_view(arguments.camera, number, "--camera"), _of_view(arguments.focal, number, "--focal")
    if text is not None:
        camera = _fit(Camera.from_text(text), size, measured)
        return KnownCamera(camera, _size(camera), "camera")
    if focal is not None:
        return KnownCamera(_centred(focal, size), size, "focal")
    if stored is not None:
        return KnownCamera(_fit(stored, size, measured), size, "file")
    exif = None if photo is None else images.camera_from_exif(photo.path, photo.pixels)
    if exif is not None:
        return KnownCamera(exif, size, "exif")
    return KnownCamera(None, size, "unknown" if size is None else "estimated")


def _with_lens(known: KnownCamera, text: str) -> Camera | None:
    """Return the camera with the lens of a text: -0.05, -0.05±0.02 or unknown.

    If there is no camera, it is the one to assume for the size of the image.
    """
    try:
        k1, deviation = parse_lens(text)
    except ValueError as error:
        raise ValueError(f"--distortion must be k1, such as -0.05 or -0.05±0.02, or unknown, not {text!r}") from error
    camera = known.camera
    if camera is None:
        if known.size is None:
            raise ValueError("--distortion needs the camera, or the size of the images: give --camera or --image-size")
        camera = Camera.of_unknown_focal(*known.size)
    try:
        return camera.with_lens(camera.k1 if k1 is None else k1, deviation)
    except ValueError as error:
        raise ValueError(f"--distortion {text}: {error}") from error


def _of_view(values: Sequence[str], number: int, option: str) -> str | None:
    """Return the value of an option for view 0 or 1. A single value applies to both."""
    if len(values) > 2:
        raise ValueError(f"{option} was given {len(values)} times; give it once for both, or once for each")
    return values[min(number, len(values) - 1)] if values else None


def _stored(matches: Matches, number: int) -> tuple[Camera | None, Size | None]:
    camera = (matches.camera1, matches.camera2)[number]
    return camera, (matches.image_size1, matches.image_size2)[number] if camera is None else _size(camera)


def _size(camera: Camera) -> Size | None:
    return (camera.width, camera.height) if camera.width and camera.height else None


def _parse_size(text: str, points: Array) -> Size:
    """Parse (width, height) of an image, which must contain its points (N, 2)."""
    found = re.fullmatch(r"(\d{1,7})[xX](\d{1,7})", text.strip())
    width, height = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE):
        raise ValueError(f"--image-size must be WIDTHxHEIGHT in pixels, such as 1024x768, not {text!r}")
    if len(points) and np.mean(np.any(points > (width, height), axis=1)) > MOST_OUTSIDE:
        right, bottom = np.max(points, axis=0)
        raise ValueError(f"--image-size {text} is too small for the matches, which reach ({right:.0f}, {bottom:.0f})")
    return width, height


def _centred(text: str, size: Size | None) -> Camera:
    """Return the camera of a focal length, written as 1200 or 1200±5%, with a centred principal point."""
    try:
        front, deviation = split_deviation(text)
        focal = float(front)
    except ValueError as error:
        raise ValueError(f"--focal must be a number of pixels, 1200 or 1200±5%, not {text!r}") from error
    if not 0 < focal < math.inf:
        raise ValueError(f"--focal must be positive, not {focal:g}")
    if size is None:
        raise ValueError("--focal needs the size of the images: give the images, --image-size WxH, or --camera f,cx,cy")
    if not 0 <= deviation <= 1:
        raise ValueError(f"--focal {text}: the deviation must be from 0 % to 100 %")
    return Camera("SIMPLE_PINHOLE", (focal, (size[0] - 1) / 2, (size[1] - 1) / 2), *size, deviation)


def _fit(camera: Camera, size: Size | None, measured: str) -> Camera:
    """Return the camera with the size of its image. Raise a ValueError if it was made for another size."""
    if size is None:
        return camera
    if (camera.width or size[0], camera.height or size[1]) != size:
        raise ValueError(f"the camera is for {camera.width}x{camera.height}, but {measured} is {size[0]}x{size[1]}")
    return replace(camera, width=size[0], height=size[1])


def explain_unknown(photos: tuple[Photo, Photo] | None, sources: Sequence[CameraSource]) -> str | None:
    """Return a note about unknown cameras and how to give them, or None if both are known."""
    if "unknown" in sources:
        return (
            "neither the cameras nor the sizes of the images are known: estimating the fundamental matrix; for a pose "
            "give --image-size WxH or, if you know the cameras, --camera"
        )
    estimated = [number for number, source in enumerate(sources) if source == "estimated"]
    if not estimated:
        return None
    if photos is None:
        return f"no camera in the file of matches: the focal length is estimated; {IF_KNOWN}"
    names = " and ".join(photos[number].path.name for number in estimated)
    return f"no EXIF focal length in {names}: it is estimated from the matches; {IF_KNOWN}"


def describe_camera(given: Camera | None, found: Camera | None, source: CameraSource) -> str:
    """Describe the camera of an answer in words; see `describe_focal`."""
    shown = found or given
    if shown is None:
        return SOURCE_TEXTS["unknown"]
    return f"focal length {describe_focal(shown, given, source_text(source))}"


def source_text(source: CameraSource) -> str:
    """Return the source of a camera in words, to follow its focal length; empty if it was not given."""
    return "" if source in ("estimated", "unknown") else SOURCE_TEXTS[source]
