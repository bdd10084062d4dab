"""The estimator of absolute poses, from 2D-3D matches."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import ArrayLike

from caransac._support.arrays import as_points, as_rows, check_scores
from caransac.api.arguments import ImageSize, camera_or_unknown, check_initial_pose, check_options
from caransac.api.refined_cameras import refined_camera
from caransac.api.result_fields import assessed, common_fields, report_pixels, rivals_of
from caransac.geometry import split_pose
from caransac.given_cameras import CameraLike
from caransac.options import Options, ScoreKind, check_score_kind
from caransac.results import AbsolutePoseResult
from caransac.robust.assess.uncertainty import absolute_covariance
from caransac.robust.pipeline import estimate_model
from caransac.robust.problems import Absolute
from caransac.robust.records import MatchInfo


def estimate_absolute_pose(
    points2d: ArrayLike,
    points3d: ArrayLike,
    camera: CameraLike | None = None,
    *,
    image_size: ImageSize | None = None,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    initial_model: object = None,
    options: Options | None = None,
) -> AbsolutePoseResult:
    """Estimate the absolute pose of a camera from 2D-3D matches with outliers.

    Args:
        points2d: (N, 2) pixels, any real dtype and strides.
        points3d: (N, 3) points in any unit; row i matches row i of `points2d`. A keypoint may have several rows, one
            for each candidate point: together they count as one match.
        camera: as in `estimate_relative_pose`: a camera of any library; one with a ``focal_deviation`` is refined with
            the pose, and so is k1 of one with a ``distortion_deviation`` if the matches constrain it; None for an
            unknown camera, with `image_size`.
        image_size: (width, height) in pixels; needed, and used, only for an unknown camera.
        scores: (N,) one number per match that says how good it looks, or None.
        score_kind: what the scores are, needed with them: "ratio" for the second-nearest-neighbour ratio (lower is
            better), "confidence" for a matcher's score (higher is better).
        initial_model: a pose that the first round tries, too, as in `estimate_relative_pose`.
        options: see `Options`.

    Returns:
        The pose with ``x = R X + t``, the camera and the inliers; ``success`` is False, with a ``stop_reason``, when
        the data determine no pose.

    Raises:
        ValueError: an argument has the wrong shape or impossible values; the message names it.
    """
    started = time.perf_counter()
    pixels, space = as_points(points2d, "points2d"), as_rows(points3d, "points3d", 3)
    if len(pixels) != len(space):
        raise ValueError(f"points2d and points3d must have the same length, got {len(pixels)} and {len(space)}")
    lens, options = camera_or_unknown(camera, image_size, pixels), check_options(options)
    initial = check_initial_pose(initial_model, [lens], unit=False)
    info = MatchInfo(check_scores(scores, len(pixels)), check_score_kind(scores, score_kind), initial=initial)
    problem = Absolute.from_pixels(pixels, space, lens)
    found = estimate_model(problem, info, options)
    problem = problem.through(found.k1)
    given2d, given3d = pixels.copy(), space.copy()  # the caller's own arrays may change
    common = report_pixels(problem, found, options, started) | {"points2d": given2d, "points3d": given3d}

    def assess() -> dict[str, Any]:
        if found.model is None or found.msac_scores is None:
            return {**assessed(found), "camera": None, "covariance": None, "rivals": ()}
        seen = found.assess().as_finite()
        weights = problem.share((found.msac_scores > 0).astype(float))
        covariance = absolute_covariance(problem, found.model, weights, found.noise)
        camera = refined_camera(problem, found.model, covariance)
        rivals = rivals_of(problem, found, seen, problem.public)
        return {**common_fields(seen), "camera": camera, "covariance": covariance, "rivals": rivals}

    R, t = (None, None) if found.model is None else split_pose(problem.public(found.model[None])[0])
    return AbsolutePoseResult.deferring(assess, R=R, t=t, **common)
