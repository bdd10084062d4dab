"""The uncertainty of an answer: covariances of poses and cameras, and the effect of ignored lens distortion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caransac.geometry import Array, direction_basis, symmetric_inverse
from caransac.kernels import ABSOLUTE, ABSOLUTE_FOCAL_POSES, RELATIVE, change_lenses, fit_evidence, lens_information
from caransac.robust.loop.scale import corrected_noise
from caransac.robust.problems import Absolute, Problem, with_intrinsics
from caransac.robust.problems.base import posterior_information
from caransac.robust.problems.lens_prior import LensPrior, slack_information
from caransac.robust.records import Estimate
from caransac.tuning import DEFAULT_TUNING, ERRORS


@dataclass(frozen=True, eq=False)
class Fit:
    """Precision of a pose that was fitted to weighted matches with a robust loss.

    Attributes:
        right: (n,) weights of the matches, multiplied by their probability of being right and by the thinning.
        information: (f, f) information from these matches about the degrees of freedom of the model.
        variance: variance of a residual of weight one.
        curvature: mean curvature of the robust loss, relative to that of squares.
    """

    right: Array
    information: Array
    variance: float
    curvature: float


def measured_fit(problem: Problem, found: Estimate, weights: Array, loss_scale: float) -> Fit:
    """Return the precision of a pose from the residuals: the sandwich covariance of M-estimators.

    See Huber, "Robust Statistics", 1981. The weights depend on the residuals, so the formula of the loss does not give
    its curvature. Stein's lemma gives it for Gaussian residuals r of deviation s: ``E[psi'(r)] = E[r psi(r)] / s^2``.

    Args:
        problem: the matches.
        found: estimate of the pose.
        weights: (n,) weights of the matches in the refinement of the pose.
        loss_scale: scale of the Cauchy loss in this refinement.
    """
    assert found.model is not None
    enough = 1024  # matches, which represent the others
    dimensions, tuning = problem.error_dimensions, DEFAULT_TUNING
    freedoms = (RELATIVE if problem.num_images == 2 else ABSOLUTE).pose
    residuals, slopes = problem.model_kernels.jacobian(found.model, problem.correspondences)
    right, information, thinning, count, pull, spread = fit_evidence(
        residuals.reshape(-1),
        slopes.reshape(residuals.size, -1),
        weights,
        problem.share(weights),
        noise=found.noise,
        loss_scale=loss_scale,
        reach=tuning.max_error,
        last=tuning.noise_reach,
        steepest=ERRORS.steepest,
        by_chance=ERRORS.chosen / dimensions,
        enough=enough,
        freedoms=freedoms,
    )
    deviation = corrected_noise(problem, found.model, found.noise, tuning)[1] / problem.median_error
    stated = found.final_noise / problem.median_error
    deviation = max(deviation, 1e-6 * stated)
    variance, curvature = deviation**2, 1.0
    if pull > 0:  # otherwise there are no right matches, or all are exact
        curvature = min(pull / dimensions / (count * deviation**2), 1.0)
        # Matches that share a keypoint also share its error.
        variance = spread / (dimensions * count * curvature**2)
    variance *= max(stated / deviation, 1.0) ** 2
    fitted = 2.0 * freedoms / dimensions / thinning  # twice, because the residuals determine the weights, too
    variance *= max(count, 1e-9) / max(count - fitted, 0.25 * count, 1e-9)
    if problem.precision is not None:
        variance *= 1 + ERRORS.refined_correlation * np.count_nonzero(problem.precision)
    return Fit(thinning * right, thinning * information / variance, variance, curvature)


def expected_fit(problem: Problem, found: Estimate, weights: Array, loss_scale: float) -> Fit:
    """Return the precision that the noise of the last round predicts if all weights are right. See `measured_fit`."""
    assert found.model is not None
    model, points, kernels = found.model, problem.correspondences, problem.model_kernels
    information = kernels.information(model, points, weights)
    lightest = weights[weights > 0].min(initial=1.0)
    if not information.trace() < ERRORS.steepest**2 * lightest:  # the sum of squared slopes: some may be steep
        slopes = kernels.jacobian(model, points)[1]
        weights = np.where(np.einsum("nf,nf->n", slopes, slopes) < ERRORS.steepest**2, weights, 0.0)
        information = kernels.information(model, points, weights)
    count, fitted = float(weights.sum()), 4.0 * RELATIVE.pose
    cauchy_excess = 1 + 0.58 * (found.noise / loss_scale) ** 1.8  # variance of Cauchy's estimator / least squares
    variance = cauchy_excess * ERRORS.weighted * max(found.noise / problem.median_error, 1e-150) ** 2
    variance *= max(count, 1e-9) / max(count - fitted, 0.5 * count, 1e-9)
    return Fit(weights, information / variance, variance, 0.214)  # the curvature at the scale of the noise


def pose_covariance(problem: Problem, found: Estimate, weights: Array, loss_scale: float) -> Array | None:
    """Return the covariance (f, f) of the degrees of freedom of a pose, in radians; None for other models.

    It is the inverse of the information from the matches, at the measured noise, and from the prior of the cameras.
    Angles that the matches do not constrain have a deviation of a radian. Fixed parameters have a variance of zero. If
    lenses were estimated, the degrees of freedom are `RELATIVE`.

    Args:
        problem: the matches.
        found: estimate of the pose.
        weights: (n,) weights of the matches in its refinement.
        loss_scale: scale of the Cauchy loss in its refinement.
    """
    if found.model is None or not problem.traits.uncertainty:
        return None
    covariance = _posterior(problem, found, measured_fit(problem, found, weights, loss_scale), weights)
    if problem.traits.has_mean and found.rounds and (refined := found.rounds[-1].best) is not None:
        # The answer may be a mean of models. The difference of an estimate from an efficient one is not correlated with
        # the error of the efficient one (Hausman, 1978).
        off = _pose_difference(refined, found.model)
        covariance[: RELATIVE.pose, : RELATIVE.pose] += np.outer(off, off)
    return covariance


def expected_rotation_variance(problem: Problem, found: Estimate, weights: Array, loss_scale: float) -> float | None:
    """Return the trace of the covariance of a rotation according to `expected_fit`; None for models without one."""
    if found.model is None or not problem.traits.uncertainty:
        return None
    covariance = _posterior(problem, found, expected_fit(problem, found, weights, loss_scale), weights)
    return float(np.trace(covariance[RELATIVE.rotation, RELATIVE.rotation]))


def _posterior(problem: Problem, found: Estimate, fit: Fit, weights: Array) -> Array:
    """Return the covariance (f, f) of a pose from its matches and the prior of the cameras. See `pose_covariance`."""
    assert found.model is not None
    # The refinement does not weigh the prior of the cameras by the inverse of its variance.
    cost = 1 / (fit.curvature * fit.variance)
    weight = cost * problem.prior_weight(found.noise, found.model, weights)
    if problem.lens_prior is not None and not problem.lens_prior.is_as_given:
        tempered = cost * ERRORS.cameras * found.noise**2
        return _with_lenses(problem, problem.lens_prior, found.model, fit.right / fit.variance, weight, tempered)
    data, prior = fit.information, problem.prior_information
    _add_radian(data)
    free = ~np.isinf(prior.diagonal())
    if free.all():
        return _sandwich(data + weight * prior, data + weight**2 * prior)
    covariance, of_free = np.zeros_like(data), free[:, None] & free
    data, prior = data[free][:, free], prior[free][:, free]
    covariance[of_free] = _sandwich(data + weight * prior, data + weight**2 * prior).ravel()
    return covariance


def _pose_difference(pose1: Array, pose2: Array) -> Array:
    """Return the small difference (5,) of two relative poses (3, 4) in the degrees of freedom at the second."""
    turn = pose1[:, :3] @ pose2[:, :3].T
    rotation = 0.5 * (turn - turn.T)[[2, 0, 1], [1, 2, 0]]
    return np.concatenate([rotation, direction_basis(pose2[:, 3]).T @ pose1[:, 3]])


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


def absolute_covariance(problem: Absolute, found: Estimate, weights: Array) -> Array:
    """Return the covariance of a pose in the caller's frame.

    It refers to a rotation vector applied from the left and to the translation, (6, 6). The logarithm of the focal
    length and k1 follow if they are uncertain.

    Args:
        problem: the matches.
        found: estimate of the pose.
        weights: (n,) weights of the matches in its refinement.
    """
    model, known = found.model, problem.camera_information
    assert model is not None
    fit = measured_fit(problem, found, weights, found.noise)
    if problem.lens_prior is None:
        information = posterior_information(fit.information, problem.prior_information)
    else:
        information = ABSOLUTE_FOCAL_POSES.information(*problem.bent(model), fit.right) / fit.variance
        information = posterior_information(information, np.diag([*np.zeros(ABSOLUTE.pose), *known]))
    covariance = symmetric_inverse(information)
    free = [k for k in (ABSOLUTE.focal(), ABSOLUTE.lens()) if np.isfinite(known[k - ABSOLUTE.pose])]
    wider = np.ones(len(covariance))
    for k in free:
        widest = 1 / known[k - ABSOLUTE.pose]  # the variance of the prior
        wider[k] = np.sqrt(np.clip(widest / max(covariance[k, k], 1e-300), 1.0, ERRORS.absolute))
    chosen = [*range(ABSOLUTE.pose), *free]
    covariance = (wider[:, None] * covariance * wider)[np.ix_(chosen, chosen)]
    return problem.frame.covariance(covariance, problem.public(model[None])[0])


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
