"""Models fitted with the lenses of their cameras, of two views and of one: what `lens_evidence` compares."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np

from caransac.geometry import Array, symmetric_inverse
from caransac.kernels import (
    ABSOLUTE,
    ABSOLUTE_FOCAL_POSES,
    FOCAL_POSES,
    RELATIVE,
    ModelKernels,
    RefineOptions,
    lens_information,
    refine_lens_pose,
)
from caransac.kernels.degrees_of_freedom import OF_CAMERA
from caransac.robust.assess.uncertainty import camera_covariance
from caransac.robust.problems import Absolute, Problem
from caransac.robust.problems.base import log_scales_of
from caransac.robust.problems.lens_prior import LensPrior, slack_information, slack_prior
from caransac.robust.problems.relative import RelativePoseProblem
from caransac.tuning import CAMERAS, ERRORS

FIRST_STEPS, FIRST_DECREASE = 4, 1e-3  # of brief fits, which only need show where it leads
SomeViews = TypeVar("SomeViews", RelativePoseProblem, Absolute)


class LensFits(Protocol):
    """Fits of models (3, 6) with intrinsics and lenses to the points of a problem that is seen through its lenses."""

    model_kernels: ClassVar[ModelKernels]

    def unit(self, noise: float) -> float:
        """A noise as the median distance of points to a line, in which costs and priors are weighed in any problem."""

    def fit(
        self, model: Array, weights: Array, loss_scale: float, noise: float, *, held: bool, brief: bool
    ) -> tuple[Array, tuple[float, float], float]:
        """A model and its lenses, or the model only, refined on points of weights (n,); k1, and what it costs.

        A brief fit takes a few steps.
        """

    def covariance(self, model: Array, weights: Array, noise: float) -> Array:
        """Covariance (2, 2) of k1 by points of weights (n,), without what is known of the lenses."""


@dataclass(frozen=True, eq=False)
class _Fits(Generic[SomeViews]):
    problem: SomeViews

    @property
    def lenses(self) -> LensPrior:
        """What is known of the lenses."""
        lenses = self.problem.lens_prior
        assert lenses is not None
        return lenses

    def unit(self, noise: float) -> float:
        """See `LensFits.unit`."""
        return noise * (Problem.median_error / self.problem.median_error)

    def options(self, loss_scale: float, noise: float, held: bool, brief: bool) -> RefineOptions:
        """How a model is refined, with what is known of its intrinsics: exact ones have some slack."""
        unit, exact = self.unit(noise), self.problem.traits.exact_cameras
        prior = slack_prior(unit) if exact else self.problem.intrinsics_prior(noise)
        intrinsics = self.lenses.add_to(prior, unit, held=held)
        steps, decrease = (FIRST_STEPS, FIRST_DECREASE) if brief else (CAMERAS.fit_steps, CAMERAS.fit_min_decrease)
        return RefineOptions(loss_scale=loss_scale, max_steps=steps, min_decrease=decrease, intrinsics=intrinsics)


class TwoViewFits(_Fits[RelativePoseProblem]):
    """See `LensFits`: of the epipolar geometry of two views."""

    model_kernels: ClassVar[ModelKernels] = FOCAL_POSES

    def fit(
        self, model: Array, weights: Array, loss_scale: float, noise: float, *, held: bool, brief: bool
    ) -> tuple[Array, tuple[float, float], float]:
        """See `LensFits.fit`."""
        problem, lenses = self.problem, self.lenses
        options = self.options(loss_scale, noise, held, brief)
        model, k1, costs = refine_lens_pose(model, lenses.k1, problem.correspondences, weights, lenses.given, options)
        return model, k1, costs[1]

    def covariance(self, model: Array, weights: Array, noise: float) -> Array:
        """See `LensFits.covariance`."""
        information = lens_information(model, self.lenses.k1, self.problem.correspondences, weights)
        return camera_covariance(self.problem, information / (ERRORS.cameras * noise**2), with_lens_prior=False)[
            RELATIVE.lenses, RELATIVE.lenses
        ]


class OneViewFits(_Fits[Absolute]):
    """See `LensFits`: of the absolute pose of one camera; the second lens is none."""

    model_kernels: ClassVar[ModelKernels] = ABSOLUTE_FOCAL_POSES

    def fit(
        self,
        model: Array,
        weights: Array,
        loss_scale: float,
        noise: float,
        *,
        held: bool,
        brief: bool,  # noqa: ARG002  # of `LensFits`: a few steps do not reach a strong lens
    ) -> tuple[Array, tuple[float, float], float]:
        """See `LensFits.fit`: to the pixels, as the lens shows them."""
        problem = self.problem
        bent, points = problem.bent(model)
        options = self.options(loss_scale, noise, held, brief=False)
        refined, costs = ABSOLUTE_FOCAL_POSES.refine(bent[None], points, options, weights)
        model, k1 = problem.flat(refined[0])
        return model, (k1, 0.0), float(costs[0, 1])

    def covariance(self, model: Array, weights: Array, noise: float) -> Array:
        """See `LensFits.covariance`."""
        bent, points = self.problem.bent(model)
        information = ABSOLUTE_FOCAL_POSES.information(bent, points, weights) / (ERRORS.cameras * self.unit(noise) ** 2)
        known = slack_information() if self.problem.traits.exact_cameras else self.problem.camera_information
        camera, lens = ABSOLUTE.camera(), ABSOLUTE.lens()
        information[camera, camera] += np.diag(known[:OF_CAMERA])
        told = symmetric_inverse(information)[lens, lens]
        return np.diag([told * exp(-4 * log_scales_of(model)[0]), 0.0])


def lens_fits(problem: Problem) -> LensFits | None:
    """How models are fitted with the lenses of a problem; None where these are exact, or not looked at."""
    if problem.lens_prior is None:
        return None
    if problem.traits.degeneracy == "one view":
        return OneViewFits(cast("Absolute", problem))
    return TwoViewFits(cast("RelativePoseProblem", problem))
