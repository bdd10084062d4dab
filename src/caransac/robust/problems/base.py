"""What every estimation problem can do: the verbs that the loops know."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array, Floats
from caransac.kernels import (
    Correspondences,
    Indices,
    IntrinsicsPrior,
    ModelKernels,
    RefineOptions,
    change_lenses,
)
from caransac.robust.problems.lens_prior import LensPrior

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

Scalar = TypeVar("Scalar", bound=np.generic)
Real = TypeVar("Real", np.float32, np.float64)

SMALLEST_EXTENT = 1e-9
LARGEST_SLOPE = 1e6  # of a residual, beyond which a match is left out
HELD_FIXED = 1e12  # information about what is exact
USUAL_DISTORTION = 0.03  # deviation of the first radial coefficient k1 of an ordinary lens
DISTORTION_STEP = 1e-4  # of finite differences
RESPONDING = 512  # points that tell how lenses move a model, at most


class Problem(ABC):
    """Correspondences in coordinates of the order of one.

    Models are the rows of an array (m, *model_kernels.shape) whose meaning only the problem knows; the loops select and
    stack them like any array.

    Attributes:
        name: what the weights of its confidence are called in a weights file.
        weights: the weights file of the package that was trained for it.
        sample_size: points in a minimal sample.
        outcome_limit: an answer whose outcome (see `outcomes`) is farther from the truth is wrong.
        model_kernels: what can be done with its models.
        correspondences: the points, packed for the kernels.
        error_dimensions: of the error of a match: one for its distance to a line, two for that to a point.
        median_error: median distance of right matches whose keypoints have noise of deviation one.
        has_rotation: whether a model has a rotation.
        has_mean: whether models that agree are averaged: poses of exact cameras. Where focal lengths are free, these
            and the pose make up for each other along a curve, which the mean is not on.
        has_exact_cameras: whether its cameras were given as exact, which may be wrong; not where it has none.
        usual_focal: focal length of an ordinary camera in the unit of the points; 0 where lenses are not considered.
        by_score: share of the samples that are drawn by the scores of the matches alone, not by probability.
        pixel: size of a pixel in the unit of the points.
        usable: (N,) which points as given the problem has; None for all.
        lens_prior: of the lenses that its rays are seen through; None where they are exact.
    """

    name: ClassVar[str]
    weights: ClassVar[str] = "default"
    sample_size: ClassVar[int]
    outcome_limit: ClassVar[float] = math.radians(5)
    error_dimensions: ClassVar[int] = 1
    median_error: ClassVar[float] = 0.674
    has_rotation: ClassVar[bool] = False
    has_mean: ClassVar[bool] = False
    has_exact_cameras: ClassVar[bool] = False
    usual_focal: ClassVar[float] = 0.0
    by_score: ClassVar[float] = 0.0
    model_kernels: ModelKernels

    def __init__(
        self,
        correspondences: Correspondences,
        pixel: float = 1.0,
        usable: NDArray[np.bool_] | None = None,
        lens_prior: LensPrior | None = None,
    ) -> None:
        """The problem of the usable ones of the matches as given."""
        self.correspondences = correspondences
        self.pixel = pixel
        self.usable = usable
        self.lens_prior = lens_prior

    def subset(self, index: Indices) -> Self:
        """The same problem of some of its points only, in the given order; `spreads` stay those of all."""
        _ = self.extent
        chosen = self._copy()
        chosen.correspondences, chosen.usable = self.correspondences.subset(index), None
        return chosen

    def through(self, k1: tuple[float, float] | None) -> Self:
        """The same problem of what the pixels are through other lenses; None for those it is seen through."""
        if self.lens_prior is None or k1 is None or k1 == self.lens_prior.k1:
            return self
        _ = self.extent  # of the cameras as given, so that lengths mean the same
        seen = self._copy()
        seen.correspondences = change_lenses(self.correspondences, self.lens_prior.k1, k1)
        seen.lens_prior = replace(self.lens_prior, k1=k1)
        return seen

    def _copy(self) -> Self:
        """The same, to be changed: copy.copy takes four times as long."""
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__)
        return same

    @cached_property
    def spreads(self) -> Array:
        """(2, 3) of either image the centre of its points, and the spread around it: see `pack`."""
        return self.correspondences.spreads()

    @cached_property
    def extent(self) -> float:
        """Root mean square distance from the middle of points all over the images, whatever a few absurd ones do."""
        return max(float(self.spreads[0, 2] + self.spreads[1, 2]) / 2, SMALLEST_EXTENT) if self.num_points else 1.0

    def share(self, weights: NDArray[Real]) -> NDArray[Real]:
        """Weights (n,) of matches where those of one keypoint count for one match together, at most."""
        return weights

    @property
    def num_points(self) -> int:
        """Number of correspondences."""
        return len(self.correspondences)

    @property
    def points1(self) -> Array:
        """(n, 2) points in image 1: a copy."""
        return self.correspondences.points1

    @property
    def points2(self) -> Array:
        """(n, 2) points in image 2: a copy."""
        return self.correspondences.points2

    def restrict(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Values (N, ...) of the points as given as those of the problem's points: (n, ...)."""
        return values if self.usable is None else values[self.usable]

    def spread(self, values: NDArray[Scalar], fill: float = 0.0) -> NDArray[Scalar]:
        """Values (..., n) of the problem's points as those of the points as given, `fill` for the others: (..., N)."""
        if self.usable is None:
            return values
        spread: NDArray[Any] = np.full((*values.shape[:-1], len(self.usable)), fill, values.dtype)
        spread[..., self.usable] = values
        return spread

    @abstractmethod
    def solve(self, samples: Indices) -> Array:
        """Models (m, ...) through minimal samples (S, sample_size); degenerate samples give none."""

    @abstractmethod
    def public(self, models: Array) -> Array:
        """Models (m, ...) as users see them: poses, or matrices of pixels."""

    @abstractmethod
    def from_public(self, model: Array) -> Array:
        """The model (...) that users see so: the inverse of `public` for one."""

    @abstractmethod
    def outcomes(self, models: Array) -> Array:
        """What of models (m, ...) must be right, up to the sign, (m, k), and what `confidence` is about.

        Of epipolar geometry the direction from camera to camera, of length one: the hardest part to find.
        """

    def intrinsics_prior(
        self,
        noise: float,  # noqa: ARG002  # these are for problems that have intrinsics
        model: Array | None = None,  # noqa: ARG002  # likewise
        weights: Array | None = None,  # noqa: ARG002  # likewise
    ) -> IntrinsicsPrior:
        """What refinement adds to the cost for intrinsics other than given.

        Args:
            noise: median distance of right matches.
            model: what is refined, or None for many models that are refined again later.
            weights: (n,) of the points.
        """
        return IntrinsicsPrior()

    def prior_weight(
        self,
        noise: float,  # noqa: ARG002  # as above
        model: Array,  # noqa: ARG002  # likewise
        weights: Array,  # noqa: ARG002  # likewise
    ) -> float:
        """What `prior_information` counts for in the cost of the weighted refinement: arguments as above."""
        return 0.0

    @property
    def confidence_name(self) -> str:
        """What the fit of its confidence is called in a weights file."""
        return self.name

    @property
    def free_parameters(self) -> dict[str, int]:
        """Degrees of freedom beyond a pose that were estimated with it, by name: their index."""
        return {}

    @property
    def no_models(self) -> Array:
        """(0, ...) an empty array of models."""
        return np.empty((0, *self.model_kernels.shape))

    def best(self, models: Array, k: int, max_error: float) -> Array:
        """The k models with the largest total consensus, largest first: (min(k, m), ...)."""
        return models[self.model_kernels.top(models, self.correspondences, max_error, k)]

    def msac_scores(self, models: Array, max_error: float) -> Floats:
        """MSAC scores (m, n) of models (m, ...); a point behind a camera scores 0."""
        return self.model_kernels.msac_scores(models, self.correspondences, max_error)

    def distances(self, model: Array) -> Array:
        """Sampson distances (n,) of all points to a model."""
        return np.asarray(np.sqrt(self.model_kernels.residuals_sq(model[None], self.correspondences)[0]))

    def right_matches(self, model: Array, near: float) -> tuple[float, float]:
        """How many points within `near` of a model are more than wrong ones would be, and their median distance."""
        return self.model_kernels.right_matches(model, self.correspondences, near, self.error_dimensions)

    def inliers(self, model: Array, max_error: float) -> NDArray[np.bool_]:
        """Which points (n,) support a model."""
        return np.asarray(self.msac_scores(model[None], max_error)[0] > 0)

    def refine(self, models: Array, options: RefineOptions, weights: Array | None = None) -> Array:
        """Models (m, ...) refined on all points, with weights (n,) or all alike."""
        return self.model_kernels.refine(models, self.correspondences, options, weights)[0]

    def jacobian(self, model: Array) -> tuple[Array, Array]:
        """Signed Sampson distances (n,) of a model and their derivatives (n, f) along `retract`."""
        return self.model_kernels.jacobian(model, self.correspondences)

    def information(self, model: Array, weights: Array, noise: float) -> Array:
        """Information (f, f) about a model's degrees of freedom in points of weights (n,) and a noise."""
        information = self.model_kernels.information(model, self.correspondences, weights)
        return with_prior(information / noise**2, self.prior_information)

    @property
    def prior_information(self) -> Array:
        """Information (f, f) that does not come from the points; infinity on the diagonal holds a number fixed."""
        return np.zeros((self.model_kernels.degrees_of_freedom,) * 2)

    def outcome_deviations(
        self, model: Array, weights: Array, noise: float, rates: Array, dropped: int
    ) -> tuple[float, float]:
        """Largest deviation of a model's outcome from points of weights (n,), and that without `dropped` of them.

        Those are the points of the largest influence, which may agree by chance; of homographies none are dropped.

        Args:
            model: the model.
            weights: (n,) of the points it was fitted to.
            noise: median distance of right matches.
            rates: (f, k) how the outcome moves with each of the model's degrees of freedom.
            dropped: how many.
        """
        prior = self.prior_information
        return self.model_kernels.outcome_deviations(
            model, self.correspondences, weights, rates, noise**2, prior, dropped
        )

    def lens_response(self, model: Array, weights: Array, noise: float) -> Array | None:
        """How a model's degrees of freedom move with the radial distortion k1 of both lenses: (f,) to first order.

        None where lenses are not considered.

        Args:
            model: the model.
            weights: (n,) of the points it was fitted to.
            noise: median distance of right matches.
        """
        if not self.usual_focal or not self.num_points:
            return None
        if self.num_points > RESPONDING:
            some = np.linspace(0, self.num_points - 1, RESPONDING).astype(np.int32)
            return self.subset(some).lens_response(model, weights[some] * (self.num_points / RESPONDING), noise)
        bent, prior = self.bent_by(DISTORTION_STEP).correspondences, self.prior_information
        response = self.model_kernels.response(model, self.correspondences, bent, weights, noise**2, prior)
        return response / DISTORTION_STEP

    def bent_by(self, k1: float) -> Self:
        """The same problem of points as lenses with this radial distortion show them, where lenses are considered."""
        bent, own = self._copy(), k1 / self.usual_focal**2  # in the unit of the points
        bent.correspondences = change_lenses(self.correspondences, (own, own), (0.0, 0.0))
        return bent

    def retract(self, model: Array, steps: Array) -> Array:
        """The model small steps (..., f) along the degrees of freedom away: (..., *model_kernels.shape)."""
        return self.model_kernels.retract(model, steps)


def with_prior(information: Array, prior: Array) -> Array:
    """Information (f, f) from points and from a prior, of which infinity on the diagonal holds a number fixed."""
    fixed = np.isinf(np.diag(prior))
    information[fixed] = information[:, fixed] = 0.0
    return np.asarray(information + np.minimum(prior, HELD_FIXED))


def not_steep(slopes: Array) -> NDArray[np.bool_]:
    """Which residuals (n,) have slopes (n, ...) that can be relied on."""
    rows = slopes.reshape(len(slopes), -1)
    return np.asarray(np.einsum("nf,nf->n", rows, rows) < LARGEST_SLOPE**2)


def with_intrinsics(model: Array) -> Array:
    """A pose (3, 4), or one with intrinsics (3, 6), as the latter."""
    return model if model.shape[1] == 6 else np.concatenate([model, np.zeros((3, 2))], axis=1)


def intrinsics_of(model: Array, camera: int) -> Array:
    """The intrinsics (log_scale, x, y) of one camera of a model (3, 6) of `FOCAL_POSES`."""
    return model[:, 4 + camera]


def log_scales_of(model: Array) -> Array:
    """Of a model (3, 6) of `FOCAL_POSES`, the log_scale (2,) of both cameras: a view."""
    return model[0, 4:]
