"""One call for those who do not want to choose: the most specific geometry that two images support."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac._support.arrays import as_points
from caransac.api.arguments import ImageSize
from caransac.api.estimators import estimate_fundamental, estimate_homography, estimate_relative_pose
from caransac.geometry import Array, fundamental_from_essential, rotation_from_homography
from caransac.geometry.mirroring import mirrored_share
from caransac.given_cameras import CameraLike, as_camera
from caransac.options import Options, ScoreKind
from caransac.policy import DEFAULT_POLICY, GeometryPolicy
from caransac.results import (
    FundamentalResult,
    GeometryKind,
    GeometryResult,
    HomographyResult,
    RelativePose,
    RelativePoseResult,
    Result,
    TwoViewResult,
)

POSE_FIELDS = ("alternatives", "rotation_confidence", "covariance", "covariance_of")

REASONS: dict[GeometryKind, str] = {
    "pose": "the scene has depth and the cameras are known",
    "pose_and_focals": "the scene has depth, which determines the focal lengths with the pose",
    "homography": "one plane explains the matches, and those off the plane do not determine the pose",
    "rotation": "the camera turned without moving: there is no translation and no depth",
    "fundamental": "the scene has depth, but the cameras are not known well enough for a pose",
    "none": "no geometry explains the matches with confidence",
}
# Extent of the points at most, in their median absolute deviations: those all over an image have 1.2.
WIDEST_EXTENT = 3.0
HARDLY_MOVED = "the camera turned and hardly moved: the rotation is reliable, the direction of the translation is not"
STILL_REASON = "no motion: the matches are in the same place in both images"
MIRRORED_REASON = "the matches are mirrored, which no camera sees: is one image flipped?"


def estimate(
    points1: ArrayLike,
    points2: ArrayLike,
    camera1: CameraLike | None = None,
    camera2: CameraLike | None = None,
    *,
    image_size1: ImageSize | None = None,
    image_size2: ImageSize | None = None,
    same_camera: bool | None = None,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    features: ArrayLike | None = None,
    options: Options | None = None,
    policy: GeometryPolicy | None = None,
) -> GeometryResult:
    """Estimate whatever geometry two images have: pose, pose and focal lengths, homography, rotation, or F.

    Arguments and errors are those of `estimate_relative_pose`; without a camera and an image size of both images, no
    pose is sought. `policy` says what is accepted: see `GeometryPolicy`.

    Returns:
        What was found: `kind` names it and `reason` says why; ``kind="none"`` if nothing is reliable.
    """
    started = time.perf_counter()
    policy = DEFAULT_POLICY if policy is None else policy
    if not isinstance(policy, GeometryPolicy):
        raise ValueError(f"policy must be a caransac.GeometryPolicy, not {type(policy).__name__}")
    matches: dict[str, Any] = {"scores": scores, "score_kind": score_kind, "features": features, "options": options}
    sizes: dict[str, Any] = {"image_size1": image_size1, "image_size2": image_size2, "same_camera": same_camera}
    both_sizes = image_size1 is not None and image_size2 is not None
    found: RelativePoseResult | FundamentalResult
    if both_sizes or camera1 is not None or camera2 is not None:  # one alone is an error, which the call explains
        found = estimate_relative_pose(points1, points2, camera1, camera2, **sizes, **matches)
    else:
        found = estimate_fundamental(points1, points2, **sizes, **matches)
    exact = _is_exact(camera1, 1) and _is_exact(camera2, 2)

    if found.stop_reason == "too_few_points":
        return _result("none", found, found, started, "there are too few matches")
    if found.success and _is_mirrored(points1, points2, found, policy):
        return _result("none", found, found, started, MIRRORED_REASON)
    still = _still(found, policy)
    if still is not None:
        return _no_motion(found, still, policy, started)
    if _hardly_moved(found, policy):
        return _result("rotation", found, found, started)
    if policy.accepts(found) and found.degeneracy is None:
        kind: GeometryKind = "fundamental"
        if isinstance(found, RelativePoseResult):
            kind = "pose" if exact else "pose_and_focals"
        return _result(kind, found, found, started)
    if policy.accepts(found) and found.degeneracy == "planar" and exact and not _alternatives(found):
        only = "a plane explains the matches, but only one pose of it"
        return _result("pose", found, found, started, only + _of_rivals(found))
    plane = estimate_homography(_flat(points1, camera1, 1), _flat(points2, camera2, 2), **matches)
    flat = found.degeneracy is not None or plane.num_inliers >= policy.planar_share * found.num_inliers
    if policy.accepts(plane) and flat:
        turned = found.degeneracy == "rotation" and exact
        return _result("rotation" if turned else "homography", plane, found, started)
    if isinstance(found, RelativePoseResult):
        loose = estimate_fundamental(points1, points2, **(sizes if both_sizes else {}), **matches)
        if policy.accepts(loose) and loose.degeneracy is None:
            return _result("fundamental", loose, loose, started)
    return _result("none", found, found, started)


def _is_exact(camera: CameraLike | None, number: int) -> bool:
    return camera is not None and as_camera(camera, f"camera{number}").focal_deviation == 0


def _hardly_moved(found: RelativePoseResult | FundamentalResult, policy: GeometryPolicy) -> bool:
    """Whether the rotation of a pose can be relied on, but not its translation, which hardly shows."""
    if not isinstance(found, RelativePoseResult) or found.rotation_confidence is None or found.parallax_px is None:
        return False
    deviation_deg = found.direction_deviation_deg or 0.0
    undetermined = deviation_deg > policy.max_direction_deviation_deg
    little = found.parallax_px < policy.min_parallax * found.max_error_px and not policy.accepts(found)
    return (
        found.degeneracy != "rotation"
        and found.rotation_confidence >= policy.min_rotation_confidence
        and (undetermined or little)
    )


def _still(found: TwoViewResult, policy: GeometryPolicy) -> NDArray[np.bool_] | None:
    """Which matches (N,) have not moved, if these are nearly all of them: the images are the same."""
    moved = np.linalg.norm(found.points2 - found.points1, axis=1)
    spread = np.median(np.abs(found.points1 - np.median(found.points1, axis=0)), axis=0)
    # One absurd match would stretch the standard deviation until all others seem to be still.
    extent = min(float(np.linalg.norm(found.points1.std(axis=0))), WIDEST_EXTENT * float(np.linalg.norm(spread)))
    still = moved <= policy.still_extent * extent
    distinct = len(np.unique(np.rint(found.points1[still]), axis=0))
    matters = found.inliers | still
    of_inliers, of_all = policy.still_shares
    same = distinct >= policy.min_still and still.mean() >= of_all and still[matters].mean() >= of_inliers
    return still if same else None


def _no_motion(
    found: RelativePoseResult | FundamentalResult, still: NDArray[np.bool_], policy: GeometryPolicy, started: float
) -> GeometryResult:
    """The answer for an image that is matched to itself, which no wrong matches would be by chance."""
    by_chance = 0.5 ** (np.count_nonzero(still) - policy.min_still / 2)
    common = {field.name: getattr(found, field.name) for field in fields(TwoViewResult)}
    common |= {
        "success": True,
        "stop_reason": found.stop_reason if found.success else "early_stop",
        "inliers": still,
        "num_inliers": int(still.sum()),
        "consensus": float(still.sum()),
        "confidence": None if found.confidence is None else 1 - by_chance,
        "elapsed_s": time.perf_counter() - started,
    }
    return GeometryResult(
        kind="rotation",
        reason=STILL_REASON,
        R=np.eye(3),
        H=np.eye(3) / 3**0.5,
        camera1=found.camera1,
        camera2=found.camera2,
        degeneracy="rotation",
        rotation_confidence=common["confidence"],
        epipolar=found,
        **common,
    )


def _is_mirrored(points1: ArrayLike, points2: ArrayLike, found: Result, policy: GeometryPolicy) -> bool:
    """Whether one image is mirrored: it has an epipolar geometry then, but its pose is none of a camera."""
    first, second = as_points(points1, "points1"), as_points(points2, "points2")
    share = mirrored_share(first[found.inliers], second[found.inliers])
    return share is not None and share >= policy.mirrored_share


def _alternatives(found: RelativePoseResult | FundamentalResult) -> tuple[RelativePose, ...]:
    return found.alternatives if isinstance(found, RelativePoseResult) else ()


def _flat(points: ArrayLike, camera: CameraLike | None, number: int) -> ArrayLike:
    """Pixels without lens distortion, which homographies know nothing of; where a lens has no ray, as they are."""
    if camera is None:
        return points
    pixels = as_points(points, f"points{number}")
    flat = as_camera(camera, f"camera{number}").undistort_pixels(pixels)
    return np.where(np.isfinite(flat), flat, pixels)


def _result(
    kind: GeometryKind,
    answer: RelativePoseResult | FundamentalResult | HomographyResult,
    epipolar: RelativePoseResult | FundamentalResult,
    started: float,
    reason: str | None = None,
) -> GeometryResult:
    """An answer, and what else the estimate of the epipolar geometry found, under its kind."""
    common = {field.name: getattr(answer, field.name) for field in fields(TwoViewResult)}
    common["elapsed_s"] = time.perf_counter() - started
    cameras = {"camera1": epipolar.camera1, "camera2": epipolar.camera2}
    known: dict[str, Any] = {"degeneracy": epipolar.degeneracy}
    if kind == "none":
        common |= {"success": False, "inliers": np.zeros_like(answer.inliers), "num_inliers": 0, "consensus": 0.0}
        common["stop_reason"] = "unsure" if answer.success else answer.stop_reason
    elif isinstance(answer, FundamentalResult):
        known |= {"F": answer.F} | cameras
    elif isinstance(answer, HomographyResult):
        known |= {"H": answer.H} | (_turned(answer, epipolar) | cameras if kind == "rotation" else _poses(epipolar))
    elif kind == "rotation":
        reason = HARDLY_MOVED
        known |= {"R": answer.R, "H": _turning(answer), "rotation_confidence": answer.rotation_confidence} | cameras
        common["confidence"] = answer.rotation_confidence  # that of what is told
    else:
        known |= {"R": answer.R, "t": answer.t, "E": answer.E, "F": _fundamental(answer)} | cameras
        known |= {name: getattr(answer, name) for name in POSE_FIELDS}
    known["rivals"] = epipolar.rivals
    said = reason or REASONS[kind] + _of_rivals(epipolar)
    return GeometryResult(kind=kind, reason=said, epipolar=epipolar, **known, **common)


def _of_rivals(epipolar: RelativePoseResult | FundamentalResult) -> str:
    """What to say of a strong rival: which of two motions is the camera's, the matches do not tell."""
    if not epipolar.rivals:
        return ""
    return f"; another motion explains {100 * epipolar.rivals[0].share:.0f} % of the matches, which this does not"


