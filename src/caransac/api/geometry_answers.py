"""Answers of `caransac.estimate`: one function for each kind, which chooses the fields of its result."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac.camera_words import is_hardly_seen
from caransac.geometry import fundamental_from_essential, rotation_from_homography
from caransac.results import (
    EpipolarResult,
    FundamentalResult,
    GeometryKind,
    GeometryResult,
    HomographyResult,
    RelativePose,
    RelativePoseResult,
    TwoViewResult,
)

POSE_FIELDS = (
    "R",
    "t",
    "E",
    "camera1",
    "camera2",
    "alternatives",
    "rotation_confidence",
    "covariance",
    "covariance_of",
)

DEPTH_AND_CAMERAS = "the scene has depth and the cameras are known"
DEPTH_AND_FOCALS = "the scene has depth, and the focal lengths are found with the pose"
DEPTH_BUT_ASSUMED = "the scene has depth, and the focal lengths are assumed: the matches hardly constrain them"
DEPTH_ONLY = "the scene has depth, but the cameras are not known well enough for a pose"
MOSTLY_PLANE = "; most inliers are on one plane, and another pose explains the matches as well"  # added to the above
PLANE = "one plane explains the matches, and those off the plane do not determine the pose"
MOVED_OR_ZOOMED = "one homography explains the matches: the camera moved towards a plane, or it zoomed"
ONLY_PLANE = "one plane explains some of the matches, and nothing reliable explains more"
ONLY_POSE_OF_PLANE = "one plane explains the matches, but only one of its poses does"
TURNED = "the camera turned without moving: there is no translation and no depth"
HARDLY_MOVED = "the camera turned and hardly moved: the rotation is reliable, the direction of the translation is not"
STILL = "no motion: the matches are in the same place in both images"
NOTHING = "no geometry explains the matches with confidence"
TOO_FEW = "there are too few matches"


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of a rule of `any_geometry`.

    Attributes:
        kind: kind of the geometry; see `GeometryResult`.
        reason: sentence that explains the kind.
        matches: estimate that determines the inliers.
        epipolar: the estimate of the epipolar geometry.
        known: further fields of the result. They override the fields of `matches`.
    """

    kind: GeometryKind
    reason: str
    matches: TwoViewResult
    epipolar: EpipolarResult
    known: dict[str, Any] = field(default_factory=dict)

    def result(self, elapsed_s: float) -> GeometryResult:
        """Return the answer as a public result."""
        shared = {each.name: getattr(self.matches, each.name) for each in fields(TwoViewResult)}
        told = {name: getattr(self.epipolar, name) for name in ("degeneracy", "rivals", "warnings", "refinement")}
        values = shared | told | {"elapsed_s": elapsed_s} | self.known
        return GeometryResult(kind=self.kind, reason=self.reason, epipolar=self.epipolar, **values)


def nothing(epipolar: EpipolarResult, reason: str) -> Answer:
    """Answer without a geometry: no match is an inlier."""
    known: dict[str, Any] = {
        "success": False,
        "stop_reason": "unsure" if epipolar.success else epipolar.stop_reason,
        "inliers": np.zeros_like(epipolar.inliers),
        "num_inliers": 0,
        "consensus": 0.0,
        "confidence": None if epipolar.confidence is None else 0.0,
    }
    return Answer("none", reason, epipolar, epipolar, known)


def unmoved(epipolar: EpipolarResult, still: NDArray[np.bool_], sure: float) -> Answer:
    """Answer with the identity rotation and the still matches (N,). `sure` is its confidence."""
    confidence = None if epipolar.confidence is None else sure
    known: dict[str, Any] = {
        "success": True,
        "stop_reason": epipolar.stop_reason if epipolar.success else "early_stop",
        "inliers": still,
        "num_inliers": int(still.sum()),
        "consensus": float(still.sum()),
        "confidence": confidence,
        "rotation_confidence": confidence,
        "R": np.eye(3),
        "H": np.eye(3) / 3**0.5,
        "degeneracy": "rotation",
        "rivals": (),
    }
    return Answer("rotation", STILL, epipolar, epipolar, known | _cameras(epipolar))


