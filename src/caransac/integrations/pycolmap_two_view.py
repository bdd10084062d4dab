"""Two-view geometries for pycolmap: from its settings to a pycolmap.TwoViewGeometry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac._support.arrays import as_array, as_points, as_reals, check_real, check_whole
from caransac.api import estimate_homography
from caransac.camera import Camera
from caransac.camera_priors import UNKNOWN_FOCAL, UNKNOWN_FOCAL_DEVIATION
from caransac.geometry import Array, homogeneous
from caransac.given_cameras import as_camera
from caransac.integrations.foreign_settings import drop_default, is_on, mean_nothing, translate
from caransac.integrations.pycolmap_settings import as_options, as_settings, load_pycolmap
from caransac.options import Options, ScoreKind, check_score_kind
from caransac.policy import DEFAULT_POLICY
from caransac.results import EpipolarResult, RelativePoseResult
from caransac.verification.pair_records import Config, MatchIndices, PairGeometry, PairMatches, VerificationOptions
from caransac.verification.pair_verification import estimate_pair

if TYPE_CHECKING:
    import pycolmap

THEIR_TWO_VIEW_LIMIT = 10_000  # default max_num_trials of pycolmap.TwoViewGeometryOptions
MIN_NUM_INLIERS = 15

# Ignored: our policy decides which kind of geometry explains the inliers, and the relative pose is always computed.
SETTINGS = mean_nothing(
    "min_E_F_inlier_ratio max_H_inlier_ratio use_degensac use_sampson_refinement compute_relative_pose"
)


@dataclass(frozen=True)
class TwoViewSettings:
    """Settings of the verification, and fields of pycolmap.TwoViewGeometryOptions with pycolmap's meaning."""

    verification: VerificationOptions
    min_inlier_ratio: float = 0.0
    force_H_use: bool = False  # noqa: N815  # pycolmap's name
    multiple_models: bool = False
    multiple_ignore_watermark: bool = True
    filter_stationary_matches: bool = False
    stationary_matches_max_error: float = 4.0
    detect_watermark: bool = True
    watermark_min_inlier_ratio: float = 0.7
    watermark_border_size: float = 0.1
    watermark_detection_max_error: float = 4.0


def as_two_view_settings(options: Any) -> TwoViewSettings:
    """Return the settings of a pycolmap.TwoViewGeometryOptions, of a dict of its fields, or of a `caransac.Options`."""
    if isinstance(options, Options):
        return TwoViewSettings(VerificationOptions(estimation=options, min_confidence=0.0))
    asked = as_settings(options, "options", "pycolmap.TwoViewGeometryOptions")
    ransac = asked.pop("ransac", None)
    if not isinstance(ransac, Options):
        ransac = as_settings(ransac, "ransac", "pycolmap.RANSACOptions")
        drop_default(ransac, "max_num_trials", THEIR_TWO_VIEW_LIMIT)
    fewest = asked.pop("min_num_inliers", MIN_NUM_INLIERS)
    check_whole(fewest, "min_num_inliers", 0)
    own = {each.name: asked.pop(each.name) for each in fields(TwoViewSettings) if each.name in asked}
    for name, value in own.items():
        if isinstance(getattr(TwoViewSettings, name), bool):
            own[name] = is_on(value, name)
        else:
            check_real(value, name, 0.0, 1e6 if name.endswith("error") else 1.0)
    translate(Options(), asked, SETTINGS, "setting of options")
    try:
        estimation = as_options(ransac, "ransac")
        return TwoViewSettings(
            VerificationOptions(estimation=estimation, min_inliers=fewest, min_confidence=0.0), **own
        )
    except ValueError as error:
        raise ValueError(f"options: {error}") from error


