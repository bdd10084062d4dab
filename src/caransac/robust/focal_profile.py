"""What the matches of one pair say about the focal length and the lens of its camera."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caransac.geometry import Array
from caransac.kernels import RefineOptions
from caransac.robust.estimate import Estimate
from caransac.robust.problems import FocalPose
from caransac.tuning import Tuning

STEPS, MIN_DECREASE = 10, 1e-5  # each focal length starts from the pose of its neighbour
MOST_POINTS = 1000  # more say hardly more, at the same noise
COST_IN_LIKELIHOOD = 0.5  # minus log-likelihood, in costs per squared noise


class CameraProfile(NamedTuple):
    """What a pair says about the camera of both of its images.

    Attributes:
        focals: (k,) log-likelihoods of focal lengths, without any prior, the largest being 0: see `focal_profile`.
        k1: of the lens that suits the matches and the prior best, of rays at the focal length that was assumed; None
            where nobody asked.
        k1_deviation: of it, by the matches alone.
    """

    focals: Array
    k1: float | None = None
    k1_deviation: float = 0.0


def focal_profile(problem: FocalPose, found: Estimate, log_scales: Array, tuning: Tuning) -> Array:
    """Log-likelihood of focal lengths, of each with the pose and the principal points that suit it best.

    The curve keeps what a mean and a deviation would lose: pairs of little depth or rotation have several minima, or
    none on one side.

    Args:
        problem: a pair of images of one camera.
        found: its estimate, with an answer.
        log_scales: (k,) focal lengths as logarithms of their ratio to the camera as given, rising.
        tuning: see `Tuning`.

    Returns:
        (k,) the largest being 0.
    """
    assert found.model is not None and found.msac_scores is not None
    weights = found.rounds[-1].probabilities if found.rounds else (found.msac_scores > 0).astype(np.float32)
    chosen = np.flatnonzero(weights > tuning.min_weight).astype(np.int32)
    chosen = chosen[:: -(-len(chosen) // MOST_POINTS) or 1]
    points, point_weights = problem.subset(chosen), weights[chosen].astype(float)
    scale = tuning.loss_scale * found.noise
    options = RefineOptions(
        loss_scale=scale,
        max_steps=STEPS,
        min_decrease=MIN_DECREASE,
        intrinsics=problem.held_focal_prior(found.noise),
    )
    costs = np.zeros(len(log_scales))
    nearest = int(np.argmin(np.abs(log_scales - found.model[0, 4:].mean())))
    for way in (range(nearest, len(log_scales)), range(nearest - 1, -1, -1)):
        model = found.model
        for k in way:
            model = model.copy()
            model[0, 4:] = log_scales[k]
            refined, cost = points.model_kernels.refine(model[None], points.correspondences, options, point_weights)
            model, costs[k] = refined[0], cost[0, 1]
    return np.asarray((costs.min() - costs) * COST_IN_LIKELIHOOD / scale**2)