def rotation_of_pose(pose: RelativePoseResult, plane: HomographyResult | None) -> Answer:
    """Answer with the rotation of a pose whose translation is not reliable.

    The homography of pixels is the estimated one if it is reliable. Otherwise it is the homography of the rotation,
    which is right for points far away.
    """
    assert pose.R is not None and pose.camera1 is not None and pose.camera2 is not None
    H = pose.camera2.K @ pose.R @ np.linalg.inv(pose.camera1.K) if plane is None or plane.H is None else plane.H
    sure = {"rotation_confidence": pose.rotation_confidence, "confidence": pose.rotation_confidence}
    return Answer(
        "rotation", HARDLY_MOVED, pose, pose, {"R": pose.R, "H": H / np.linalg.norm(H)} | sure | _cameras(pose)
    )


def pose(kind: GeometryKind, found: RelativePoseResult, reason: str) -> Answer:
    """Answer with the estimated pose."""
    assert found.E is not None and found.camera1 is not None and found.camera2 is not None
    if reason == DEPTH_AND_FOCALS and (is_hardly_seen(found.camera1) or is_hardly_seen(found.camera2)):
        reason = DEPTH_BUT_ASSUMED
    if found.alternatives:
        reason += MOSTLY_PLANE
    F = fundamental_from_essential(found.E, found.camera1.K, found.camera2.K)
    known = {name: getattr(found, name) for name in POSE_FIELDS} | {"F": F / np.linalg.norm(F)}
    return Answer(kind, reason + of_doubts(found), found, found, known)


def fundamental(found: FundamentalResult, warnings: tuple[str, ...] = ()) -> Answer:
    """Answer with the estimated fundamental matrix, and add warnings about cameras that it ignores."""
    warnings = (*warnings, *found.warnings)
    known = {"F": found.F, "warnings": warnings} | _cameras(found)
    return Answer("fundamental", DEPTH_ONLY + of_doubts(found, warnings), found, found, known)


def homography(plane: HomographyResult, epipolar: EpipolarResult, reason: str) -> Answer:
    """Answer with a homography and, if the cameras are known well enough, with all poses of its plane."""
    known: dict[str, Any] = {"H": plane.H}
    if isinstance(epipolar, RelativePoseResult) and epipolar.alternatives:
        assert epipolar.R is not None and epipolar.t is not None
        known["alternatives"] = (RelativePose(epipolar.R, epipolar.t), *epipolar.alternatives)
    return Answer("homography", reason + of_doubts(epipolar), plane, epipolar, known)


def rotation(plane: HomographyResult, epipolar: EpipolarResult) -> Answer:
    """Answer with the rotation of cameras that only rotated. It has the confidence of the homography."""
    assert plane.H is not None and epipolar.camera1 is not None and epipolar.camera2 is not None
    R = rotation_from_homography(plane.H, epipolar.camera1.K, epipolar.camera2.K)
    known = {"H": plane.H, "R": R, "rotation_confidence": plane.confidence}
    return Answer("rotation", TURNED + of_doubts(epipolar), plane, epipolar, known | _cameras(epipolar))


def of_doubts(epipolar: EpipolarResult, warnings: tuple[str, ...] | None = None) -> str:
    """Return the end of a reason: the warnings, and a strong rival, which may be the motion of the camera."""
    doubts = [*(epipolar.warnings if warnings is None else warnings)]
    if epipolar.rivals:
        share = 100 * epipolar.rivals[0].share
        doubts.append(f"another motion explains {share:.0f} % of the matches, which are outliers here")
    return "".join(f"; {doubt}" for doubt in doubts)


def _cameras(epipolar: EpipolarResult) -> dict[str, Any]:
    return {"camera1": epipolar.camera1, "camera2": epipolar.camera2}
