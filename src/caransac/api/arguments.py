"""Checks of the arguments of the public calls. A wrong argument raises a ValueError that names it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import as_matches, as_reals, as_rows, as_size
from caransac.camera import Camera
from caransac.geometry import Array, Floats
from caransac.given_cameras import CameraLike, as_camera
from caransac.options import Options, ScoreKind, check_score_kind
from caransac.robust.records import MatchInfo

ImageSize = ArrayLike  # (width, height)
# An image does not contain the points if more than this share of them lies outside by more than this margin, which is
# relative to the longer side. The limits tolerate lens distortion, shifted principal points and outlying keypoints.
# They are stricter if the points would fit an image with swapped width and height.
OUTSIDE_SHARE, OUTSIDE_MARGIN = 0.1, 0.05
SWAPPED_SHARE, SWAPPED_MARGIN = 0.01, 0.01
# A ratio is the distance to the nearest neighbour divided by the distance to the second nearest. With approximate
# search it rarely exceeds 1, and only by little. Scores that exceed 1 often or by more are distances.
LARGEST_RATIO, RATIO_ABOVE_ONE, SHARE_ABOVE_ONE = 1.5, 1.001, 0.05
DEFAULTS = Options()
FEATURES = (
    "features are additional numbers for each match, one row per match. Give them only with weights that were trained "
    "with them; they are not keypoints or descriptors"
)


def check_matches(
    points1: ArrayLike,
    points2: ArrayLike,
    scores: ArrayLike | None,
    score_kind: ScoreKind | None,
    features: ArrayLike | None,
    options: Options | None,
) -> tuple[Array, Array, MatchInfo, Options]:
    """Return the arguments as float64 arrays and an Options. Raise a ValueError that names a wrong argument."""
    pixels1, pixels2, numbers = as_matches(points1, points2, scores)
    kind = check_score_kind(scores, score_kind)
    if numbers is not None and kind == "ratio":
        check_ratios(numbers)
    options = check_options(options)
    if features is not None:
        features = as_reals(features, "features")
        if features.ndim != 2 or len(features) != len(pixels1):
            raise ValueError(f"features must have shape ({len(pixels1)}, d), got {features.shape}: {FEATURES}")
        if features.shape[1] > 0 and options.method == "ca-ransac" and options.weights == DEFAULTS.weights:
            raise ValueError(
                f"features must have shape (N, 0) for weights {options.weights!r}, got {features.shape}: {FEATURES}"
            )
    return pixels1, pixels2, MatchInfo(numbers, kind, features), options


def check_rays(rays: ArrayLike, name: str) -> Array:
    """Return directions (N, 3) as unit vectors."""
    given = as_rows(rays, name, 3)
    largest = np.abs(given).max(axis=1, keepdims=True)
    if not np.all(largest > 0):
        raise ValueError(f"{name} must not have directions of length zero")
    given = given / largest  # first, so that squares neither overflow nor vanish
    return np.asarray(given / np.linalg.norm(given, axis=1, keepdims=True))


def check_ratios(ratios: Array) -> None:
    """Raise a ValueError if scores (N,) cannot be ratios, for example because they are distances or similarities."""
    low, high = ratios.min(initial=0.0), ratios.max(initial=0.0)
    if low < 0 or high > LARGEST_RATIO or np.count_nonzero(ratios > RATIO_ABOVE_ONE) > SHARE_ABOVE_ONE * len(ratios):
        raise ValueError(
            f"scores must be ratios from 0 to 1 (distance to the nearest / second-nearest neighbour), but "
            f'are {low:.3g} to {high:.3g}: are they distances? With score_kind="confidence" higher is better'
        )


def check_options(options: Options | None) -> Options:
    """Return the given options, or the defaults for None."""
    if options is None:
        return DEFAULTS
    if not isinstance(options, Options):
        raise ValueError(f"options must be a caransac.Options, not {type(options).__name__}")
    return options


def camera_or_unknown(
    camera: CameraLike | None, size: ImageSize | None, pixels: Array, number: int | None = None
) -> Camera:
    """Return the given camera, or the camera to assume for an image of a given size.

    Raise a ValueError if the points (N, 2) cannot be its pixels. `number` is the number of the image in the names of
    the arguments, or None if there is only one image.
    """
    suffix = "" if number is None else str(number)
    points, name = "points2d" if number is None else f"points{number}", f"image_size{suffix}"
    if camera is not None:
        used, label = as_camera(camera, f"camera{suffix}"), f"camera{suffix}"
    elif size is None:
        raise ValueError(
            f"camera{suffix} is None: give {name}=(width, height), so that its focal length can be estimated"
        )
    else:
        used = unknown_camera(size, name)
        label = f"{name}=({used.width}, {used.height})"
    wrong = misfit(used, pixels, label, points)
    if wrong is not None:
        raise ValueError(wrong)
    return used


def misfit(camera: Camera, pixels: Array | Floats, label: str = "camera", points: str = "points") -> str | None:
    """Return the reason why points (N, 2) cannot be pixels of a camera, or None if they can.

    The limits are beyond any real image: all points within three pixels of a corner, or rays 20 focal lengths (87
    degrees) off the axis. Fewer than five points are not checked.
    """
    if len(pixels) < 5:
        return None
    (fx, fy, cx, cy), size = camera.intrinsics, (camera.width, camera.height)
    some = pixels[:: -(-len(pixels) // 64)]  # enough for the median
    (u, v), most = pixels.T, float(np.sort(np.abs(some).max(axis=1))[len(some) // 2])
    inside = 0 < cx < size[0] and 0 < cy < size[1]  # otherwise the origin is not the corner of the image
    if inside and not (
        (min(u.min(), v.min()) >= 0 and u.max() <= size[0] and v.max() <= size[1]) or contains(size, pixels)
    ):
        sized = label if "=" in label else f"{label} of {size[0]} x {size[1]} pixels"
        swapped = "; width and height are swapped" if _is_swapped(size, pixels) else ""
        return (
            f"{sized} does not contain {points}, which {_bounds(pixels)}{swapped}: give the width and height "
            "of the image that the points come from"
        )
    looks_normalised = min(fx, fy) > 50 and most < 3 and np.mean(np.abs(pixels).max(axis=1) < 3) > 0.9
    if looks_normalised and np.ptp(pixels, axis=0).max() > 1e-3:
        return (
            f"{points} look normalised: they {_bounds(pixels)}, but {label} is in pixels (focal length {fx:.6g}). "
            "Give pixels, or normalised points with a camera of focal length 1 (K = np.eye(3))"
        )
    if most > 20 * max(fx, fy) and np.median(np.abs(pixels - (cx, cy)).max(axis=1)) > 20 * max(fx, fy):
        return (
            f"{label} has a focal length of {fx:.6g}, but {points} {_bounds(pixels)}: it must be in pixels, too; if "
            "the camera is unknown, give None and the size of the image"
        )
    return None


def _bounds(pixels: Array | Floats) -> str:
    low, high = (f"({x:.6g}, {y:.6g})" for x, y in (pixels.min(axis=0), pixels.max(axis=0)))
    return f"lie between {low} and {high}"


def contains(size: tuple[int, int], pixels: Array | Floats) -> bool:
    """Return True if pixels (N, 2) lie inside an image of this width and height, with some tolerance."""
    return not _is_swapped(size, pixels) and _outside(size, pixels, OUTSIDE_MARGIN) <= OUTSIDE_SHARE


def _is_swapped(size: tuple[int, int], pixels: Array | Floats) -> bool:
    """Return True if pixels (N, 2) fit an image with swapped width and height, and do not fit this one."""
    given, swapped = (_outside(each, pixels, SWAPPED_MARGIN) for each in (size, size[::-1]))
    return swapped <= SWAPPED_SHARE < given


def _outside(size: tuple[int, ...], pixels: Array | Floats, margin: float) -> float:
    """Return the share of pixels (N, 2) outside of an image by more than a margin, relative to its longer side."""
    margin_px = margin * max(size) + 1
    outside = (pixels < -margin_px).any(axis=1) | (pixels > np.array(size) + margin_px).any(axis=1)
    return np.count_nonzero(outside) / max(len(pixels), 1)


def unknown_camera(size: ImageSize, name: str) -> Camera:
    """Return the camera to assume for an image of a given size. Errors name the argument."""
    return Camera.of_unknown_focal(*as_size(size, name))


def check_initial_pose(given: Any, cameras: Sequence[Camera] = (), *, unit: bool = True) -> Array | None:
    """Return an initial pose [R | t], (3, 4), or None. Scale t to length one if `unit`.

    `cameras` are the cameras of the call. With them, two columns of intrinsics follow, (3, 6): the focal lengths in the
    given record relative to these cameras.
    """
    if given is None or (hasattr(given, "R") and (given.R is None or given.t is None)):
        return None
    if hasattr(given, "R"):
        R, t = given.R, given.t
    elif isinstance(given, tuple | list) and len(given) == 2:
        R, t = given
    else:
        R, t = np.split(as_reals(given, "initial_model"), [3], axis=-1)
    R, t = as_reals(R, "initial_model"), as_reals(t, "initial_model").ravel()
    if R.shape != (3, 3) or t.shape != (3,):
        raise ValueError("initial_model must be a pose: [R | t] of shape (3, 4), (R, t), or a record with R and t")
    U, _, Vt = np.linalg.svd(R)
    if np.linalg.det(R) < 0 or np.abs(U @ Vt - R).max() > 1e-3:  # tolerates the few digits of a text file
        raise ValueError("initial_model must have a rotation in its first three columns")
    if unit and not t.any():
        raise ValueError("initial_model must have a translation: a rotation has no epipolar geometry")
    intrinsics = np.zeros((3, 2 if cameras else 0))
    for number, camera in enumerate(cameras):
        found = getattr(given, f"camera{number + 1}" if len(cameras) > 1 else "camera", None)
        if found is not None:
            intrinsics[0, number] = np.log(as_camera(found, "initial_model").mean_focal / camera.mean_focal)
    return np.column_stack([U @ Vt, t / np.linalg.norm(t) if unit else t, intrinsics])


def check_initial_matrix(given: Any, name: Literal["F", "H"]) -> Array | None:
    """Return an initial matrix (3, 3), also from a record with a field of this name, or None."""
    given = getattr(given, name, given)
    if given is None:
        return None
    matrix = as_reals(given, "initial_model")
    if matrix.shape != (3, 3):
        raise ValueError(f"initial_model must be {name} of shape (3, 3), or a record with {name}, got {matrix.shape}")
    U, values, Vt = np.linalg.svd(matrix)
    if values[1 if name == "F" else 2] <= 1e-12 * values[0]:
        raise ValueError(f"initial_model must be {name} of rank {2 if name == 'F' else 3}")
    return np.asarray(matrix if name == "H" else U[:, :2] * values[:2] @ Vt[:2])


def check_same(same_camera: bool | None) -> bool | None:
    """Return the argument `same_camera` as a bool, or None."""
    if same_camera is not None and not isinstance(same_camera, bool | np.bool_):
        raise ValueError(f"same_camera must be True, False or None, not {same_camera!r}")
    return None if same_camera is None else bool(same_camera)
