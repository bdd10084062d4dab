"""Estimators for two views: one call for each geometry."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import as_matches, as_reals
from caransac.api.arguments import (
    ImageSize,
    camera_or_unknown,
    check_initial_matrix,
    check_initial_pose,
    check_matches,
    check_rays,
    check_same,
)
from caransac.api.camera_profile import CameraProfile, camera_profile
from caransac.api.guessed_cameras import estimate_uncalibrated
from caransac.api.photographs import check_images
from caransac.api.refined_cameras import refined_cameras
from caransac.api.result_fields import assessed, assessed_pose, common_fields, lengths, report, report_common, rivals_of
from caransac.api.same_camera import could_be_one, estimate_focal_pose
from caransac.camera import Camera
from caransac.geometry import Array, essential_from_fundamental, essential_from_pose, split_pose
from caransac.given_cameras import CameraLike, as_camera
from caransac.options import MaxError, Options, ScoreKind
from caransac.results import FundamentalResult, HomographyResult, RayPoseResult, RelativePoseResult
from caransac.robust.patches.second_estimate import estimate_with_photographs
from caransac.robust.pipeline import estimate_model
from caransac.robust.problems import Essential, Homography, Spherical
from caransac.robust.problems.relative import choose_pose
from caransac.robust.records import Estimate, MatchInfo


def estimate_relative_pose(
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
) -> RelativePoseResult:
    """Estimate the relative pose of two cameras from matches with outliers.

    Args:
        points1: (N, 2) pixels in image 1, of any real dtype and strides.
        points2: (N, 2) pixels in image 2; row i matches row i of `points1`.
        camera1: a `Camera`, a 3x3 calibration matrix, OpenCV's pair (K, distortion coefficients), a COLMAP-style dict
            {model, params, width, height}, a pycolmap.Camera or a poselib.Camera. None for an unknown camera, together
            with `image_size1`. Lens distortion is removed from the points. Matches more than 85 degrees off the axis of
            a fisheye are never inliers. A camera with a ``focal_deviation`` is refined with the pose. The k1 of a
            camera with a ``distortion_deviation`` is estimated if the matches constrain it.
        camera2: camera of image 2, in any of these forms.
        image_size1: (width, height) of image 1 in pixels, used only if `camera1` is None.
        image_size2: (width, height) of image 2 in pixels, used only if `camera2` is None.
        same_camera: whether one camera took both images at one zoom, so that they share an uncertain focal length. With
            None, the call compares the cameras. If they are unknown, it compares the image sizes and tests both cases
            on the matches.
        scores: (N,) quality of each match, or None.
        score_kind: kind of the scores, required with them: "ratio" for the second-nearest-neighbour ratio (lower is
            better), "confidence" for a matcher's score (higher is better).
        features: (N, d) additional numbers for each match, only for weights that were trained with them.
        initial_model: pose that the first round tries in addition to its samples: an array [R | t] (3, 4), a pair
            (R, t), or a record with R and t such as an earlier result. If the cameras of the call are uncertain, the
            focal lengths of the record's cameras are tried, too.
        images: the photographs (image1, image2), or None. With them, the inliers are refined to a tenth of a pixel, and
            the pose is estimated again from the refined matches: see `refinement` of the result. A photograph is an
            array or tensor (H, W) or (H, W, 3) with uint8, uint16 or float numbers, or the path of a file. The points
            are its pixels.
        options: options of the estimation; see `Options`.

    Returns:
        The pose with ``x2 = R x1 + t``, the cameras and the inliers. If the data do not determine a pose, ``success``
        is False and ``stop_reason`` has the reason.

    Raises:
        ValueError: an argument has the wrong shape or impossible values; the message names it.
    """
    started = time.perf_counter()
    pixels1, pixels2, info, options = check_matches(points1, points2, scores, score_kind, features, options)
    cameras = _cameras((pixels1, pixels2), (camera1, camera2), (image_size1, image_size2))
    info = replace(info, initial=check_initial_pose(initial_model, cameras))
    photographs = check_images(images, pixels1, pixels2, cameras)
    estimate = partial(_estimate_pose, cameras, check_same(same_camera))
    problem, found, refinement = estimate_with_photographs(photographs, pixels1, pixels2, info, options, estimate)
    common = report((pixels1, pixels2), problem, found, options, started, refinement)
    assess = partial(assessed_pose, problem, found)
    if found.model is None:
        return RelativePoseResult.deferring(assess, R=None, t=None, E=None, **common)
    R, t = split_pose(problem.public(found.model[None])[0])
    refined1, refined2 = refined_cameras(problem, found, cameras)
    E = essential_from_pose(R, t)
    return RelativePoseResult.deferring(assess, R=R, t=t, E=E, camera1=refined1, camera2=refined2, **common)


def estimate_relative_pose_from_rays(
    rays1: ArrayLike,
    rays2: ArrayLike,
    *,
    max_error_deg: MaxError = "auto",
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    features: ArrayLike | None = None,
    initial_model: object = None,
    images: None = None,
    options: Options | None = None,
) -> RayPoseResult:
    """Estimate the relative pose of two cameras from matched rays of any direction.

    Use it for spherical, catadioptric and all other central cameras. Errors are angles between rays and epipolar
    planes.

    Args:
        rays1: (N, 3) directions in the frame of camera 1, of any length except zero.
        rays2: (N, 3) directions in the frame of camera 2; row i matches row i of `rays1`.
        max_error_deg: angle in degrees at which a match is no longer an inlier, or "auto" to derive it from the noise.
        scores: (N,) quality of each match, as in `estimate_relative_pose`.
        score_kind: kind of the scores, as in `estimate_relative_pose`.
        features: (N, d) additional numbers, as in `estimate_relative_pose`.
        initial_model: pose that the first round tries, as in `estimate_relative_pose`.
        images: must be None. Rays have no pixels, so they cannot be refined in photographs.
        options: options of the estimation; see `Options`. ``max_error_px`` does not apply to rays and must stay "auto".

    Returns:
        The pose with ``x2 = R x1 + t``. Its confidence is None, because answers from rays are not assessed.

    Raises:
        ValueError: an argument has the wrong shape or impossible values; the message names it.
    """
    started = time.perf_counter()
    if images is not None:
        raise ValueError("images cannot refine rays, which have no pixels: give pixels to estimate_relative_pose")
    units = check_rays(rays1, "rays1"), check_rays(rays2, "rays2")
    if len(units[0]) != len(units[1]):
        raise ValueError(f"rays1 and rays2 must have the same length, got {len(units[0])} and {len(units[1])}")
    stand_ins = np.zeros((len(units[0]), 2))
    _, _, info, options = check_matches(stand_ins, stand_ins, scores, score_kind, features, options)
    if options.max_error_px != "auto":
        raise ValueError("options must leave max_error_px at 'auto': give max_error_deg")
    try:
        options = replace(options, max_error_px=max_error_deg)
    except ValueError as error:
        raise ValueError(str(error).replace("max_error_px", "max_error_deg")) from error
    problem = Spherical.from_rays(*units)
    found = estimate_model(problem, replace(info, initial=check_initial_pose(initial_model)), options)
    R, t = (None, None) if found.model is None else split_pose(found.model)
    max_error, noise = lengths(problem, found)
    return RayPoseResult.deferring(
        partial(assessed, found),
        R=R,
        t=t,
        E=None if R is None or t is None else essential_from_pose(R, t),
        max_error_deg=max_error,
        noise_deg=noise,
        rays1=units[0],
        rays2=units[1],
        **report_common(problem, found, options, started),
    )


def estimate_fundamental(
    points1: ArrayLike,
    points2: ArrayLike,
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
) -> FundamentalResult:
    """Estimate the fundamental matrix of two uncalibrated images from matches with outliers.

    The search prefers matrices of ordinary cameras, unless the matches contradict them: most wrong matrices are caused
    by a plane in the scene and belong to impossible cameras. The sizes of both images make F much more accurate. The
    other arguments and errors are those of `estimate_relative_pose`, without cameras. `initial_model` is F with
    ``x2^T F x1 = 0``, (3, 3), or a record with F.

    Returns:
        F with ``x2^T F x1 = 0`` for pixels, rank two, Frobenius norm one. If the data do not determine F, ``success``
        is False and ``stop_reason`` has the reason. If the sizes are given and the matches show lens distortion,
        `camera1` and `camera2` of the result include its k1. F then applies to undistorted pixels:
        ``camera1.undistort_pixels(points1)``.
    """
    started = time.perf_counter()
    pixels1, pixels2, info, options = check_matches(points1, points2, scores, score_kind, features, options)
    if (image_size1 is None) != (image_size2 is None):
        raise ValueError("image_size1 and image_size2 must be given together or not at all")
    info = replace(info, initial=check_initial_matrix(initial_model, "F"))
    cameras = None if image_size1 is None else _cameras((pixels1, pixels2), (None, None), (image_size1, image_size2))
    photographs = check_images(images, pixels1, pixels2, cameras)
    same = check_same(same_camera)
    estimate = estimate_uncalibrated if cameras is None else partial(_estimate_pose, cameras, same, for_matrix=True)
    problem, found, refinement = estimate_with_photographs(photographs, pixels1, pixels2, info, options, estimate)
    refined = None if cameras is None or found.model is None else refined_cameras(problem, found, cameras)
    camera1, camera2 = refined or (None, None)

    def assess() -> dict[str, Any]:
        seen = found.assess().as_finite()
        rivals = rivals_of(problem, found, seen, problem.fundamentals)
        return {**common_fields(seen), "degeneracy": seen.degeneracy_kind, "rivals": rivals}

    return FundamentalResult.deferring(
        assess,
        F=None if found.model is None else problem.fundamentals(found.model[None])[0],
        camera1=camera1,
        camera2=camera2,
        **report((pixels1, pixels2), problem, found, options, started, refinement, problem.fundamentals),
    )


def estimate_homography(
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    features: ArrayLike | None = None,
    initial_model: object = None,
    images: object = None,
    options: Options | None = None,
) -> HomographyResult:
    """Estimate the homography of a plane, or of images taken from one place, from matches with outliers.

    A homography cannot model lens distortion: remove it from the points. Mirrored images give no homography, because no
    camera sees a plane that way. The other arguments and errors are those of `estimate_relative_pose`, without cameras.
    `initial_model` is H, (3, 3), or a record with H. ``max_error_px`` limits the symmetric transfer error, the root
    mean square of the distances in both images.

    Returns:
        H with ``x2 ~ H x1`` for pixels. If the data do not determine H, ``success`` is False and ``stop_reason`` has
        the reason.
    """
    started = time.perf_counter()
    pixels1, pixels2, info, options = check_matches(points1, points2, scores, score_kind, features, options)
    info = replace(info, initial=check_initial_matrix(initial_model, "H"))
    photographs = check_images(images, pixels1, pixels2)
    problem, found, refinement = estimate_with_photographs(
        photographs, pixels1, pixels2, info, options, _estimate_homography
    )
    H = None if found.model is None else problem.public(found.model[None])[0]
    common = report((pixels1, pixels2), problem, found, options, started, refinement)
    return HomographyResult.deferring(partial(assessed, found), H=H, **common)


def profile_camera(
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    image_size1: ImageSize,
    image_size2: ImageSize,
    focals_px: Array,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    features: ArrayLike | None = None,
    options: Options | None = None,
) -> CameraProfile | None:
    """Return the likelihood of the focal length and the lens of one camera from two of its images.

    Args:
        points1: (N, 2) pixels in image 1.
        points2: (N, 2) pixels in image 2.
        image_size1: (width, height) of image 1 in pixels.
        image_size2: (width, height) of image 2 in pixels: the same size, or rotated.
        focals_px: (k,) focal lengths in pixels, in ascending order.
        scores: (N,) quality of each match, as in `estimate_relative_pose`.
        score_kind: kind of the scores, as in `estimate_relative_pose`.
        features: (N, d) additional numbers, as in `estimate_relative_pose`.
        options: options of the estimation; see `Options`.

    Returns:
        The log-likelihood of each focal length, and k1; None if the data do not determine a pose.
    """
    pixels1, pixels2, info, options = check_matches(points1, points2, scores, score_kind, features, options)
    cameras = _cameras((pixels1, pixels2), (None, None), (image_size1, image_size2))
    if cameras[0].fx != cameras[1].fx:
        raise ValueError(f"image_size1 and image_size2 must belong to one camera, not {image_size1!r}, {image_size2!r}")
    problem, found = estimate_focal_pose(pixels1, pixels2, *cameras, True, info, options)
    if found.model is None:
        return None
    return camera_profile(problem, found, np.log(focals_px / cameras[0].fx), options.tuning)


def pose_from_fundamental(
    F: ArrayLike,
    points1: ArrayLike,
    points2: ArrayLike,
    camera1: CameraLike,
    camera2: CameraLike,
) -> tuple[Array, Array]:
    """Return the relative pose of two known cameras from their fundamental matrix.

    Args:
        F: (3, 3) fundamental matrix for pixels.
        points1: (N, 2) pixels in image 1. The pose puts most points in front of both cameras.
        points2: (N, 2) pixels in image 2.
        camera1: camera of image 1, as in `estimate_relative_pose`. Its lens distortion is removed from the points; F
            must belong to undistorted pixels.
        camera2: camera of image 2.

    Returns:
        R (3, 3) and t (3,) of length one with ``x2 = R x1 + t``.
    """
    pixels1, pixels2, *_ = as_matches(points1, points2, None)
    given1, given2 = as_camera(camera1, "camera1"), as_camera(camera2, "camera2")
    matrix = as_reals(F, "F")
    if matrix.shape != (3, 3):
        raise ValueError(f"F must have shape (3, 3), got {matrix.shape}")
    if not matrix.any():
        raise ValueError("F must not be zero")
    if len(pixels1) == 0:
        raise ValueError("points1 must not be empty: matches are needed to choose one of four poses")
    calibrated = Essential.from_pixels(pixels1, pixels2, given1, given2)
    E = essential_from_fundamental(matrix, given1.K, given2.K)
    return split_pose(choose_pose(E, calibrated.correspondences))


def _estimate_pose(
    cameras: tuple[Camera, Camera],
    same_camera: bool | None,
    pixels1: Array,
    pixels2: Array,
    info: MatchInfo,
    options: Options,
    *,
    for_matrix: bool = False,
) -> tuple[Any, Estimate]:
    """Estimate the pose, with the focal lengths of cameras that are not exact. Return problem and estimate."""
    first, second = cameras
    if first.focal_deviation > 0 or second.focal_deviation > 0:
        return estimate_focal_pose(pixels1, pixels2, *cameras, same_camera, info, options, for_matrix=for_matrix)
    uncertain = first.distortion_deviation > 0 or second.distortion_deviation > 0  # else sharing does not matter
    shared = uncertain and (could_be_one(*cameras) if same_camera is None else same_camera)
    problem = Essential.from_pixels(pixels1, pixels2, *cameras, shared)
    found = estimate_model(problem, info, options)
    return problem.through(found.k1), found


def _estimate_homography(
    pixels1: Array, pixels2: Array, info: MatchInfo, options: Options
) -> tuple[Homography, Estimate]:
    """Estimate the homography. Return problem and estimate."""
    problem = Homography.from_pixels(pixels1, pixels2)
    return problem, estimate_model(problem, info, options)


def _cameras(
    pixels: tuple[Array, Array],
    given: tuple[CameraLike | None, CameraLike | None],
    sizes: tuple[ImageSize | None, ImageSize | None],
) -> tuple[Camera, Camera]:
    """Return the given cameras of both images, or the cameras to assume."""
    first = camera_or_unknown(given[0], sizes[0], pixels[0], 1)
    return first, camera_or_unknown(given[1], sizes[1], pixels[1], 2)
