"""Refinement: how models are fitted to points, on which scale, and with which weights."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Loss, RefineOptions, most_likely
from caransac.learned.state_network import StateNetwork
from caransac.robust.problems import Problem

# The LO step (Lebeda et al., BMVC 2012): points within sqrt(5) thresholds, as the paper has it; ten steps on 512 points
# place a candidate well enough to compare it, and the winner is refined again on all.
LOCAL_REACH, LOCAL_STEPS, LOCAL_POINTS, LOCAL_MIN_DECREASE = 5**0.5, 10, 512, 1e-4

# The noise of the keypoints varies by a factor of ten between detectors and data sets. These multiples of its estimate
# were chosen on two training scenes with weights that had not seen them.
ERRORS_IN_NOISE = 3.0  # threshold of ranking and of the LO step
MAX_ERROR_IN_NOISE = 2.5  # threshold of attention, where it is found with the noise
LOSS_SCALE_IN_NOISE = 1.0  # scale of the final Cauchy loss
SMALLEST_NOISE, LARGEST_NOISE = 0.1, 1.0  # in thresholds: an estimate beyond says more of the model than of the noise
TYPICAL_NOISE = 0.25  # in thresholds, where too few points tell
TRUSTED_PRIOR, FEWEST_TRUSTED = 0.5, 50  # points more probable than this are trusted, or else the 50 most probable
NEAR = 5.0  # in thresholds: trusted points farther away are outliers that looked right
FEWEST_NEAR = 8  # with no more of them, their median says nothing

# Relative decrease of the cost that ends the weighted refinement: of a thousand matches, this moves the answer by a
# thirtieth of its deviation.
FINAL_MIN_DECREASE = 1e-6
NEGLIGIBLE_WEIGHT = 1e-3  # lighter points cost time and move nothing


def refine_locally(problem: Problem, models: Array, max_error: float) -> Array:
    """Each model fitted to its own inliers, truncated loss, a few steps: the LO step. (m, ...) -> (m, ...)."""
    return problem.refine(models, local_steps(problem, max_error))


def local_steps(problem: Problem, max_error: float) -> RefineOptions:
    """How the LO step refines."""
    return RefineOptions(
        loss=Loss.TRUNCATED,
        loss_scale=max_error,
        max_residual=LOCAL_REACH * max_error,
        max_steps=LOCAL_STEPS,
        max_points=LOCAL_POINTS,
        min_decrease=LOCAL_MIN_DECREASE,
        single_precision=True,
        intrinsics=problem.intrinsics_prior(max_error / (ERRORS_IN_NOISE * problem.tail * problem.max_error)),
    )


def refine_weighted(problem: Problem, model: Array, weights: Array, loss_scale: float) -> Array:
    """One model fitted to all points with the given weights (n,), Cauchy loss, to convergence."""
    noise = loss_scale / (LOSS_SCALE_IN_NOISE * problem.tail * problem.max_error)
    intrinsics = problem.intrinsics_prior(noise, model, weights)
    options = RefineOptions(loss_scale=loss_scale, min_decrease=FINAL_MIN_DECREASE, intrinsics=intrinsics)
    return np.asarray(problem.refine(model[None], options, weights)[0])


def trusted_points(problem: Problem, prior: Floats) -> Problem:
    """The problem of the points that looked right before any model was tried: the noise is measured on them."""
    least = float(prior[most_likely(prior, FEWEST_TRUSTED)].min())
    return problem.subset(np.flatnonzero(prior > min(TRUSTED_PRIOR, least)).astype(np.int32))


def estimate_noise(trusted: Problem, model: Array) -> float:
    """Median distance, in thresholds, of the `trusted_points` to the model."""
    count, median = trusted.near_median(model, NEAR * trusted.max_error)
    return noise_in(median / trusted.max_error if count > FEWEST_NEAR else TYPICAL_NOISE, 1.0)


def noise_in(noise: float, max_error: float) -> float:
    """A noise in thresholds, within what can be believed."""
    return min(max(noise / max_error, SMALLEST_NOISE), LARGEST_NOISE)


def belief_weights(network: StateNetwork, probabilities: Floats, prior: Floats) -> Array:
    """Weights ``p ** alpha * prior ** beta`` of the points (n,), those of no consequence set to zero.

    The prior knows nothing of the model being refined: it keeps the refinement from confirming its own start.
    """
    weights = probabilities ** np.float32(network.alpha) * prior ** np.float32(network.beta)
    return np.where(weights > NEGLIGIBLE_WEIGHT, weights, 0.0).astype(float)
