"""Refinement: how models are fitted to matches, on which scale, and with which weights."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Loss, RefineOptions
from caransac.learned.state_network import MatchStates
from caransac.robust.problems import Problem
from caransac.tuning import Tuning


def local_steps(problem: Problem, max_error: float, noise: float, tuning: Tuning) -> RefineOptions:
    """How the LO step fits a model to its own inliers (Lebeda et al., BMVC 2012): truncated loss, a few steps.

    That places a candidate well enough to compare it. The winner is refined again, on all matches.
    """
    return RefineOptions(
        loss=Loss.TRUNCATED,
        loss_scale=max_error,
        max_residual=tuning.local_reach * max_error,
        max_steps=tuning.local_steps,
        max_points=tuning.compared_on,
        min_decrease=1e-4,
        single_precision=True,
        intrinsics=problem.intrinsics_prior(noise),
    )


def refine_weighted(problem: Problem, model: Array, weights: Array, noise: float) -> Array:
    """Fit one model to all matches with weights (n,) by a Cauchy loss at the scale of the noise."""
    options = RefineOptions(loss_scale=noise, intrinsics=problem.intrinsics_prior(noise, model, weights))
    return np.asarray(problem.refine(model[None], options, weights)[0])


def match_weights(network: MatchStates, probabilities: Floats, min_weight: float) -> Array:
    """Weights ``p ** alpha`` of the matches (n,), light ones set to zero."""
    weights = probabilities ** np.float32(network.alpha)
    return np.where(weights > min_weight, weights, 0.0).astype(float)
