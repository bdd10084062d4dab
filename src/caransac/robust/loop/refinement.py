"""Refinement of models: options, loss scales and match weights."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Loss, RefineOptions
from caransac.learned.state_network import MatchStates
from caransac.robust.problems import Problem
from caransac.tuning import Tuning


def local_steps(problem: Problem, max_error: float, noise: float, tuning: Tuning) -> RefineOptions:
    """Return the options of the LO step (Lebeda et al., BMVC 2012): few steps with a truncated loss on inliers.

    This is accurate enough to compare candidates. The winner is refined again, on all matches.
    """
    return RefineOptions(
        loss=Loss.TRUNCATED,
        loss_scale=max_error,
        max_residual=tuning.local_reach * max_error,
        max_steps=tuning.local_steps,
        max_points=tuning.compared_on // 2,  # all points gain nothing on validation scenes
        min_decrease=tuning.local_min_decrease,
        single_precision=True,
        intrinsics=problem.intrinsics_prior(noise),
    )


def with_initial(problem: Problem, models: Array, max_error: float, steps: RefineOptions) -> Array:
    """Append the initial model of the problem, refined with the same options, to models (m, ...).

    If no sample gives a model, the matches are degenerate, and the initial model is not added.
    """
    if problem.initial is None or len(models) == 0:
        return models
    points = problem.correspondences
    start = problem.model_kernels.promising(problem.initial[None], points, max_error, 1, steps)
    return np.concatenate([models, start])


def loss_scale(problem: Problem, model: Array, weights: Array, noise: float, tuning: Tuning) -> float:
    """Return the scale of the final Cauchy loss: the noise, or a wider scale if that is clearly more precise.

    A loss with the scale of the noise suppresses wrong matches but uses only two thirds of the information in right
    ones. The variance of either estimate is proportional to ``E[psi^2] / E[psi']^2`` (Huber, "Robust Statistics",
    1981), evaluated on the residuals of all matches with weights (n,). Only poses of exact cameras use the wider loss:
    for other cameras, the weight of the prior assumes a loss with the scale of the noise.
    """
    if not problem.traits.has_mean:
        return noise
    squares = problem.model_kernels.residuals_sq(model[None], problem.correspondences)[0]
    used = (weights > 0) & (squares < (tuning.noise_reach * tuning.wide_loss_scale * noise) ** 2)
    squares, weights = squares[used], weights[used]

    def variance(scale: float) -> float:
        relative = squares / scale**2
        slope = 1 / (1 + relative) ** 2
        curvature = float(weights @ ((1 - relative) * slope))
        return float(weights**2 @ (squares * slope)) / curvature**2 if curvature > 0 else np.inf

    wide = tuning.wide_loss_scale * noise
    return wide if variance(wide) < tuning.wide_gain * variance(noise) else noise


def refine_weighted(problem: Problem, model: Array, weights: Array, noise: float, scale: float | None = None) -> Array:
    """Fit one model to all matches with weights (n,) and a Cauchy loss. The scale defaults to the noise."""
    options = RefineOptions(
        loss_scale=noise if scale is None else scale, intrinsics=problem.intrinsics_prior(noise, model, weights)
    )
    return np.asarray(problem.refine(model[None], options, weights)[0])


def match_weights(network: MatchStates, probabilities: Floats, min_weight: float) -> Array:
    """Return the weights ``p ** alpha`` of the matches (n,); small ones are set to zero."""
    weights = probabilities ** np.float32(network.alpha)
    return np.where(weights > min_weight, weights, 0.0).astype(float)
