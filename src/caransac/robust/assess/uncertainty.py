"""The uncertainty of an answer: covariances of poses and cameras, and the effect of ignored lens distortion."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, symmetric_inverse
from caransac.kernels import ABSOLUTE, ABSOLUTE_FOCAL_POSES, RELATIVE, change_lenses, lens_information
from caransac.robust.problems import Absolute, Problem, with_intrinsics
from caransac.robust.problems.base import posterior_information
from caransac.robust.problems.lens_prior import LensPrior, slack_information
from caransac.robust.records import Estimate
from caransac.tuning import ERRORS


def pose_covariance(problem: Problem, found: Estimate, weights: Array, loss_scale: float | None = None) -> Array | None:
    """Return the covariance (f, f) of the degrees of freedom of a pose, in radians; None for other models.

    It is the inverse of the information from the matches, at the estimated noise, and from the prior of the cameras.
    Angles that the matches do not constrain have a deviation of a radian. Fixed parameters have a variance of zero. If
    lenses were estimated, the degrees of freedom are `RELATIVE`.

    Args:
        problem: the matches.
        found: estimate of the pose.
        weights: (n,) weights of the matches in its refinement.
        loss_scale: scale of the Cauchy loss in its refinement; None for the noise.
    """
    model = found.model
    if model is None or not problem.traits.uncertainty:
        return None
    data = problem.model_kernels.information(model, problem.correspondences, weights)
    largest_slope = 1e6  # a match with a steeper residual is left out: it would outweigh all others
    lightest = weights[weights > 0].min(initial=1.0)
    if not data.trace() < largest_slope**2 * lightest:  # the sum of squared slopes: some may be steep
        slopes = problem.model_kernels.jacobian(model, problem.correspondences)[1]
        weights = np.where(np.einsum("nf,nf->n", slopes, slopes) < largest_slope**2, weights, 0.0)
        data = problem.model_kernels.information(model, problem.correspondences, weights)
    count = float(weights.sum())
    deviation_sq = max(found.noise / problem.median_error, 1e-150) ** 2
    width = 1.0 if loss_scale is None else loss_scale / found.noise
    cauchy_excess = 1 + 0.58 / width**1.8  # variance of Cauchy's estimator divided by that of least squares
    fitted = 4.0 * RELATIVE.pose  # more than the degrees of freedom, because the residuals determine the weights
    variance = (
        cauchy_excess * ERRORS.weighted * deviation_sq * max(count, 1e-9) / max(count - fitted, 0.5 * count, 1e-9)
    )
    cauchy_curvature = 0.214  # mean curvature of Cauchy's loss at the scale of the noise, divided by that of squares
    # The refinement does not weigh the prior of the cameras by the inverse of its variance.
    weight = problem.prior_weight(found.noise, model, weights) / (cauchy_curvature * variance)
    if problem.lens_prior is not None and not problem.lens_prior.is_as_given:
        tempered = ERRORS.cameras * found.noise**2 / (cauchy_curvature * variance)
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
    """Return the covariance (13, 13) of the degrees of freedom `RELATIVE` if lenses were estimated.

    k1 is fitted together with pose and intrinsics, and exact cameras have some slack. Then k1 and the slack are fixed,
    and the pose is refined again.

    Args:
        fitted: the matches.
        lens_prior: prior of the lenses.
        model: the model.
        weights: (n,) inverse variances of the matches.
        weight: weight of the prior of uncertain cameras.
        tempered: weight of the prior of lenses and of the slack.
    """
    data = lens_information(with_intrinsics(model), lens_prior.k1, fitted.correspondences, weights)
    _add_radian(data)
    intrinsics, of_lenses, count = RELATIVE.intrinsics, RELATIVE.lenses, RELATIVE.with_lenses
    cameras, slack, lenses = _priors(fitted, lens_prior)
    free = np.isfinite(np.diag(cameras + lenses))
    last = free & (np.diag(slack) == 0)  # parameters of the last refinement
    last[of_lenses] = False
    cameras, lenses = (np.where(np.outer(free, free), each, 0.0) for each in (cameras, lenses))
    # `follows` is the derivative of each parameter with respect to the gradients of matches and priors. The covariance
    # of these gradients is in the middle of the product.
    follows = np.zeros((count, count))
    together = (data + weight * cameras + tempered * (slack + lenses))[np.ix_(free, free)]
    follows[np.ix_(free, free)] = symmetric_inverse(together)
    pull = np.eye(count)[last] - data[last, of_lenses] @ follows[of_lenses]
    follows[last] = symmetric_inverse((data + weight * cameras)[np.ix_(last, last)]) @ pull
    follows[intrinsics] *= last[intrinsics, None]
    return np.asarray(follows @ (data + weight**2 * cameras + tempered**2 * lenses) @ follows.T)


def _priors(problem: Problem, lens_prior: LensPrior) -> tuple[Array, Array, Array]:
    """Return the information (13, 13) of the priors of uncertain cameras, of the slack of exact ones, and of lenses."""
    cameras, slack, lenses = np.zeros((3, RELATIVE.with_lenses, RELATIVE.with_lenses))
    if problem.traits.exact_cameras:
        slack[RELATIVE.intrinsics, RELATIVE.intrinsics] = np.diag(slack_information())
    else:
        cameras[: RELATIVE.with_intrinsics, : RELATIVE.with_intrinsics] = problem.prior_information
    lenses[RELATIVE.lenses, RELATIVE.lenses] = lens_prior.information
    return cameras, slack, lenses


def _add_radian(information: Array) -> None:
    """Add a prior with a deviation of one radian to the pose part of information (f, f), in place."""
    information.ravel()[: RELATIVE.pose * len(information) : len(information) + 1] += 1.0  # along the diagonal


def _sandwich(bread: Array, filling: Array) -> Array:
    """Return ``bread^-1 filling bread^-1`` for two information matrices (f, f)."""
    try:
        inverse = np.linalg.inv(bread)
        product = np.asarray(inverse @ filling @ inverse.T)
        if product.diagonal().min() >= 0:
            return product
    except np.linalg.LinAlgError:
        pass
    inverse = symmetric_inverse(bread)  # slower, but it works for nearly singular matrices
    product = np.asarray(inverse @ filling @ inverse)
    product[np.diag_indices(len(product))] = np.maximum(np.diag(product), 0.0)
    return product


def camera_covariance(problem: Problem, information: Array, *, with_lens_prior: bool) -> Array:
    """Return the covariance (13, 13) of pose, intrinsics and k1.

    Args:
        problem: matches of cameras with uncertain lenses, and the priors of the cameras.
        information: (13, 13) information from the matches about the degrees of freedom `RELATIVE`.
        with_lens_prior: whether to use the prior of the lenses.
    """
    assert problem.lens_prior is not None
    prior = np.add.reduce(_priors(problem, problem.lens_prior))
    free = np.isfinite(np.diag(prior))
    if not with_lens_prior:
        prior[RELATIVE.lenses, RELATIVE.lenses] = problem.lens_prior.same_information
    kept = np.ix_(free, free)
    covariance = np.zeros_like(information)
    try:
        covariance[kept] = np.linalg.inv(information[kept] + prior[kept])
    except np.linalg.LinAlgError:  # the matches do not constrain a parameter
        covariance[kept] = symmetric_inverse(information[kept] + prior[kept])
    return covariance


def absolute_covariance(problem: Absolute, model: Array, weights: Array, noise: float) -> Array:
    """Return the covariance of a pose in the caller's frame, from points with weights (n,) and a noise.

    It refers to a rotation vector applied from the left and to the translation, (6, 6). The logarithm of the focal
    length and k1 follow if they are uncertain.
    """
    deviation, known = ERRORS.absolute**0.5 * noise / problem.median_error, problem.camera_information
    if problem.lens_prior is None:
        information = information_of(problem, model, weights, deviation)
    else:
        information = ABSOLUTE_FOCAL_POSES.information(*problem.bent(model), weights) / deviation**2
        information = posterior_information(information, np.diag([*np.zeros(ABSOLUTE.pose), *known]))
    covariance = symmetric_inverse(information)
    free = [k for k in (ABSOLUTE.focal(), ABSOLUTE.lens()) if np.isfinite(known[k - ABSOLUTE.pose])]
    chosen = [*range(ABSOLUTE.pose), *free]
    return problem.frame.covariance(covariance[np.ix_(chosen, chosen)], problem.public(model[None])[0])


def information_of(problem: Problem, model: Array, weights: Array, noise: float) -> Array:
    """Return the information (f, f) about a model from points with weights (n,) and this noise, and from its prior."""
    information = problem.model_kernels.information(model, problem.correspondences, weights)
    return posterior_information(information / noise**2, problem.prior_information)


def lens_response(problem: Problem, model: Array, weights: Array, noise: float) -> Array | None:
    """Return the derivative (f,) of a model's degrees of freedom with respect to k1 of both lenses.

    None if lenses are not assessed for the problem.

    Args:
        problem: the matches.
        model: the model.
        weights: (n,) weights of the points in its refinement.
        noise: median distance of right matches.
    """
    if problem.traits.usual_focal is None or not problem.num_points:
        return None
    enough, step = 512, 1e-4  # points, and the step of finite differences in k1
    if problem.num_points > enough:
        some = np.linspace(0, problem.num_points - 1, enough).astype(np.int32)
        return lens_response(problem.subset(some), model, weights[some] * (problem.num_points / enough), noise)
    bent, prior = bent_by(problem, step).correspondences, problem.prior_information
    response = problem.model_kernels.response(model, problem.correspondences, bent, weights, noise**2, prior)
    return response / step


def bent_by(problem: Problem, k1: float) -> Problem:
    """Return the problem with its points distorted by lenses of radial distortion k1."""
    assert problem.traits.usual_focal is not None
    own = k1 / problem.traits.usual_focal**2  # in the unit of the points
    return problem.with_changes(correspondences=change_lenses(problem.correspondences, (own, own), (0.0, 0.0)))
