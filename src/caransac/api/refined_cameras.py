"""Cameras of a result: the matches refine uncertain cameras and reduce their deviations."""

from __future__ import annotations

from math import exp

import numpy as np

from caransac.camera import Camera
from caransac.camera_priors import IGNORED_DISTORTION_DEVIATION, LARGEST_DEVIATION
from caransac.geometry import Array, symmetric_inverse
from caransac.kernels import ABSOLUTE, RELATIVE, lens_information
from caransac.robust.assess.uncertainty import camera_covariance, information_of, lens_response
from caransac.robust.problems import Absolute, with_intrinsics
from caransac.robust.problems.base import intrinsics_of, log_scales_of
from caransac.robust.problems.focal import with_model
from caransac.robust.problems.relative import RelativePoseProblem
from caransac.robust.records import Estimate
from caransac.tuning import ERRORS


def refined_cameras(
    problem: RelativePoseProblem, found: Estimate, cameras: tuple[Camera, Camera]
) -> tuple[Camera, Camera]:
    """Return the cameras of an estimate with a model.

    Exact cameras, and lenses that were not fitted, do not change.

    Args:
        problem: matches, undistorted with the estimated lenses.
        found: estimate of the problem, which must have a model.
        cameras: given cameras.
    """
    assert found.model is not None and found.msac_scores is not None
    weights = (found.msac_scores > 0).astype(float)
    lens_prior = problem.lens_prior
    if lens_prior is None:
        return cameras if problem.traits.exact_cameras else _refined_focals(problem, found, cameras, weights)
    model = with_intrinsics(found.model)
    information = lens_information(model, lens_prior.k1, problem.correspondences, weights)
    information /= ERRORS.cameras * found.noise**2
    variances = np.diag(camera_covariance(problem, information, with_lens_prior=True))
    stated = np.diag(
        camera_covariance(
            problem.with_tails(), information * (ERRORS.cameras / ERRORS.stated_cameras), with_lens_prior=True
        )
    )
    back = []
    for index, camera in enumerate(cameras):
        log_scale = log_scales_of(model)[index]
        if camera.focal_deviation > 0:
            deviation = min(float(max(stated[RELATIVE.focal(index)], 0.0) ** 0.5), LARGEST_DEVIATION)
            camera = with_model(camera, intrinsics_of(model, index), deviation)
        scale_sq = exp(2 * log_scale)  # a given k1 refers to rays normalised by the given focal length
        if found.k1 is not None and camera.distortion_deviation > 0:
            deviation = min(float(np.sqrt(max(variances[RELATIVE.lens(index)], 0.0))) * scale_sq, LARGEST_DEVIATION)
            camera = camera.with_lens(lens_prior.k1[index] * scale_sq, deviation)
        elif camera.distortion_deviation > 0 and camera.k1 != 0 and log_scale != 0:
            camera = camera.with_lens(camera.k1 * scale_sq, camera.distortion_deviation)
        back.append(camera)
    return back[0], back[1]


def _refined_focals(
    problem: RelativePoseProblem, found: Estimate, cameras: tuple[Camera, Camera], weights: Array
) -> tuple[Camera, Camera]:
    """Return the cameras of a model. Weights (n,) of the matches and the prior determine their deviations."""
    wide, model = problem.with_tails(), found.model
    assert model is not None
    covariance = symmetric_inverse(information_of(wide, model, weights, found.noise * ERRORS.stated_cameras**0.5))
    response = lens_response(wide, model, weights, found.noise)
    bias = np.zeros(len(covariance)) if response is None else IGNORED_DISTORTION_DEVIATION * response
    refined = []
    for index, camera in enumerate(cameras):
        own, widest = RELATIVE.focal(index), wide.priors[index].focal
        deviation = min(float(np.hypot(max(covariance[own, own], 0.0) ** 0.5, bias[own])), widest)
        refined.append(with_model(camera, intrinsics_of(model, index), deviation))
    return refined[0], refined[1]


def refined_camera(problem: Absolute, model: Array, covariance: Array) -> Camera:
    """Return the camera of a model, with deviations from the covariance (f, f). An exact camera does not change."""
    camera, variances = problem.camera, np.diag(covariance)[ABSOLUTE.pose :]
    deviations = np.sqrt(np.maximum(variances, 0.0)).clip(max=LARGEST_DEVIATION).tolist()
    intrinsics = intrinsics_of(with_intrinsics(model), 0)
    if camera.focal_deviation > 0:
        camera = with_model(camera, intrinsics, deviations[0])
    if problem.lens_prior is not None:
        camera = camera.with_lens(problem.lens_prior.k1[0] * exp(2 * intrinsics[0]), deviations[-1])
    return camera
