"""How far noise moves a pose: the covariance of what was fitted."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, symmetric_inverse
from caransac.kernels import RELATIVE, lens_information
from caransac.robust.problems import Problem, with_intrinsics
from caransac.robust.problems.base import LARGEST_SLOPE, not_steep
from caransac.robust.problems.lens_prior import LensPrior, slack_information
from caransac.robust.records import Estimate
from caransac.tuning import CAMERAS

# Mean curvature of Cauchy's loss at a scale of the noise, the median distance, where that of squares is one: by so much
# more the prior of the cameras counts.
CAUCHY_CURVATURE = 0.214
# Variance of Cauchy's estimator at that scale, relative to the variance of least squares.
CAUCHY_VARIANCE = 1.58
# The fit makes residuals smaller, as if so many numbers had been fitted for each one, and matches got their weights by
# their residuals. With both, 95 % ellipses hold 91 to 96 % of synthetic poses with exact cameras (table `covariance`).
FITTED, CHOSEN = 4.0, 1.1


def pose_covariance(problem: Problem, found: Estimate, weights: Array) -> Array | None:
    """Covariance (f, f) of the degrees of freedom of a pose that was found, in radians; None of other models.

    The inverse of the information in the matches, at the noise that was found, and of what is known of the cameras.
    What nothing tells is known to a radian; what is held fixed has a variance of zero. Where lenses were estimated, the
    degrees of freedom are `RELATIVE`.

    Args:
        problem: the matches.
        found: their estimate.
        weights: (n,) that the model was fitted with.
    """
    model = found.model
    if model is None or not problem.has_rotation:
        return None
    data = problem.model_kernels.information(model, problem.correspondences, weights)
    lightest = weights[weights > 0].min(initial=1.0)
    if not data.trace() < LARGEST_SLOPE**2 * lightest:  # the sum of squared slopes: some may be steep
        weights = np.where(not_steep(problem.jacobian(model)[1]), weights, 0.0)
        data = problem.model_kernels.information(model, problem.correspondences, weights)
    count = float(weights.sum())
    deviation_sq = max(found.noise / problem.median_error, 1e-150) ** 2
    variance = (
        CAUCHY_VARIANCE
        * CHOSEN
        * deviation_sq
        * max(count, 1e-9)
        / max(count - FITTED * RELATIVE.pose, 0.5 * count, 1e-9)
    )
    # The refinement weighs the prior of the cameras by another factor than their deviations say.
    weight = problem.prior_weight(found.noise, model, weights) / (CAUCHY_CURVATURE * variance)
    if problem.lens_prior is not None and not problem.lens_prior.is_as_given:
        tempered = CAMERAS.temper * found.noise**2 / (CAUCHY_CURVATURE * variance)
        return _with_lenses(problem, problem.lens_prior, model, weights / variance, weight, tempered)
    data /= variance
    _add_radian(data)
    prior = problem.prior_information
    free = ~np.isinf(prior.diagonal())
    covariance, of_free = np.zeros_like(data), free[:, None] & free
    data, prior = data[free][:, free], prior[free][:, free]
    covariance[of_free] = _sandwich(data + weight * prior, data + weight**2 * prior).ravel()
    return covariance


def _with_lenses(
    fitted: Problem, lens_prior: LensPrior, model: Array, weights: Array, weight: float, tempered: float
) -> Array:
    """The covariance (13, 13) where lenses were estimated, of the degrees of freedom `RELATIVE`.

    k1 is fitted with pose and intrinsics, where exact cameras have some slack; then the pose is refined without it.

    Args:
        fitted: the matches.
        lens_prior: of their lenses.
        model: the model.
        weights: (n,) of the matches, in inverse variances.
        weight: of the prior of uncertain cameras.
        tempered: of the prior of lenses, and of slack.
    """
    data = lens_information(with_intrinsics(model), lens_prior.k1, fitted.correspondences, weights)
    _add_radian(data)
    intrinsics, of_lenses, count = RELATIVE.intrinsics, RELATIVE.lenses, RELATIVE.with_lenses
    cameras, slack, lenses = np.zeros((3, count, count))
    if fitted.has_exact_cameras:
        slack[intrinsics, intrinsics] = np.diag(slack_information())
    else:
        cameras[: RELATIVE.with_intrinsics, : RELATIVE.with_intrinsics] = fitted.prior_information
    lenses[of_lenses, of_lenses] = lens_prior.information
    free = np.isfinite(np.diag(cameras + lenses))
    last = free & (np.diag(slack) == 0)  # what the last refinement moves
    last[of_lenses] = False
    cameras, lenses = (np.where(np.outer(free, free), each, 0.0) for each in (cameras, lenses))
    # How each number follows the pull of matches and priors, whose covariance is in the middle.
    follows = np.zeros((count, count))
    together = (data + weight * cameras + tempered * (slack + lenses))[np.ix_(free, free)]
    follows[np.ix_(free, free)] = symmetric_inverse(together)
    pull = np.eye(count)[last] - data[last, of_lenses] @ follows[of_lenses]
    follows[last] = symmetric_inverse((data + weight * cameras)[np.ix_(last, last)]) @ pull
    follows[intrinsics] *= last[intrinsics, None]
    return np.asarray(follows @ (data + weight**2 * cameras + tempered**2 * lenses) @ follows.T)


def _add_radian(information: Array) -> None:
    """Add to information (f, f) that the pose is known to a radian."""
    information.ravel()[: RELATIVE.pose * len(information) : len(information) + 1] += 1.0  # along the diagonal


def _sandwich(bread: Array, filling: Array) -> Array:
    """``bread^-1 filling bread^-1`` of two informations (f, f)."""
    try:
        inverse = np.linalg.inv(bread)
        product = np.asarray(inverse @ filling @ inverse.T)
        if product.diagonal().min() >= 0:
            return product
    except np.linalg.LinAlgError:
        pass
    inverse = symmetric_inverse(bread)  # slower, and needed where next to nothing is told
    product = np.asarray(inverse @ filling @ inverse)
    product[np.diag_indices(len(product))] = np.maximum(np.diag(product), 0.0)
    return product