def _turned(plane: HomographyResult, epipolar: RelativePoseResult | FundamentalResult) -> dict[str, Any]:
    """The rotation of a camera that only turned, as sure as its homography."""
    assert plane.H is not None and epipolar.camera1 is not None and epipolar.camera2 is not None
    R = rotation_from_homography(plane.H, epipolar.camera1.K, epipolar.camera2.K)
    return {"R": R, "rotation_confidence": plane.confidence}


def _turning(pose: RelativePoseResult) -> Array:
    """The homography of pixels of a camera that turned and hardly moved."""
    assert pose.R is not None and pose.camera1 is not None and pose.camera2 is not None
    H = pose.camera2.K @ pose.R @ np.linalg.inv(pose.camera1.K)
    return np.asarray(H / np.linalg.norm(H))


def _poses(epipolar: RelativePoseResult | FundamentalResult) -> dict[str, Any]:
    """All poses that explain a plane, where the cameras are known well enough for any."""
    if not isinstance(epipolar, RelativePoseResult) or epipolar.R is None or epipolar.t is None:
        return {}
    if not epipolar.alternatives:
        return {}
    return {"alternatives": (RelativePose(epipolar.R, epipolar.t), *epipolar.alternatives)}


def _fundamental(pose: RelativePoseResult) -> Array:
    assert pose.E is not None and pose.camera1 is not None and pose.camera2 is not None
    F = fundamental_from_essential(pose.E, pose.camera1.K, pose.camera2.K)
    return np.asarray(F / np.linalg.norm(F))
