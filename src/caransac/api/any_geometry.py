"""`estimate`: one call that finds the most specific geometry that two images support."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac._support.arrays import as_points
from caransac._support.computed_once import computed_once
from caransac.api import geometry_answers as answers
from caransac.api.arguments import ImageSize, check_options
from caransac.api.estimators import estimate_fundamental, estimate_homography, estimate_relative_pose
from caransac.api.result_fields import MIRRORED
from caransac.camera_priors import UNKNOWN_FOCAL_DEVIATION
from caransac.geometry import homogeneous
from caransac.given_cameras import CameraLike, as_camera
from caransac.options import Options, ScoreKind
from caransac.policy import DEFAULT_POLICY, GeometryPolicy
from caransac.results import EpipolarResult, FundamentalResult, GeometryResult, HomographyResult, RelativePoseResult

# Maximum ratio of the extent of the points to their median absolute deviation. It is 1.2 if the points fill an image.
WIDEST_EXTENT = 3.0


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
    initial_model: object = None,
    images: object = None,
    options: Options | None = None,
    policy: GeometryPolicy | None = None,
) -> GeometryResult:
    """Estimate the geometry of two images: pose, pose and focal lengths, homography, rotation, or F.

    Arguments and errors are those of `estimate_relative_pose`. A pose needs the camera or the size of each image;
    without them, F is estimated. `initial_model` is an epipolar geometry: a pose, or F if no pose is estimated.
    `policy` decides which results are accepted; see `GeometryPolicy`.

    Returns:
        The geometry: `kind` names it and `reason` explains it. ``kind`` is "none" if nothing is reliable.
    """
    started = time.perf_counter()
    policy = DEFAULT_POLICY if policy is None else policy
    if not isinstance(policy, GeometryPolicy):
        raise ValueError(f"policy must be a caransac.GeometryPolicy, not {type(policy).__name__}")
    estimates = Estimates(
        points1,
        points2,
        camera1,
        camera2,
        {"image_size1": image_size1, "image_size2": image_size2, "same_camera": same_camera},
        {
            "scores": scores,
            "score_kind": score_kind,
            "features": features,
            "initial_model": initial_model,
            "images": images,
        },
        check_options(options),
        started,
    )
    answer = next(answer for rule in RULES if (answer := rule(estimates, policy)) is not None)
    return answer.result(time.perf_counter() - started)


@dataclass(frozen=True, eq=False)
class Estimates:
    """The arguments of `estimate`, and the estimates that the rules choose from. Each is computed on first access.

    Attributes:
        points1: given points of image 1.
        points2: given points of image 2.
        camera1: given camera of image 1, or None.
        camera2: given camera of image 2, or None.
        sizes: arguments `image_size1`, `image_size2` and `same_camera`.
        matches: arguments about the matches, and the initial model.
        options: given or default options.
        started: time at which ``max_seconds`` began to count.
    """

    points1: ArrayLike
    points2: ArrayLike
    camera1: CameraLike | None
    camera2: CameraLike | None
    sizes: dict[str, Any]
    matches: dict[str, Any]
    options: Options
    started: float

    @property
    @computed_once
    def epipolar(self) -> EpipolarResult:
        """The pose, or the fundamental matrix if there are no cameras and no sizes."""
        points1, points2, camera1, camera2 = self.points1, self.points2, self.camera1, self.camera2
        # A single camera is an error, which `estimate_relative_pose` explains.
        if self.both_sizes or camera1 is not None or camera2 is not None:
            return estimate_relative_pose(points1, points2, camera1, camera2, **self.sizes, **self._given())
        return estimate_fundamental(points1, points2, **self.sizes, **self._given())

    @property
    @computed_once
    def plane(self) -> HomographyResult:
        """Homography of the pixels without lens distortion, as far as they were refined with the epipolar geometry."""
        return estimate_homography(*self.flat_points, **self._given(initial_model=None, images=None))

    @property
    @computed_once
    def without_cameras(self) -> FundamentalResult | None:
        """Fundamental matrix that ignores the given cameras, or None if no cameras were given."""
        if self.camera1 is None and self.camera2 is None:
            return None
        sizes = self.sizes if self.both_sizes else {}
        return estimate_fundamental(self.points1, self.points2, **sizes, **self._given(initial_model=None))

    def _given(self, **changes: object) -> dict[str, Any]:
        """Return the arguments about the matches with changes, and options with the remaining time."""
        return {**self.matches, **changes, "options": self.options.left_since(self.started)}

    def share_on_plane(self, reach: float) -> float:
        """Return the share of the epipolar inliers that the homography explains.

        It explains a match if the error, divided by the inlier threshold, does not exceed `reach`. The error is
        measured in the image in which it is smaller, because a zoom enlarges the errors in the other image.
        """
        found, H = self.epipolar, self.plane.H
        if H is None or not found.inliers.any():
            return 0.0
        first = homogeneous(self.flat_points[0])[found.inliers]
        second = homogeneous(self.flat_points[1])[found.inliers]
        there, back = first @ H.T, second @ np.linalg.inv(H).T
        errors = [
            np.linalg.norm(moved[:, :2] / moved[:, 2:] - points[:, :2], axis=1)
            for moved, points in ((there, second), (back, first))
        ]
        return float(np.mean(np.minimum(*errors) <= reach * found.max_error_px))

    @property
    @computed_once
    def flat_points(self) -> tuple[ArrayLike, ArrayLike]:
        """Pixels (N, 2) of both images without lens distortion."""
        return _flat(self.points1, self.camera1, 1), _flat(self.epipolar.points2, self.camera2, 2)

    @property
    def may_have_zoomed(self) -> bool:
        """Whether a focal length is unknown, and `same_camera` is not True."""
        unknown = (
            camera is None or as_camera(camera, f"camera{number}").focal_deviation >= UNKNOWN_FOCAL_DEVIATION
            for number, camera in enumerate((self.camera1, self.camera2), 1)
        )
        return self.sizes["same_camera"] is not True and any(unknown)

    @property
    def both_sizes(self) -> bool:
        """Whether the sizes of both images are given."""
        return self.sizes["image_size1"] is not None and self.sizes["image_size2"] is not None

    @property
    def exact(self) -> bool:
        """Whether both cameras are given with exact focal lengths."""
        return _is_exact(self.camera1, 1) and _is_exact(self.camera2, 2)


def too_few(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer | None:  # noqa: ARG001  # same call for all rules
    """Answer "none" if there are too few matches."""
    short = estimates.epipolar.stop_reason == "too_few_points"
    return answers.nothing(estimates.epipolar, answers.TOO_FEW) if short else None


def mirrored(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer | None:
    """Answer "none" if one image is mirrored: no two cameras take such images."""
    found = estimates.epipolar
    return answers.nothing(found, MIRRORED) if found.success and policy.is_mirrored(found) else None


def still(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer | None:
    """Answer with the identity rotation if nearly all matches are at the same place: the images are the same."""
    found = estimates.epipolar
    unmoved = _unmoved(found, policy)
    distinct = len(np.unique(np.rint(found.points1[unmoved]), axis=0))
    matters = found.inliers | unmoved
    of_inliers, of_all = policy.still_shares
    if distinct < policy.min_still or unmoved.mean() < of_all or unmoved[matters].mean() < of_inliers:
        return None
    sure = 1 - 0.5 ** float(np.count_nonzero(unmoved) - policy.min_still / 2)
    if unmoved.mean() < of_inliers and estimates.plane.confidence is not None:
        # An overlay does not move either. In that case the scene is a rival, and the homography has a low confidence.
        sure = min(sure, estimates.plane.confidence)
    return answers.unmoved(found, unmoved, sure) if sure >= policy.min_confidence else None


def hardly_moved(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer | None:
    """Answer with the rotation of a pose if the rotation is reliable and the translation is not."""
    found = estimates.epipolar
    if not isinstance(found, RelativePoseResult) or found.rotation_confidence is None or found.parallax_px is None:
        return None
    if found.degeneracy == "rotation" or found.rotation_confidence < policy.min_rotation_confidence:
        return None
    undetermined = (found.direction_deviation_deg or 0.0) > policy.max_direction_deviation_deg
    little = found.parallax_px < policy.min_parallax * found.max_error_px
    if policy.accepts(found) or not (undetermined or little):
        return None
    return answers.rotation_of_pose(found, estimates.plane if policy.accepts(estimates.plane) else None)


def zoomed(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer | None:
    """Answer with the homography if it explains the inliers of a reliable pose: the camera may have zoomed instead."""
    found = estimates.epipolar
    if not policy.accepts(found) or found.degeneracy is not None or not estimates.may_have_zoomed:
        return None
    if not policy.accepts(estimates.plane) or estimates.share_on_plane(policy.planar_reach) < policy.planar_share:
        return None
    return answers.homography(estimates.plane, found, answers.MOVED_OR_ZOOMED)


def depth(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer | None:
    """Answer with the pose or the fundamental matrix if it is reliable and the scene has depth."""
    found = estimates.epipolar
    if not policy.accepts(found) or found.degeneracy is not None:
        return None
    if isinstance(found, FundamentalResult):
        return answers.fundamental(found)
    if estimates.exact:
        return answers.pose("pose", found, answers.DEPTH_AND_CAMERAS)
    return answers.pose("pose_and_focals", found, answers.DEPTH_AND_FOCALS)


def only_pose_of_plane(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer | None:
    """Answer with the pose of a plane if it is reliable, the cameras are exact, and there is no other pose."""
    found = estimates.epipolar
    if not isinstance(found, RelativePoseResult) or not policy.accepts(found) or not estimates.exact:
        return None
    if found.degeneracy != "planar" or found.alternatives:
        return None
    return answers.pose("pose", found, answers.ONLY_POSE_OF_PLANE)


def plane(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer | None:
    """Answer with the homography if it is reliable and explains the matches as well as the epipolar geometry.

    If exact cameras only rotated, the answer is their rotation.
    """
    found, homography = estimates.epipolar, estimates.plane
    flat = found.degeneracy is not None or homography.num_inliers >= policy.planar_share * found.num_inliers
    if not policy.accepts(homography) or not flat:
        return None
    if found.degeneracy == "rotation" and estimates.exact:
        return answers.rotation(homography, found)
    return answers.homography(homography, found, answers.PLANE)


def depth_without_cameras(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer | None:
    """Answer with F if it is reliable and the scene has depth: the given cameras may be wrong."""
    found = estimates.without_cameras
    if found is None or not policy.accepts(found) or found.degeneracy is not None:
        return None
    return answers.fundamental(found, estimates.epipolar.warnings)


def only_plane(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer | None:
    """Answer with the homography if nothing else is reliable."""
    if not policy.accepts(estimates.plane):
        return None
    return answers.homography(estimates.plane, estimates.epipolar, answers.ONLY_PLANE)


def nothing(estimates: Estimates, policy: GeometryPolicy) -> answers.Answer:  # noqa: ARG001  # same call for all rules
    """Answer "none" if no other rule has an answer."""
    found = estimates.epipolar
    return answers.nothing(found, answers.NOTHING + answers.of_doubts(found))


# The first rule that returns an answer decides. docs/algorithm.md describes the rules.
RULES: tuple[Callable[[Estimates, GeometryPolicy], answers.Answer | None], ...] = (
    too_few,
    mirrored,
    still,
    hardly_moved,
    zoomed,
    depth,
    only_pose_of_plane,
    plane,
    depth_without_cameras,
    only_plane,
    nothing,
)


def _is_exact(camera: CameraLike | None, number: int) -> bool:
    return camera is not None and as_camera(camera, f"camera{number}").focal_deviation == 0


def _unmoved(found: EpipolarResult, policy: GeometryPolicy) -> NDArray[np.bool_]:
    """Return the bool mask (N,) of the matches at the same place in both images."""
    moved = np.linalg.norm(found.points2 - found.points1, axis=1)
    spread = np.median(np.abs(found.points1 - np.median(found.points1, axis=0)), axis=0)
    # Without the limit, one extreme match could raise the standard deviation until all other matches seem still.
    extent = min(float(np.linalg.norm(found.points1.std(axis=0))), WIDEST_EXTENT * float(np.linalg.norm(spread)))
    return np.asarray(moved <= policy.still_extent * extent)


def _flat(points: ArrayLike, camera: CameraLike | None, number: int) -> ArrayLike:
    """Remove lens distortion from pixels, because homographies cannot model it. Pixels without a ray do not change."""
    if camera is None:
        return points
    pixels = as_points(points, f"points{number}")
    flat = as_camera(camera, f"camera{number}").undistort_pixels(pixels)
    return np.where(np.isfinite(flat), flat, pixels)
