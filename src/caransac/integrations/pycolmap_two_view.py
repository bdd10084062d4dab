"""Two-view geometries as pycolmap has them: settings in, pycolmap.TwoViewGeometry out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import as_array, as_points, as_reals, check_real, check_whole
from caransac.camera import Camera
from caransac.camera_priors import UNKNOWN_FOCAL, UNKNOWN_FOCAL_DEVIATION
from caransac.geometry import homogeneous
from caransac.given_cameras import as_camera
from caransac.integrations.foreign_settings import Meanings, drop_default, means_nothing, must_be, translate
from caransac.integrations.pycolmap_settings import as_options, as_settings, load_pycolmap
from caransac.options import Options, ScoreKind, check_score_kind
from caransac.results import EpipolarResult, RelativePoseResult
from caransac.verification.pair_records import Config, MatchIndices, PairGeometry, PairMatches, VerificationOptions
from caransac.verification.pair_verification import estimate_pair

if TYPE_CHECKING:
    import pycolmap

THEIR_TWO_VIEW_LIMIT = 10_000  # trials of pycolmap.TwoViewGeometryOptions, unless told otherwise
MIN_NUM_INLIERS = 15

SETTINGS: Meanings = {
    "force_H_use": must_be(False),
    "multiple_models": must_be(False),
    "filter_stationary_matches": must_be(False),
    "stationary_matches_max_error": means_nothing,
    # Which kind of geometry it is, is decided by what explains the inliers.
    "min_E_F_inlier_ratio": means_nothing,
    "max_H_inlier_ratio": means_nothing,
    "use_degensac": means_nothing,
    "use_sampson_refinement": means_nothing,
    "compute_relative_pose": means_nothing,  # it is always there
    # Watermarks are not looked for.
    "detect_watermark": means_nothing,
    "multiple_ignore_watermark": means_nothing,
    "watermark_min_inlier_ratio": means_nothing,
    "watermark_border_size": means_nothing,
    "watermark_detection_max_error": means_nothing,
}


@dataclass(frozen=True)
class TwoViewSettings:
    """What a pycolmap.TwoViewGeometryOptions asks for.

    Attributes:
        verification: how pairs are verified.
        min_inlier_ratio: a pair with a smaller share of inliers is degenerate.
    """

    verification: VerificationOptions
    min_inlier_ratio: float


def as_two_view_settings(options: Any) -> TwoViewSettings:
    """A pycolmap.TwoViewGeometryOptions, a dict of its fields, or a `caransac.Options`, as settings."""
    if isinstance(options, Options):
        return TwoViewSettings(VerificationOptions(estimation=options), 0.0)
    asked = as_settings(options, "options", "pycolmap.TwoViewGeometryOptions")
    ransac = asked.pop("ransac", None)
    if not isinstance(ransac, Options):
        ransac = as_settings(ransac, "ransac", "pycolmap.RANSACOptions")
        drop_default(ransac, "max_num_trials", THEIR_TWO_VIEW_LIMIT)
    fewest, share = asked.pop("min_num_inliers", MIN_NUM_INLIERS), asked.pop("min_inlier_ratio", 0.0)
    check_whole(fewest, "min_num_inliers", 0)
    check_real(share, "min_inlier_ratio", 0.0, 1.0)
    translate(Options(), asked, SETTINGS, "setting of options")
    try:
        return TwoViewSettings(
            VerificationOptions(estimation=as_options(ransac, "ransac"), min_inliers=fewest), float(share)
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
) -> PairMatches:
    """A pair of keypoints (m, 2) of two cameras and matches (n, 2) of their indices, None for row to row.

    Without `trusted`, the focal lengths of cameras whose ``has_prior_focal_length`` is unset are unknown.
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
    return PairMatches(
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


def estimate_geometry(pair: PairMatches, settings: TwoViewSettings) -> pycolmap.TwoViewGeometry:
    """The pycolmap.TwoViewGeometry of a pair."""
    module = load_pycolmap()
    geometry, result = estimate_pair(pair, settings.verification)
    found: pycolmap.TwoViewGeometry = module.TwoViewGeometry()
    if geometry.config == Config.DEGENERATE or len(geometry.matches) < settings.min_inlier_ratio * geometry.num_matches:
        found.config = int(Config.DEGENERATE)
        return found
    uncertain = pair.cameras is not None and any(camera.focal_deviation > 0 for camera in pair.cameras)
    unsure = uncertain and geometry.config == Config.CALIBRATED
    found.config = int(Config.UNCALIBRATED if unsure else geometry.config)
    found.inlier_matches = geometry.matches
    for name in ("E", "F", "H"):
        if (matrix := getattr(geometry, name)) is not None:
            setattr(found, name, matrix)
    if geometry.R is not None and geometry.t is not None:
        found.cam2_from_cam1 = module.Rigid3d(module.Rotation3d(geometry.R), geometry.t)
        found.tri_angle = _parallax(pair, geometry, result)
    if uncertain and hasattr(found, "camera1"):  # from pycolmap 4 on
        found.camera1, found.camera2 = (_as_pycolmap(camera) for camera in (result.camera1, result.camera2))
    return found


def _as_indices(matches: ArrayLike | None, count1: int, count2: int) -> MatchIndices:
    """Matches (n, 2) as indices of keypoints; row to row where there are none given."""
    if matches is None:
        if count1 != count2:
            raise ValueError(f"points1 and points2 must have the same length or matches, got {count1} and {count2}")
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
    """The camera as it is to be used: as given, uncertain where only its size is known, None without a size."""
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
    """Median angle in radians between the two rays of an inlier."""
    assert isinstance(result, RelativePoseResult) and result.camera1 is not None and result.camera2 is not None
    if geometry.t is None or not geometry.t.any():
        return 0.0
    usable = np.flatnonzero(np.isfinite(pair.points1).all(axis=1) & np.isfinite(pair.points2).all(axis=1))
    chosen = usable[result.inliers]
    rays1 = homogeneous(result.camera1.pixels_to_rays(pair.points1[chosen].astype(float))) @ np.asarray(geometry.R).T
    rays2 = homogeneous(result.camera2.pixels_to_rays(pair.points2[chosen].astype(float)))
    across = np.linalg.norm(np.cross(rays1, rays2), axis=1)
    return float(np.median(np.arctan2(across, np.sum(rays1 * rays2, axis=1))))


def _as_pycolmap(camera: Camera | None) -> Any:
    assert camera is not None
    return load_pycolmap().Camera(**replace(camera, focal_deviation=0.0, distortion_deviation=0.0).to_dict())
