"""What the matches of one pair say about the focal length and the lens of its camera."""

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

PROFILE_STEPS, PROFILE_DECREASE = 10, 1e-5  # each focal length starts from the pose of its neighbour
MOST_POINTS = 1000  # more say hardly more, at the same noise
MOST_WITH_LENS = 400  # which take longer


class CameraProfile(NamedTuple):
    """What a pair says about the camera of both of its images.

    Attributes:
        focals: (k,) log-likelihoods of focal lengths, without any prior, the largest being 0, with the lens as given.
        bent_focals: the same, each with the lens that suits it best; None where the lens is exact.
        k1: (k,) of these lenses, of rays at the focal length that was assumed.
        k1_deviation: of these, by the matches alone.
    """

    focals: Array
    bent_focals: Array | None = None
    k1: Array | None = None
    k1_deviation: float = 0.0


def camera_profile(problem: FocalPose, found: Estimate, log_scales: Array, tuning: Tuning) -> CameraProfile:
    """Log-likelihood of focal lengths, of each with the pose, the principal points and the lens that suit it best.

    The curve keeps what a mean and a deviation would lose: pairs of little depth or rotation have several minima, or
    none on one side.

    Args:
        problem: a pair of images of one camera.
        found: its estimate, with an answer.
        log_scales: (k,) focal lengths as logarithms of their ratio to the camera as given, rising.
        tuning: see `Tuning`.
    """
    lens = problem.lens_prior
    flat = _profile(problem if lens is None else problem.through(lens.given), found, log_scales, tuning)[0]
    if lens is None or found.lenses is None:
        return CameraProfile(flat)
    return CameraProfile(flat, *_profile(problem, found, log_scales, tuning, lens=lens), found.lenses.deviations[0])


def _profile(
    problem: FocalPose, found: Estimate, log_scales: Array, tuning: Tuning, *, lens: LensPrior | None = None
) -> tuple[Array, Array]:
    """Log-likelihoods (k,), with the lens as it is or, of an uncertain one, as suits best; and k1 (k,) of these."""
    assert found.model is not None and found.msac_scores is not None
    weights = found.rounds[-1].probabilities if found.rounds else (found.msac_scores > 0).astype(np.float32)
    if lens is not None and found.prior is not None:  # what the lens of the answer has not coloured counts as much
        weights = np.sqrt(weights * found.prior)
    chosen = where(weights > tuning.min_weight)
    chosen = chosen[:: -(-len(chosen) // (MOST_POINTS if lens is None else MOST_WITH_LENS)) or 1]
    points, point_weights = problem.subset(chosen), weights[chosen].astype(float)
    scale, intrinsics = found.noise, problem.held_focal_prior(found.noise)
    options = RefineOptions(
        loss_scale=scale,
        max_steps=PROFILE_STEPS,
        min_decrease=PROFILE_DECREASE,
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
