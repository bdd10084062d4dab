"""Test whether the matches support the given cameras.

With wrong cameras, an estimator still finds the pose that explains most matches, and the noise seems larger. The answer
is therefore refined with free focal lengths, and as a fundamental matrix without cameras, to measure how far it moves.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array, Floats, cross_matrix, essential_from_pose, split_pose, symmetric_inverse
from caransac.kernels import (
    ABSOLUTE,
    ABSOLUTE_FOCAL_POSES,
    FOCAL_POSES,
    FUNDAMENTALS,
    RELATIVE,
    IntrinsicsPrior,
    RefineOptions,
    most_likely,
    where,
)
from caransac.robust.assess.uncertainty import information_of
from caransac.robust.problems import AbsoluteFocal, FocalPose, Problem, with_intrinsics
from caransac.robust.problems.base import log_scales_of
from caransac.robust.records import Assessment, CameraEvidence, Estimate
from caransac.tuning import CAMERAS, ERRORS, Tuning


def check_cameras(problem: Problem, found: Estimate, tuning: Tuning) -> CameraEvidence | None:
    """Refine the answer with free cameras to test the given ones. Return None unless they were given as exact."""
    assert found.model is not None and found.probabilities is not None
    if not problem.traits.exact_cameras:
        return None
    chosen = most_likely(found.probabilities, 512)  # half of `compared_on`; more matches do not change the confidence
    likely, weights = problem.subset(chosen), found.probabilities[chosen].astype(float)
    max_error = tuning.max_error * found.noise  # the threshold that separates models best
    shift, deviation, freed = _free_focal(likely, weights, found.model, max_error, found.noise)
    if problem.traits.degeneracy != "one view":
        F = essential_from_pose(*split_pose(found.model)) / 2**0.5  # of norm one
        inliers = likely.inliers(found.model, max_error)
        F, max_error = nearest_fundamental(F, likely, weights, inliers, max_error, tuning)
        freed = FUNDAMENTALS.msac_scores(F[None], likely.correspondences, max_error)
    held = float(likely.msac_scores(found.model[None], max_error).sum())
    gain = log(min(max(float(freed.sum()) / max(held, 1e-6), 1.0), CAMERAS.largest_gain))
    unusual = max(abs(log(problem.extent / CAMERAS.usual_extent)) - log(CAMERAS.usual_factor), 0.0)
    return CameraEvidence(gain, shift, deviation, unusual)


def with_unknown_cameras(problem: Problem, found: Estimate, seen: Assessment) -> Assessment:
    """Add the effect of cameras whose focal lengths are unknown to the covariance of a pose.

    Errors of an estimated camera are larger than noise predicts. The pose follows them to fit the matches.
    """
    covariance = seen.covariance
    if covariance is None or not isinstance(problem, FocalPose) or not any(each.unknown for each in problem.priors):
        return seen
    assert found.model is not None and found.msac_scores is not None
    pose, cameras = slice(0, RELATIVE.pose), RELATIVE.intrinsics
    weights, noise = (found.msac_scores > 0).astype(float), ERRORS.stated_cameras**0.5 * found.noise
    information = information_of(problem.with_tails(), found.model, weights, noise)
    of_cameras = symmetric_inverse(information)[cameras, cameras]
    follows = np.zeros((len(covariance), len(of_cameras)))
    follows[pose] = -symmetric_inverse(information[pose, pose]) @ information[pose, cameras]
    follows[cameras] = np.eye(len(of_cameras))
    return replace(seen, covariance=covariance + follows @ of_cameras @ follows.T)


def position_deviation(problem: AbsoluteFocal, found: Estimate) -> float:
    """Return the standard deviation of the camera's position, divided by the median depth, along its worst axis.

    It includes the prior of the camera. If the points are at nearly the same depth or in one place of the image, they
    do not determine the focal length, and its error changes the distance to the points in proportion.
    """
    assert found.model is not None and found.msac_scores is not None
    R, t = split_pose(found.model)
    weights = problem.share((found.msac_scores > 0).astype(float))
    information = information_of(problem, found.model, weights, ERRORS.cameras**0.5 * found.noise)
    covariance = symmetric_inverse(information)[: ABSOLUTE.pose, : ABSOLUTE.pose]
    moves = np.concatenate([cross_matrix(t), np.eye(3)], axis=1)  # of the position, in the frame of the camera
    variance = float(np.linalg.eigvalsh(moves @ covariance @ moves.T)[-1])
    depth = float(np.median(problem.points2[found.msac_scores > 0] @ R[2] + t[2]))
    return sqrt(max(variance, 0.0)) / max(abs(depth), 1e-9)


def nearest_fundamental(
    F: Array, likely: Problem, weights: Array, inliers: NDArray[np.bool_], max_error: float, tuning: Tuning
) -> tuple[Array, float]:
    """Refine a fundamental matrix F (3, 3) without cameras. Return it with its threshold.

    Args:
        F: matrix of norm one, in the coordinates of the points.
        likely: points to refine it on.
        weights: (n,) weights of the points.
        inliers: (n,) points that support F.
        max_error: threshold of F. Errors of the cameras enlarge it.
        tuning: see `Tuning`.
    """
    points, models = likely.correspondences, F[None]
    for scale in CAMERAS.loss_scales:
        models = FUNDAMENTALS.refine(models, points, _steps(scale * max_error, IntrinsicsPrior()), weights)[0]
    supporting = points.subset(where(inliers))
    noise = sqrt(_median(FUNDAMENTALS.residuals_sq(models, supporting)[0])) if len(supporting) else inf
    return models[0], min(max(tuning.max_error * noise, CAMERAS.least_error * max_error), max_error)


def _median(values: Array) -> float:
    """Return the median of numbers (n,). np.median is several times slower for a few numbers."""
    low, high = (len(values) - 1) // 2, len(values) // 2
    ranked = np.partition(values, (low, high))
    return 0.5 * float(ranked[low] + ranked[high])


def _steps(loss_scale: float, intrinsics: IntrinsicsPrior) -> RefineOptions:
    """Return the options of a refinement with free cameras."""
    return RefineOptions(
        loss_scale=loss_scale,
        max_steps=CAMERAS.fit_steps,
        min_decrease=CAMERAS.fit_min_decrease,
        single_precision=True,
        intrinsics=intrinsics,
    )


def _free_focal(
    likely: Problem, weights: Array, model: Array, max_error: float, noise: float
) -> tuple[float, float, Floats]:
    """Refine a pose with a free focal length, which is the same for both cameras if there are two.

    Return the change of the logarithm of the focal length, its deviation, and the MSAC scores (n,) of the new model.
    """
    points, unit_sq, wide = likely.correspondences, ERRORS.cameras * noise**2, CAMERAS.free_deviation
    free, weights = unit_sq / wide**2, likely.share(weights)
    if likely.traits.degeneracy == "one view":
        kernels, freedom, scales = ABSOLUTE_FOCAL_POSES, ABSOLUTE, CAMERAS.loss_scales
        prior = IntrinsicsPrior(log_scale=(free, 0.0), centre=(inf, inf), k1=(inf, 0.0))
    else:
        kernels, freedom, scales = FOCAL_POSES, RELATIVE, CAMERAS.loss_scales[::2]
        same = 1e6 * unit_sq  # so precise that both focal lengths change together
        prior = IntrinsicsPrior(log_scale=(free, free), centre=(inf, inf), log_scale_difference=same)
    freed = with_intrinsics(model)[None]
    for scale in scales:
        freed = kernels.refine(freed, points, _steps(scale * max_error, prior), weights)[0]
    scores = kernels.msac_scores(freed, points, max_error)[0]
    information, pose = kernels.information(freed[0], points, weights * (scores > 0)) / unit_sq, freedom.pose
    together = np.zeros((len(information), pose + 1))  # the pose, and one number for all focal lengths
    together[range(pose), range(pose)] = together[[freedom.focal(k) for k in range(freedom.cameras)], pose] = 1
    information = together.T @ information @ together + np.diag([1e-9] * pose + [1 / wide**2])
    try:
        variance = float(np.linalg.inv(information)[-1, -1])
    except np.linalg.LinAlgError:
        variance = inf
    deviation = variance**0.5 if 0 <= variance <= wide**2 else wide  # rounding may make it exceed the prior
    return float(log_scales_of(freed[0])[0]), deviation, scores
