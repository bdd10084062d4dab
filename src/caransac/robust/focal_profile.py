"""What the matches of one pair say about the focal length and the lens of its camera."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caransac.geometry import Array
from caransac.kernels import RefineOptions, refine_lens_pose
from caransac.robust.estimate import Estimate
from caransac.robust.problems import FocalPose
from caransac.tuning import Tuning

STEPS, MIN_DECREASE = 10, 1e-5  # each focal length starts from the pose of its neighbour
MOST_POINTS = 1000  # more say hardly more, at the same noise
MOST_WITH_LENS = 400  # which take longer
COST_IN_LIKELIHOOD = 0.5  # minus log-likelihood, in costs per squared noise


class CameraProfile(NamedTuple):
    """What a pair says about the camera of both of its images.

    Attributes:
        focals: (k,) log-likelihoods of focal lengths, without any prior, the largest being 0.
        k1: (k,) of the lens that suits each of them and the prior best, of rays at the focal length that was assumed;
            None where the lens is exact.
        k1_deviation: of these, by the matches alone.
    """

    focals: Array
    k1: Array | None = None
    k1_deviation: float = 0.0


def camera_profile(problem: FocalPose, found: Estimate, log_scales: Array, tuning: Tuning) -> CameraProfile:
    """Log-likelihood of focal lengths, of each with the pose, the principal points and the lens that suit it best.

    The curve keeps what a mean and a deviation would lose: pairs of little depth or rotation have several minima, or
    none on one side.

    Args:
        problem: a pair of images of one camera.
        found: its estimate, with an answer.
        log_scales: (k,) focal lengths as logarithms of their ratio to the camera as given, rising.
        tuning: see `Tuning`.
    """
    assert found.model is not None and found.msac_scores is not None
    weights = found.rounds[-1].probabilities if found.rounds else (found.msac_scores > 0).astype(np.float32)
    if problem.lens_doubt is not None and found.prior is not None:  # which the lens of the answer has not coloured
        weights = np.sqrt(weights * found.prior)
    chosen = np.flatnonzero(weights > tuning.min_weight).astype(np.int32)
    most = MOST_POINTS if problem.lens_doubt is None else MOST_WITH_LENS
    chosen = chosen[:: -(-len(chosen) // most) or 1]
    points, point_weights = problem.subset(chosen), weights[chosen].astype(float)
    scale, doubt = tuning.loss_scale * found.noise, problem.lens_doubt
    intrinsics = problem.held_focal_prior(found.noise)
    options = RefineOptions(
        loss_scale=scale,
        max_steps=STEPS,
        min_decrease=MIN_DECREASE,
        intrinsics=intrinsics if doubt is None else doubt.add_to(intrinsics, found.noise),
    )
    costs, lenses = np.zeros(len(log_scales)), np.zeros(len(log_scales))
    nearest = int(np.argmin(np.abs(log_scales - found.model[0, 4:].mean())))
    for way in (range(nearest, len(log_scales)), range(nearest - 1, -1, -1)):
        model, seen = found.model, points
        for k in way:
            model = model.copy()
            model[0, 4:] = log_scales[k]
            if seen.lens_doubt is None:
                refined, cost = seen.model_kernels.refine(model[None], seen.correspondences, options, point_weights)
                model, costs[k] = refined[0], cost[0, 1]
                continue
            at, given = seen.lens_doubt.k1, seen.lens_doubt.given
            model, k1, (_, costs[k]) = refine_lens_pose(model, at, seen.correspondences, point_weights, given, options)
            seen, lenses[k] = seen.through(k1), k1[0]
    focals = (costs.min() - costs) * COST_IN_LIKELIHOOD / scale**2
    if doubt is None or found.lenses is None:
        return CameraProfile(focals)
    return CameraProfile(focals, lenses, found.lenses.deviations[0])
