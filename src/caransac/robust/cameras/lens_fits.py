"""Models fitted together with the lenses of their cameras, for two views and for one."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf
from typing import cast

import numpy as np

from caransac.geometry import Array, symmetric_inverse
from caransac.kernels import (
    ABSOLUTE,
    ABSOLUTE_FOCAL_POSES,
    FOCAL_POSES,
    RELATIVE,
    RefineOptions,
    lens_information,
    refine_lens_pose,
)
from caransac.kernels.degrees_of_freedom import OF_CAMERA
from caransac.robust.assess.uncertainty import camera_covariance
from caransac.robust.problems import Absolute, Problem, with_intrinsics
from caransac.robust.problems.base import log_scales_of
from caransac.robust.problems.lens_prior import LensPrior, slack_information, slack_prior
from caransac.tuning import CAMERAS, ERRORS


@dataclass(frozen=True, eq=False)
class LensFit:
    """A model with intrinsics and lenses that was fitted to a problem.

    Attributes:
        model: (3, 6) pose and intrinsics.
        problem: the matches, undistorted with the lenses of the fit.
        cost: cost of the fit; infinity before the first fit.
    """

    model: Array
    problem: Problem
    cost: float = inf

    @property
    def lenses(self) -> LensPrior:
        """The prior of the lenses, and k1 of the fit."""
        assert self.problem.lens_prior is not None
        return self.problem.lens_prior

    @property
    def one_view(self) -> Absolute | None:
        """The problem if it is the absolute pose of one camera."""
        return cast("Absolute", self.problem) if self.problem.num_images == 1 else None


def start_fit(model: Array, problem: Problem) -> LensFit:
    """Return a model (3, 4) or (3, 6) of a problem as the start of fits with lenses."""
    kernels = ABSOLUTE_FOCAL_POSES if problem.num_images == 1 else FOCAL_POSES
    return LensFit(with_intrinsics(model), problem.with_changes(model_kernels=kernels))


def line_noise(problem: Problem, noise: float) -> float:
    """Convert a noise to the median distance of points to a line, which is the unit of costs and priors."""
    return noise * (Problem.median_error / problem.median_error)


def refit(
    start: LensFit, weights: Array, loss_scale: float, noise: float, *, held: bool = False, brief: bool = False
) -> LensFit:
    """Refine a fit on matches with weights (n,) by a Cauchy loss.

    Args:
        start: initial fit.
        weights: (n,) weights of the matches.
        loss_scale: scale of the loss.
        noise: median distance of right matches.
        held: whether the lenses are fixed.
        brief: whether to take only a few steps, which show the trend. Absolute poses ignore it, because a few steps do
            not reach strong distortion.
    """
    problem, lenses, one_view = start.problem, start.lenses, start.one_view
    unit = line_noise(problem, noise)
    prior = slack_prior(unit) if problem.traits.exact_cameras else problem.intrinsics_prior(noise)
    brief = brief and one_view is None
    options = RefineOptions(
        loss_scale=loss_scale,
        max_steps=4 if brief else CAMERAS.fit_steps,
        min_decrease=1e-3 if brief else CAMERAS.fit_min_decrease,
        intrinsics=lenses.add_to(prior, unit, held=held),
    )
    if one_view is None:
        points = problem.correspondences
        model, k1, costs = refine_lens_pose(start.model, lenses.k1, points, weights, lenses.given, options)
        return LensFit(model, problem.through(k1), costs[1])
    bent, points = one_view.bent(start.model)
    refined, all_costs = ABSOLUTE_FOCAL_POSES.refine(bent[None], points, options, weights)
    model, own_k1 = one_view.flat(refined[0])
    return LensFit(model, problem.through((own_k1, 0.0)), float(all_costs[0, 1]))


def lens_covariance(fit: LensFit, weights: Array, noise: float) -> Array:
    """Return the covariance (2, 2) of k1 from matches with weights (n,), without the prior of the lenses."""
    one_view = fit.one_view
    if one_view is None:
        information = lens_information(fit.model, fit.lenses.k1, fit.problem.correspondences, weights)
        information /= ERRORS.cameras * noise**2
        covariance = camera_covariance(fit.problem, information, with_lens_prior=False)
        return covariance[RELATIVE.lenses, RELATIVE.lenses]
    information = ABSOLUTE_FOCAL_POSES.information(*one_view.bent(fit.model), weights)
    information /= ERRORS.cameras * line_noise(one_view, noise) ** 2
    known = slack_information() if one_view.traits.exact_cameras else one_view.camera_information
    camera, lens = ABSOLUTE.camera(), ABSOLUTE.lens()
    information[camera, camera] += np.diag(known[:OF_CAMERA])
    variance = symmetric_inverse(information)[lens, lens]
    return np.diag([variance * exp(-4 * log_scales_of(fit.model)[0]), 0.0])
