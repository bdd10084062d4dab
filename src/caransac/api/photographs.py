"""Photographs that users pass, and the call that refines matches in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac._support.arrays import LARGEST_SIDE, as_array, as_matches, shorten
from caransac.api.arguments import DEFAULTS, contains
from caransac.camera import Camera
from caransac.geometry import Array
from caransac.result_parts import RefinedMatches
from caransac.robust.patches.alignment import Photographs, refine_in_photographs

KINDS = (np.uint8, np.uint16, np.float32, np.float64)  # numbers that the kernel reads


def refine_matches(image1: Any, image2: Any, points1: ArrayLike, points2: ArrayLike) -> RefinedMatches:
    """Move the second point of each match to where the patches of both photographs agree, to a tenth of a pixel.

    Use it with another estimator: pass its inliers, and estimate again from the refined matches. The estimators of
    caransac do both if they get ``images=(image1, image2)``.

    Args:
        image1: photograph (H, W) or (H, W, 3) with uint8, uint16 or float numbers: an array, a tensor, or the path of a
            file. It is not copied.
        image2: the other photograph.
        points1: (N, 2) pixels in image 1; (0, 0) is the centre of the top-left pixel.
        points2: (N, 2) pixels in image 2; row i matches row i of `points1`. Most matches should be right: each one is
            aligned with the help of its neighbours.

    Returns:
        The refined points, their precision, and which matches were refined. The others keep their point: their patches
        do not agree, are flat, or lie across the border.

    Raises:
        ValueError: an argument is wrong; the message names it.
    """
    pixels1, pixels2, _ = as_matches(points1, points2, None)
    photographs = as_photograph(image1, "image1"), as_photograph(image2, "image2")
    check_points_inside(photographs, (pixels1, pixels2), ("image1", "image2"))
    return refine_in_photographs(photographs, pixels1, pixels2, DEFAULTS.tuning.patches)


def refine_points(photographs: Photographs, points1: Array, points2: Array, deviation_px: float) -> RefinedMatches:
    """Refine the points of image 2, like `refine_matches`, with a known standard deviation. Inputs are not checked."""
    return refine_in_photographs(photographs, points1, points2, DEFAULTS.tuning.patches, deviation_px=deviation_px)


def check_images(
    images: Any, points1: Array, points2: Array, cameras: tuple[Camera, Camera] | None = None
) -> Photographs | None:
    """Return two photographs, or None for None. They must contain the points and have the sizes of the cameras."""
    if images is None:
        return None
    if not isinstance(images, tuple | list) or len(images) != 2:
        raise ValueError(f"images must be a pair (image1, image2), not {_describe(images)}")
    photographs = as_photograph(images[0], "images[0]"), as_photograph(images[1], "images[1]")
    for number, camera in enumerate(cameras or ()):
        height, width = photographs[number].shape[:2]
        if camera.width and camera.height and (camera.width, camera.height) != (width, height):
            raise ValueError(
                f"images[{number}] has {width} x {height} pixels, but camera {number + 1} has {camera.width} x "
                f"{camera.height}: points, camera and photograph must have the same pixels"
            )
    check_points_inside(photographs, (points1, points2), ("images[0]", "images[1]"))
    return photographs


def as_photograph(image: Any, name: str) -> NDArray[Any]:
    """Return a photograph as an array (H, W) or (H, W, 3), without a copy if possible. Errors name the argument."""
    if isinstance(image, str | Path):
        from caransac.io.images import read_image

        try:
            return read_image(image)
        except (OSError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from error
    pixels = as_array(image, name)
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3, 4):
        pixels = np.moveaxis(pixels, 0, 2)  # tensors have the channels first
    if pixels.ndim == 3 and pixels.shape[2] in (1, 2, 4):  # grey, and an alpha channel that is not used
        pixels = pixels[..., :3] if pixels.shape[2] == 4 else pixels[..., 0]
    if pixels.ndim != 2 and (pixels.ndim != 3 or pixels.shape[2] != 3):
        raise ValueError(f"{name} must have shape (H, W) or (H, W, 3), got {pixels.shape}")
    if 0 in pixels.shape:
        raise ValueError(f"{name} is empty: its shape is {pixels.shape}")
    if max(pixels.shape) > LARGEST_SIDE:
        raise ValueError(f"{name} must have at most {LARGEST_SIDE} pixels per side, got {pixels.shape}")
    if pixels.dtype == np.float16 or (pixels.dtype.kind in "uf" and not pixels.dtype.isnative):
        pixels = pixels.astype(np.float32 if pixels.dtype == np.float16 else pixels.dtype.newbyteorder("="))
    if pixels.dtype not in KINDS:
        raise ValueError(f"{name} must have uint8, uint16 or float numbers, not {pixels.dtype}")
    pixels = np.require(pixels, requirements=["ALIGNED"])
    if pixels.dtype.kind == "f" and not (np.isfinite(pixels.min()) and np.isfinite(pixels.max())):
        raise ValueError(f"{name} must not contain NaN or infinity")
    return pixels


def check_points_inside(photographs: Photographs, points: tuple[Array, Array], names: tuple[str, str]) -> None:
    """Raise a ValueError if the points (N, 2) of an image do not lie in its photograph."""
    for number, (photograph, pixels, name) in enumerate(zip(photographs, points, names, strict=True), 1):
        height, width = photograph.shape[:2]
        if len(pixels) and not contains((width, height), pixels):
            low, high = (
                ", ".join(f"{value:.6g}" for value in ends) for ends in (pixels.min(axis=0), pixels.max(axis=0))
            )
            raise ValueError(
                f"{name} of {width} x {height} pixels does not contain points{number}, which lie between ({low}) and "
                f"({high}): points must be in the pixels of the given image"
            )


def _describe(value: object) -> str:
    return shorten(value) if not isinstance(value, np.ndarray) else f"an array of shape {value.shape}"
