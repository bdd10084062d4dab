"""Likelihood of the focal lengths and lenses of a camera, from the matches of one pair of its images."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caransac.geometry import Array
from caransac.kernels import RefineOptions, refine_lens_pose, where
from caransac.robust.problems import FocalPose
from caransac.robust.problems.base import log_scales_of
from caransac.robust.problems.lens_prior import LensPrior
from caransac.robust.records import Estimate
from caransac.tuning import Tuning


class CameraProfile(NamedTuple):
    """Log-likelihoods of a camera from one pair of its images, up to a constant and without any prior.

    Attributes:
        focals: (k,) log-likelihood of each focal length with the given lens; the largest is 0.
        bent_focals: (k,) log-likelihood of each focal length with its most likely lens; None if the lens is exact.
        k1: (k,) most likely k1 at each focal length, for rays normalised by the assumed focal length; None if the lens
            is exact.
        k1_deviation: standard deviation of k1 without its prior.
    """

    focals: Array
    bent_focals: Array | None = None
    k1: Array | None = None
    k1_deviation: float = 0.0


def camera_profile(problem: FocalPose, found: Estimate, log_scales: Array, tuning: Tuning) -> CameraProfile:
    """Return the log-likelihood of focal lengths, each with its most likely pose, principal points and lens.

    A mean and a deviation are not enough: pairs with little depth or rotation have several maxima, or none.

    Args:
        problem: a pair of images of one camera.
        found: estimate of the pair, which must have a model.
        log_scales: (k,) logarithms of the focal lengths divided by the given one, in ascending order.
        tuning: numbers of the loop; see `Tuning`.
    """
    lens = problem.lens_prior
    flat = _profile(problem if lens is None else problem.through(lens.given), found, log_scales, tuning)[0]
    if lens is None or found.lenses is None:
        return CameraProfile(flat)
    return CameraProfile(flat, *_profile(problem, found, log_scales, tuning, lens=lens), found.lenses.deviations[0])


def _profile(
    problem: FocalPose, found: Estimate, log_scales: Array, tuning: Tuning, *, lens: LensPrior | None = None
) -> tuple[Array, Array]:
    """Return log-likelihoods (k,) and k1 (k,), with the lens of the problem or, given a prior, the most likely lens."""
    assert found.model is not None and found.msac_scores is not None
    weights = found.rounds[-1].probabilities if found.rounds else (found.msac_scores > 0).astype(np.float32)
    if lens is not None and found.prior is not None:  # the posterior depends on the lens of the answer
        weights = np.sqrt(weights * found.prior)
    chosen = where(weights > tuning.min_weight)
    most = 1000 if lens is None else 400  # more matches hardly change the curve; fits with lenses are slower
    chosen = chosen[:: -(-len(chosen) // most) or 1]
    points, point_weights = problem.subset(chosen), weights[chosen].astype(float)
    scale, intrinsics = found.noise, problem.held_focal_prior(found.noise)
    options = RefineOptions(
        loss_scale=scale,
        max_steps=10,  # each focal length starts from the pose of its neighbour
        min_decrease=1e-5,
        intrinsics=intrinsics if lens is None else lens.add_to(intrinsics, found.noise),
    )
    costs, lenses = np.zeros(len(log_scales)), np.zeros(len(log_scales))
    nearest = int(np.argmin(np.abs(log_scales - log_scales_of(found.model).mean())))
    for way in (range(nearest, len(log_scales)), range(nearest - 1, -1, -1)):
        model, seen, k1 = found.model, points, (0.0, 0.0) if lens is None else lens.k1
        for k in way:
            model = model.copy()
            log_scales_of(model)[:] = log_scales[k]
            if lens is None:
                refined, cost = points.model_kernels.refine(model[None], points.correspondences, options, point_weights)
                model, costs[k] = refined[0], cost[0, 1]
            else:
                rays = seen.correspondences
                model, k1, (_, costs[k]) = refine_lens_pose(model, k1, rays, point_weights, lens.given, options)
                seen, lenses[k] = seen.through(k1), k1[0]
    return np.asarray((costs.min() - costs) / (2 * scale**2)), lenses
