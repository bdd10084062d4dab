"""Estimator for absolute poses, from 2D-3D matches."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import ArrayLike

from caransac._support.arrays import as_points, as_rows, check_scores, shorten
from caransac.api.arguments import ImageSize, camera_or_unknown, check_initial_pose, check_options
from caransac.api.refined_cameras import refined_camera
from caransac.api.result_fields import as_covariance, assessed, common_fields, report_pixels, rivals_of
from caransac.geometry import Array, split_pose
from caransac.given_cameras import CameraLike
from caransac.options import Options, ScoreKind, check_score_kind
from caransac.results import AbsolutePoseResult
from caransac.robust.assess.uncertainty import absolute_covariance
from caransac.robust.patches.second_estimate import RefineStep, estimate_and_refine
from caransac.robust.pipeline import estimate_model
from caransac.robust.problems import Absolute
from caransac.robust.records import Estimate, MatchInfo


def estimate_absolute_pose(
    points2d: ArrayLike,
    points3d: ArrayLike,
    camera: CameraLike | None = None,
    *,
    image_size: ImageSize | None = None,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    initial_model: object = None,
    refine: RefineStep | None = None,
    options: Options | None = None,
) -> AbsolutePoseResult:
    """Estimate the absolute pose of a camera from 2D-3D matches with outliers.

    Args:
        points2d: (N, 2) pixels, of any real dtype and strides.
        points3d: (N, 3) points in any unit; row i matches row i of `points2d`. A keypoint may have several rows, one
            for each candidate point. Together they have the weight of one match or less.
        camera: camera in any form that `estimate_relative_pose` accepts, or None for an unknown camera, together with
            `image_size`. A camera with a ``focal_deviation`` is refined with the pose. The k1 of a camera with a
            ``distortion_deviation`` is estimated if the matches constrain it.
        image_size: (width, height) in pixels, used only if `camera` is None.
        scores: (N,) quality of each match, or None.
        score_kind: kind of the scores, required with them: "ratio" for the second-nearest-neighbour ratio (lower is
            better), "confidence" for a matcher's score (higher is better).
        initial_model: pose that the first round tries in addition to its samples, as in `estimate_relative_pose`.
        refine: function that refines points in photographs of the scene, or None. It gets indices (k,) of inliers and
            the standard deviation of the points in pixels, and returns `RefinedMatches` with the N pixels as `points2`.
            The pose is then estimated again from the refined points; see `refinement` of the result.
        options: options of the estimation; see `Options`.

    Returns:
        The pose with ``x = R X + t``, the camera and the inliers. If the data do not determine a pose, ``success`` is
        False and ``stop_reason`` has the reason.

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
    if refine is not None and not callable(refine):
        raise ValueError(f"refine must be a function that refines points, or None, not {shorten(refine)}")

    def estimate(pixels: Array, info: MatchInfo, options: Options) -> tuple[Absolute, Estimate]:
        problem = Absolute.from_pixels(pixels, space, lens)
        found = estimate_model(problem, info, options)
        return problem.through(found.k1), found

    problem, found, refinement = estimate_and_refine(refine, pixels, info, options, estimate)
    moved = refinement.points2 if refinement is not None and refinement.is_used else pixels.copy()
    common = report_pixels(problem, found, options, started)  # copies, because the caller's own arrays may change
    common |= {"points2d": moved, "points3d": space.copy(), "refinement": refinement}

    def assess() -> dict[str, Any]:
        if found.model is None or found.msac_scores is None:
            return {**assessed(found), "camera": None, "covariance": None, "rivals": ()}
        seen = found.assess().as_finite()
        probabilities = (found.msac_scores > 0) if found.probabilities is None else found.probabilities
        # The packaged weights for absolute poses refine with the probabilities themselves.
        covariance = absolute_covariance(problem, found, probabilities.astype(float))
        camera = refined_camera(problem, found.model, covariance)
        rivals = rivals_of(problem, found, seen, problem.public)
        return {**common_fields(seen), "camera": camera, "covariance": as_covariance(covariance), "rivals": rivals}

    R, t = (None, None) if found.model is None else split_pose(problem.public(found.model[None])[0])
    return AbsolutePoseResult.deferring(assess, R=R, t=t, **common)