def as_pair(
    cameras: tuple[Any, Any],
    points: tuple[ArrayLike, ArrayLike],
    matches: ArrayLike | None,
    scores: ArrayLike | None,
    score_kind: ScoreKind | None,
    *,
    trusted: bool,
) -> tuple[PairMatches, Array, Array]:
    """Return a pair of images with its matches, the matched keypoints (2, n, 2) and the image sizes (2, 2).

    The arguments have the keypoints (m, 2) of each image. `matches` (n, 2) are indices of keypoints; None matches them
    row by row. Unless `trusted`, the focal length of a camera without ``has_prior_focal_length`` is treated as unknown.
    """
    pixels = as_points(points[0], "points1"), as_points(points[1], "points2")
    index = _as_indices(matches, len(pixels[0]), len(pixels[1]))
    lenses = tuple(_lens(camera, f"camera{number}", trusted) for number, camera in enumerate(cameras, 1))
    seen = [
        (pixel if lens is None else lens.undistort_pixels(pixel))[column]
        for pixel, lens, column in zip(pixels, lenses, index.T, strict=True)
    ]
    first, second = lenses
    numbers = None if scores is None else as_reals(scores, "scores")
    if numbers is not None and numbers.shape != (len(index),):
        raise ValueError(f"scores must have shape ({len(index)},), one per match, got {numbers.shape}")
    pair = PairMatches(
        key=0,
        image1="1",
        image2="2",
        matches=index,
        points1=seen[0],
        points2=seen[1],
        cameras=None if first is None or second is None else (_straight(first), _straight(second)),
        scores=None if numbers is None else numbers.astype(np.float32),
        score_kind=check_score_kind(scores, score_kind),
    )
    sizes = np.array([(0, 0) if lens is None else (lens.width, lens.height) for lens in lenses])
    return pair, np.stack([pixel[column] for pixel, column in zip(pixels, index.T, strict=True)]), sizes


def estimate_geometry(
    pair: PairMatches, pixels: Array, sizes: Array, settings: TwoViewSettings
) -> pycolmap.TwoViewGeometry:
    """Return the pycolmap.TwoViewGeometry of a pair.

    With `multiple_models`, further models are estimated one by one from the remaining matches.
    """
    left, several = np.arange(len(pair.matches)), []
    if settings.filter_stationary_matches:
        left = left[np.linalg.norm(pixels[1] - pixels[0], axis=1) > settings.stationary_matches_max_error]
    while True:
        found, rows = _estimate_one(pair, left, settings)
        if len(rows) and settings.detect_watermark and _is_watermark(pixels[:, rows], sizes, settings):
            found.config = int(Config.WATERMARK)
        if len(rows) == 0 or not settings.multiple_models:
            break
        if found.config != Config.WATERMARK or not settings.multiple_ignore_watermark:
            several.append((found, rows))
        left = np.setdiff1d(left, rows)
        if settings.verification.estimation.method == "ca-ransac":  # the remaining matches may fit a model by chance
            sure = replace(settings.verification, min_confidence=DEFAULT_POLICY.min_confidence)
            settings = replace(settings, verification=sure)
    if len(several) > 1:
        found.config = int(Config.MULTIPLE)
        found.inlier_matches = pair.matches[np.concatenate([rows for _, rows in several])]
    return several[0][0] if len(several) == 1 else found


def _is_watermark(inliers: Array, sizes: Array, settings: TwoViewSettings) -> bool:
    """Return True if most inliers (2, k, 2) are near the borders of both images and have the same motion."""
    border = settings.watermark_border_size * np.linalg.norm(sizes, axis=1)[:, None, None]
    inside = np.all((inliers >= border) & (inliers <= sizes[:, None] - border), axis=2).any(axis=0)
    if np.min(sizes) == 0 or np.mean(~inside) < settings.watermark_min_inlier_ratio:
        return False
    moves = inliers[1] - inliers[0]
    alike = np.linalg.norm(moves - np.median(moves, axis=0), axis=1) <= settings.watermark_detection_max_error
    return bool(alike.mean() >= settings.watermark_min_inlier_ratio)


