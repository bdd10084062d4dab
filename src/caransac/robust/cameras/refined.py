"""Cameras as they come back with an answer: refined where they were uncertain, with the deviations that are left."""

from __future__ import annotations

from math import exp

import numpy as np

from caransac.camera import Camera
from caransac.camera_priors import LARGEST_DEVIATION
from caransac.geometry import Array, symmetric_inverse
from caransac.kernels import RELATIVE, lens_information
from caransac.robust.problems import Essential, FocalPose, Problem, with_intrinsics
from caransac.robust.problems.base import intrinsics_of, log_scales_of
from caransac.robust.problems.focal import STATED_TEMPER, with_model
from caransac.robust.problems.lens_prior import slack_information
from caransac.robust.records import Estimate
from caransac.tuning import CAMERAS


def refined_cameras(
    problem: Essential | FocalPose, found: Estimate, cameras: tuple[Camera, Camera]
) -> tuple[Camera, Camera]:
    """The cameras of an answer, which must exist: as given where they were exact, or lenses were not estimated.

    Args:
        problem: seen through the lenses that were found.
        found: its estimate.
        cameras: as given.
    """
    assert found.model is not None and found.msac_scores is not None
    weights = (found.msac_scores > 0).astype(float)
    lens_prior = problem.lens_prior
    if lens_prior is None:
        if isinstance(problem, Essential):
            return cameras
        return problem.refined_cameras(found.model, weights, found.noise)
    model = with_intrinsics(found.model)
    information = lens_information(model, lens_prior.k1, problem.correspondences, weights)
    information /= CAMERAS.temper * found.noise**2
    variances = np.diag(camera_covariance(problem, information, with_lens_prior=True))
    wide = problem if isinstance(problem, Essential) else problem.with_tails()
    stated = np.diag(camera_covariance(wide, information * (CAMERAS.temper / STATED_TEMPER), with_lens_prior=True))
    back = []
    for index, camera in enumerate(cameras):
        log_scale = log_scales_of(model)[index]
        if camera.focal_deviation > 0:
            deviation = min(float(max(stated[RELATIVE.focal(index)], 0.0) ** 0.5), LARGEST_DEVIATION)
            camera = with_model(camera, intrinsics_of(model, index), deviation)
        scale_sq = exp(2 * log_scale)  # k1 of the camera as given is of rays at its focal length
        if found.k1 is not None and camera.distortion_deviation > 0:
            deviation = min(float(np.sqrt(max(variances[RELATIVE.lens(index)], 0.0))) * scale_sq, LARGEST_DEVIATION)
            camera = camera.with_lens(lens_prior.k1[index] * scale_sq, deviation)
        elif camera.distortion_deviation > 0 and camera.k1 != 0 and log_scale != 0:
            camera = camera.with_lens(camera.k1 * scale_sq, camera.distortion_deviation)
        back.append(camera)
    return back[0], back[1]


def camera_covariance(problem: Problem, information: Array, *, with_lens_prior: bool) -> Array:
    """Covariance (13, 13) of pose, intrinsics and k1 by information (13, 13) and what is known of the cameras.

    Args:
        problem: of cameras with uncertain lenses.
        information: of the matches, by the degrees of freedom `RELATIVE`.
        with_lens_prior: whether what is known of the lenses counts, too.
    """
    lens_prior = problem.lens_prior
    assert lens_prior is not None
    prior = np.zeros_like(information)
    if problem.has_exact_cameras:
        prior[RELATIVE.intrinsics, RELATIVE.intrinsics] = np.diag(slack_information())
    else:
        prior[: RELATIVE.with_intrinsics, : RELATIVE.with_intrinsics] = problem.prior_information
    prior[RELATIVE.lenses, RELATIVE.lenses] = lens_prior.information
    free = np.isfinite(np.diag(prior))
    if not with_lens_prior:
        prior[RELATIVE.lenses, RELATIVE.lenses] = lens_prior.same_information
    kept = np.ix_(free, free)
    covariance = np.zeros_like(information)
    try:
        covariance[kept] = np.linalg.inv(information[kept] + prior[kept])
    except np.linalg.LinAlgError:  # matches that leave a number open
        covariance[kept] = symmetric_inverse(information[kept] + prior[kept])
    return covariance
