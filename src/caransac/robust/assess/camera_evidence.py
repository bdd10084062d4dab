"""Whether the matches support the cameras that they were given with.

Wrong cameras do not stop an estimator: it finds the pose that explains most under them, and the noise seems larger. So
the answer is refined with free focal lengths, and as a fundamental matrix without any cameras, to see how far it moves.
"""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array, Floats, essential_from_pose, split_pose
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
from caransac.robust.problems import Problem, with_intrinsics
from caransac.robust.problems.base import log_scales_of
from caransac.robust.records import CameraEvidence, Estimate
from caransac.tuning import CAMERAS, ERRORS, Tuning


def check_cameras(problem: Problem, found: Estimate, tuning: Tuning) -> CameraEvidence | None:
    """Refine the answer, which must exist with its probabilities, with free cameras; None if they are not exact."""
    assert found.model is not None and found.probabilities is not None
    if not problem.traits.exact_cameras:
        return None
    chosen = most_likely(found.probabilities, 512)  # half of what models are compared on: more change no confidence
    likely, weights = problem.subset(chosen), found.probabilities[chosen].astype(float)
    max_error = tuning.max_error * found.noise  # that which tells models apart best
    if problem.traits.degeneracy == "one view":
        shift, deviation, gain = _free_in_space(likely, weights, found.model, max_error, found.noise)
    else:
        shift, deviation = _free_focal(likely, weights, found.model, max_error, found.noise)
        gain = _gain(likely, weights, found.model, max_error, tuning)
    unusual = max(abs(log(problem.extent / CAMERAS.usual_extent)) - log(CAMERAS.usual_factor), 0.0)
    return CameraEvidence(gain, shift, deviation, unusual)


def _gain(likely: Problem, weights: Array, model: Array, max_error: float, tuning: Tuning) -> float:
    """What `CameraEvidence.gain` is."""
    F = essential_from_pose(*split_pose(model)) / 2**0.5  # of norm one
    free, max_error = nearest_fundamental(F, likely, weights, likely.inliers(model, max_error), max_error, tuning)
    return _log_gain(FUNDAMENTALS.msac_scores(free[None], likely.correspondences, max_error), likely, model, max_error)


def _log_gain(freed: Floats, likely: Problem, model: Array, max_error: float) -> float:
    """Logarithm of the consensus of MSAC scores with free cameras in that of the answer, cut to what tells."""
    held = float(likely.msac_scores(model[None], max_error).sum())
    return log(min(max(float(freed.sum()) / max(held, 1e-6), 1.0), CAMERAS.largest_gain))


def nearest_fundamental(
    F: Array, likely: Problem, weights: Array, inliers: NDArray[np.bool_], max_error: float, tuning: Tuning
) -> tuple[Array, float]:
    """A matrix F (3, 3) of the points' own coordinates refined without any cameras, and the threshold there.

    Args:
        F: of norm one.
        likely: the points that it is refined on.
        weights: (n,) of theirs.
        inliers: (n,) which of them support F.
        max_error: the threshold of F, in which wrong cameras are noise.
        tuning: see `Tuning`.
    """
    points, models = likely.correspondences, F[None]
    for scale in CAMERAS.loss_scales:
        models = FUNDAMENTALS.refine(models, points, _steps(scale * max_error, IntrinsicsPrior()), weights)[0]
    supporting = points.subset(where(inliers))
    noise = sqrt(_median(FUNDAMENTALS.residuals_sq(models, supporting)[0])) if len(supporting) else inf
    return models[0], min(max(tuning.max_error * noise, CAMERAS.least_error * max_error), max_error)


def _median(values: Array) -> float:
    """The median of some numbers (n,): np.median takes several times as long for a few."""
    low, high = (len(values) - 1) // 2, len(values) // 2
    ranked = np.partition(values, (low, high))
    return 0.5 * float(ranked[low] + ranked[high])


def _steps(loss_scale: float, intrinsics: IntrinsicsPrior) -> RefineOptions:
    """How models are refined with free parameters."""
    return RefineOptions(
        loss_scale=loss_scale,
        max_steps=CAMERAS.fit_steps,
        min_decrease=CAMERAS.fit_min_decrease,
        single_precision=True,
        intrinsics=intrinsics,
    )


def _free_focal(likely: Problem, weights: Array, model: Array, max_error: float, noise: float) -> tuple[float, float]:
    """Logarithm of the factor by which the focal length of both cameras changes where it is free, and its deviation."""
    points, unit_sq = likely.correspondences, ERRORS.cameras * noise**2
    prior = IntrinsicsPrior(
        log_scale=(unit_sq / CAMERAS.free_deviation**2,) * 2,
        centre=(inf, inf),
        log_scale_difference=1e6 * unit_sq,  # so precise that both focal lengths change together
    )
    freed = with_intrinsics(model)[None]
    for scale in CAMERAS.loss_scales[::2]:
        freed = FOCAL_POSES.refine(freed, points, _steps(scale * max_error, prior), weights)[0]
    inliers = FOCAL_POSES.msac_scores(freed, points, max_error)[0] > 0
    information = FOCAL_POSES.information(freed[0], points, weights * inliers) / unit_sq
    pose = RELATIVE.pose
    together = np.zeros((RELATIVE.with_intrinsics, pose + 1))  # the pose, and one number for both focal lengths
    together[range(pose), range(pose)] = together[[RELATIVE.focal(0), RELATIVE.focal(1)], pose] = 1
    information = together.T @ information @ together + np.diag([1e-9] * pose + [1 / CAMERAS.free_deviation**2])
    return float(log_scales_of(freed[0])[0]), _last_deviation(information)


def _free_in_space(
    likely: Problem, weights: Array, model: Array, max_error: float, noise: float
) -> tuple[float, float, float]:
    """Of an absolute pose: shift and deviation as `_free_focal`, and the logarithm of the consensus that it gains."""
    points, unit_sq = likely.correspondences, ERRORS.cameras * noise**2
    prior = IntrinsicsPrior(log_scale=(unit_sq / CAMERAS.free_deviation**2, 0.0), centre=(inf, inf), k1=(inf, 0.0))
    freed = with_intrinsics(model)[None]
    weights = likely.share(weights)
    for scale in CAMERAS.loss_scales:
        freed = ABSOLUTE_FOCAL_POSES.refine(freed, points, _steps(scale * max_error, prior), weights)[0]
    scores = ABSOLUTE_FOCAL_POSES.msac_scores(freed, points, max_error)[0]
    information = ABSOLUTE_FOCAL_POSES.information(freed[0], points, weights * (scores > 0)) / unit_sq
    count = ABSOLUTE.pose + 1  # the focal length is next
    information = information[:count, :count] + np.diag([1e-9] * ABSOLUTE.pose + [1 / CAMERAS.free_deviation**2])
    return float(log_scales_of(freed[0])[0]), _last_deviation(information), _log_gain(scores, likely, model, max_error)


def _last_deviation(information: Array) -> float:
    """Deviation of the last number, of the information (f, f): at most the prior's, also where rounding says else."""
    try:
        variance = float(np.linalg.inv(information)[-1, -1])
    except np.linalg.LinAlgError:
        return CAMERAS.free_deviation
    return variance**0.5 if 0 <= variance <= CAMERAS.free_deviation**2 else CAMERAS.free_deviation
