"""How far noise moves a pose: the covariance of what was fitted."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array
from caransac.robust.estimate import Estimate
from caransac.robust.problems import Problem
from caransac.robust.problems.base import LARGEST_SLOPE

POSE = 5  # degrees of freedom, the first ones of a model
# Mean curvature of Cauchy's loss at a scale of the noise, the median distance, where that of squares is one: by so much
# more the prior of the cameras counts.
CAUCHY_CURVATURE = 0.214
# The fit makes residuals smaller, as if so many numbers had been fitted for each one, and matches got their weights by
# their residuals. With both, 95 % ellipses hold 93 to 97 % of synthetic poses: benchmarks/covariance.py.
FITTED, CHOSEN = 1.5, 1.1


def pose_covariance(problem: Problem, found: Estimate, weights: Array) -> Array | None:
    """Covariance (f, f) of the degrees of freedom of a pose that was found, in radians; None of other models.

    The inverse of the information in the matches, at the noise that was found, and of what is known of the cameras.
    What nothing tells is known to a radian; what is held fixed has a variance of zero.

    Args:
        problem: the matches.
        found: their estimate.
        weights: (n,) that the model was fitted with.
    """
    model = found.model
    if model is None or not problem.has_rotation:
        return None
    chosen = np.flatnonzero(weights).astype(np.int32)
    fitted, weights = problem.subset(chosen), weights[chosen]
    _, slopes = fitted.jacobian(model)
    weights = np.where(np.abs(slopes).max(axis=1, initial=0.0) < LARGEST_SLOPE, weights, 0.0)
    count = float(weights.sum())
    deviation_sq = max(found.noise / problem.median_error, 1e-150) ** 2
    variance = CHOSEN * deviation_sq * max(count, 1e-9) / max(count - FITTED * POSE, 0.5 * count, 1e-9)
    prior = problem.prior_information
    free = ~np.isinf(np.diag(prior))
    prior = prior[np.ix_(free, free)]
    data = problem.model_kernels.information(model, fitted.correspondences, weights)[np.ix_(free, free)] / variance
    data[range(POSE), range(POSE)] += 1.0
    # The refinement weighs the prior of the cameras by another factor than their deviations say.
    weight = fitted.prior_weight(found.noise, model, weights) / (CAUCHY_CURVATURE * variance)
    covariance = np.zeros((len(free), len(free)))
    covariance[np.ix_(free, free)] = _sandwich(data + weight * prior, data + weight**2 * prior)
    return covariance


def _sandwich(bread: Array, filling: Array) -> Array:
    """``bread^-1 filling bread^-1`` of two informations (f, f)."""
    try:
        inverse = np.linalg.inv(bread)
        product = np.asarray(inverse @ filling @ inverse.T)
        if (np.diag(product) >= 0).all():
            return product
    except np.linalg.LinAlgError:
        pass
    inverse = np.linalg.pinv(bread, hermitian=True)  # three times as slow, and needed where next to nothing is told
    product = np.asarray(inverse @ filling @ inverse)
    product[np.diag_indices(len(product))] = np.maximum(np.diag(product), 0.0)
    return product