def _estimate_one(
    pair: PairMatches, rows: NDArray[np.intp], settings: TwoViewSettings
) -> tuple[pycolmap.TwoViewGeometry, NDArray[np.intp]]:
    """Return the geometry of some matches of a pair, and its inliers among them; no inliers if it is degenerate."""
    module, fewest = load_pycolmap(), settings.min_inlier_ratio * len(rows)
    found: pycolmap.TwoViewGeometry = module.TwoViewGeometry()
    found.config = int(Config.DEGENERATE)
    rows = rows[np.isfinite(pair.points1[rows] + pair.points2[rows]).all(axis=1)]
    points1, points2 = pair.points1[rows], pair.points2[rows]
    scores = None if pair.scores is None else pair.scores[rows]
    if settings.force_H_use:
        known = {"score_kind": pair.score_kind, "options": settings.verification.estimation}
        plane = estimate_homography(points1, points2, scores=scores, **known)  # type: ignore[arg-type]  # as named
        rows = rows[plane.inliers]
        if plane.H is None or not settings.verification.policy(calibrated=True).accepts(plane) or len(rows) < fewest:
            return found, rows[:0]
        found.config, found.H, found.inlier_matches = int(Config.PLANAR_OR_PANORAMIC), plane.H, pair.matches[rows]
        return found, rows
    part = replace(
        pair, matches=_as_indices(None, len(rows), len(rows)), points1=points1, points2=points2, scores=scores
    )
    geometry, result = estimate_pair(part, settings.verification)
    if geometry.config == Config.DEGENERATE or len(geometry.matches) < fewest:
        return found, rows[:0]
    rows = rows[geometry.matches[:, 0]]
    uncertain = pair.cameras is not None and any(camera.focal_deviation > 0 for camera in pair.cameras)
    unsure = uncertain and geometry.config == Config.CALIBRATED
    found.config = int(Config.UNCALIBRATED if unsure else geometry.config)
    found.inlier_matches = pair.matches[rows]
    for name in ("E", "F", "H"):
        if (matrix := getattr(geometry, name)) is not None:
            setattr(found, name, matrix)
    if geometry.R is not None and geometry.t is not None:
        found.cam2_from_cam1 = module.Rigid3d(module.Rotation3d(geometry.R), geometry.t)
        found.tri_angle = _parallax(part, geometry, result)
    if uncertain and hasattr(found, "camera1"):  # since pycolmap 4
        found.camera1, found.camera2 = (_as_pycolmap(camera) for camera in (result.camera1, result.camera2))
    return found, rows


def _as_indices(matches: ArrayLike | None, count1: int, count2: int) -> MatchIndices:
    """Return matches (n, 2) as indices of keypoints. None matches the keypoints row by row."""
    if matches is None:
        if count1 != count2:
            raise ValueError(
                f"points1 and points2 must have the same length, unless matches are given, got {count1} and {count2}"
            )
        return np.repeat(np.arange(count1, dtype=np.uint32)[:, None], 2, axis=1)
    index = as_array(matches, "matches")
    if index.size == 0:
        return np.empty((0, 2), np.uint32)
    if index.dtype.kind not in "iu" or index.ndim != 2 or index.shape[1] != 2:
        raise ValueError(f"matches must be whole numbers of shape (n, 2), got {index.dtype} {index.shape}")
    if index.min() < 0 or np.any(index.max(axis=0) >= (count1, count2)):
        raise ValueError(f"matches must be indices of the {count1} and {count2} keypoints")
    return index.astype(np.uint32)


def _lens(camera: Any, name: str, trusted: bool) -> Camera | None:
    """Return the camera to use: the given one, an uncertain one if only its size is known, or None without a size."""
    lens = as_camera(camera, name)
    described = camera if isinstance(camera, Mapping) else {}
    if trusted or getattr(camera, "has_prior_focal_length", described.get("has_prior_focal_length", False)):
        return lens
    if min(lens.width, lens.height) < 1:
        return None
    focal, (cx, cy) = UNKNOWN_FOCAL * max(lens.width, lens.height), lens.K[:2, 2].tolist()
    return Camera("SIMPLE_PINHOLE", (focal, cx, cy), lens.width, lens.height, UNKNOWN_FOCAL_DEVIATION)


def _straight(lens: Camera) -> Camera:
    return lens.pinhole if lens.is_distorted else lens


def _parallax(pair: PairMatches, geometry: PairGeometry, result: EpipolarResult) -> float:
    """Return the median angle in radians between the two rays of an inlier."""
    assert isinstance(result, RelativePoseResult) and result.camera1 is not None and result.camera2 is not None
    if geometry.t is None or not geometry.t.any():
        return 0.0
    points1, points2 = pair.points1[result.inliers].astype(float), pair.points2[result.inliers].astype(float)
    rays1 = homogeneous(result.camera1.pixels_to_rays(points1)) @ np.asarray(geometry.R).T
    rays2 = homogeneous(result.camera2.pixels_to_rays(points2))
    across = np.linalg.norm(np.cross(rays1, rays2), axis=1)
    return float(np.median(np.arctan2(across, np.sum(rays1 * rays2, axis=1))))


def _as_pycolmap(camera: Camera | None) -> Any:
    assert camera is not None
    return load_pycolmap().Camera(**replace(camera, focal_deviation=0.0, distortion_deviation=0.0).to_dict())
