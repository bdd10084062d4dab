"""The interface of an estimation problem: the operations that the loop and the assessment use."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from caransac._support.computed_once import computed_once
from caransac.geometry import Array, Floats
from caransac.kernels import Correspondences, Indices, IntrinsicsPrior, ModelKernels, RefineOptions, change_lenses
from caransac.robust.problems.lens_prior import LensPrior

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

Real = TypeVar("Real", np.float32, np.float64)


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Properties of a problem that control the loop and the assessment. None switches an assessment off.

    Attributes:
        confidence: name of the fit of the confidence in a weights file.
        degeneracy: name of the test for scenes that do not determine the answer: "two views" (planes and rotations of
            calibrated views), "uncalibrated" (planes of uncalibrated views) or "one view" (flat scenes of absolute
            poses).
        uncertainty: whether the covariance of the pose is assessed with the answer.
        exact_cameras: whether cameras were given as exact. The matches may contradict them.
        usual_focal: focal length of an ordinary camera in the unit of the points, at which the effect of unknown lens
            distortion is assessed.
        has_mean: whether models that agree are averaged. Free focal lengths and the pose compensate each other along a
            curve that contains no mean, so only poses of exact cameras are averaged.
        weighted: whether the best model is refined with the probabilities of matches as weights. For homographies it is
            not, because a right match need not be on the plane: the inliers have equal weights.
        by_score: share of the samples that are drawn by the scores of the matches instead of their probabilities.
    """

    confidence: str | None
    degeneracy: Literal["one view", "two views", "uncalibrated"] | None = None
    uncertainty: bool = False
    exact_cameras: bool = False
    usual_focal: float | None = None
    has_mean: bool = False
    weighted: bool = True
    by_score: float = 0.0


class Problem(ABC):
    """An estimation problem: normalised correspondences and the model operations that the loop needs.

    Models are the rows of an array (m, 3, columns). Only the problem knows their meaning; the loops select
    and stack them like any array.

    Attributes:
        weights: name of the packaged weights that were trained for the problem.
        sample_size: number of points in a minimal sample.
        num_images: number of images; one for absolute poses.
        outcome_limit: distance of the outcome (see `outcomes`) from the truth beyond which an answer is wrong.
        error_dimensions: dimensions of the error of a match: one for a distance to a line, two for a distance to a
            point.
        median_error: median distance of right matches if the noise of keypoints has a standard deviation of one.
        traits: see `Traits`.
        model_kernels: compiled operations on its kind of model.
        correspondences: the points, packed for the kernels.
        pixel: size of a pixel in the unit of the points.
        usable: (N,) mask of the given matches that the problem uses; None for all.
        lens_prior: prior of the distortion of the lenses; None if they are exact.
        initial: model that the first round tries in addition to the sampled ones, or None.
        precision: (n,) relative precision of the matches, from 0 to 1; None if all are equal.
    """

    weights: ClassVar[str] = "default"
    sample_size: ClassVar[int]
    num_images: ClassVar[int] = 2
    outcome_limit: ClassVar[float] = math.radians(5)
    error_dimensions: ClassVar[int] = 1
    median_error: ClassVar[float] = 0.674
    traits: Traits
    model_kernels: ModelKernels
    initial: Array | None = None
    precision: Array | None = None

    def __init__(
        self,
        correspondences: Correspondences,
        pixel: float = 1.0,
        usable: NDArray[np.bool_] | None = None,
        lens_prior: LensPrior | None = None,
    ) -> None:
        """Make the problem from the usable matches."""
        self.correspondences = correspondences
        self.pixel = pixel
        self.usable = usable
        self.lens_prior = lens_prior

    @abstractmethod
    def solve(self, samples: Indices) -> Array:
        """Solve minimal samples (S, sample_size) for models (m, ...); degenerate samples give no model."""

    @abstractmethod
    def public(self, models: Array) -> Array:
        """Convert models (m, ...) to the user's convention: poses, or matrices for pixels."""

    @abstractmethod
    def from_public(self, model: Array) -> Array:
        """Convert a pose or matrix in the user's convention to a model: the inverse of `public` for one model."""

    def starting_from(self, model: Array | None) -> Self:
        """Return the problem with an initial model in the user's convention, if there is one."""
        return self if model is None else self.with_changes(initial=self.from_public(model))

    @abstractmethod
    def outcomes(self, models: Array) -> Array:
        """Return the quantity (m, k) that the confidence refers to, up to its sign.

        For epipolar geometry, that is the unit vector from camera to camera: the hardest part to estimate.
        """

    def msac_scores(self, models: Array, max_error: float) -> Floats:
        """Return the MSAC scores (m, n) of models (m, ...); a point behind a camera scores 0."""
        return self.model_kernels.msac_scores(models, self.correspondences, max_error)

    def inliers(self, model: Array, max_error: float) -> NDArray[np.bool_]:
        """Return the mask (n,) of the points that support a model."""
        return np.asarray(self.msac_scores(model[None], max_error)[0] > 0)

    def distances(self, model: Array) -> Array:
        """Return the distances (n,) of all points to a model."""
        return np.asarray(np.sqrt(self.model_kernels.residuals_sq(model[None], self.correspondences)[0]))

    def refine(self, models: Array, options: RefineOptions, weights: Array | None = None) -> Array:
        """Refine models (m, ...) on all points, with weights (n,) or equal ones."""
        return self.model_kernels.refine(models, self.correspondences, options, weights)[0]

    def subset(self, index: Indices) -> Self:
        """Return the subproblem of the points at `index`, in this order. It keeps the `spreads` of all points."""
        _ = self.extent
        precision = None if self.precision is None else self.precision[index]
        return self.with_changes(correspondences=self.correspondences.subset(index), usable=None, precision=precision)

    def through(self, k1: tuple[float, float] | None) -> Self:
        """Return the problem with its points undistorted with another k1 of each lens; None keeps the current k1."""
        if self.lens_prior is None or k1 is None or k1 == self.lens_prior.k1:
            return self
        _ = self.extent  # lengths keep the unit of the given cameras
        seen = change_lenses(self.correspondences, self.lens_prior.k1, k1)
        return self.with_changes(correspondences=seen, lens_prior=replace(self.lens_prior, k1=k1))

    def with_changes(self, **attributes: object) -> Self:
        """Return a shallow copy with other attributes; copy.copy is four times slower."""
        changed = object.__new__(type(self))
        changed.__dict__.update(self.__dict__)
        changed.__dict__.update(attributes)
        return changed

    @property
    @computed_once
    def spreads(self) -> Array:
        """(2, 3) centre and spread of the points in each image: see `kernels.pack`."""
        return self.correspondences.spreads()

    @property
    @computed_once
    def extent(self) -> float:
        """Root mean square distance of the points of an image from their centre, robust to a few extreme outliers."""
        if self.num_points == 0:
            return 1.0
        return max(float(self.spreads[: self.num_images, 2].mean()), 1e-9)  # positive, as lengths are divided by it

    @property
    def no_models(self) -> Array:
        """(0, ...) empty array of models."""
        return np.empty((0, 3, self.model_kernels.columns))

    @property
    def num_points(self) -> int:
        """Number of correspondences."""
        return len(self.correspondences)

    @property
    def points1(self) -> Array:
        """(n, 2) copy of the points in image 1."""
        return self.correspondences.points1

    @property
    def points2(self) -> Array:
        """(n, 2) copy of the points in image 2."""
        return self.correspondences.points2

    def share(self, weights: NDArray[Real]) -> NDArray[Real]:
        """Reduce weights (n,) by the precision, and so that the matches of one keypoint count as one match at most."""
        return weights if self.precision is None else weights * self.precision.astype(weights.dtype)

    def intrinsics_prior(
        self,
        noise: float,  # noqa: ARG002  # for problems that have intrinsics
        model: Array | None = None,  # noqa: ARG002  # likewise
        weights: Array | None = None,  # noqa: ARG002  # likewise
    ) -> IntrinsicsPrior:
        """Return the cost that refinement adds for intrinsics that differ from the given ones.

        Args:
            noise: median distance of right matches.
            model: the model to refine; None if many models are refined for comparison.
            weights: (n,) weights of the points.
        """
        return IntrinsicsPrior()

    @property
    def prior_information(self) -> Array:
        """Information (f, f) of the prior; infinity on the diagonal fixes a parameter."""
        return np.zeros((self.model_kernels.degrees_of_freedom,) * 2)

    def prior_weight(
        self,
        noise: float,  # noqa: ARG002  # as above
        model: Array,  # noqa: ARG002  # likewise
        weights: Array,  # noqa: ARG002  # likewise
    ) -> float:
        """Return the weight of `prior_information` in the cost of the weighted refinement."""
        return 0.0


def posterior_information(information: Array, prior: Array) -> Array:
    """Return the sum of information and prior information (f, f). Infinity on the diagonal fixes a parameter."""
    fixed = np.isinf(np.diag(prior))
    information[fixed] = information[:, fixed] = 0.0
    return np.asarray(information + np.minimum(prior, 1e12))


def with_intrinsics(model: Array) -> Array:
    """Return a pose (3, 4) with zero intrinsics appended, (3, 6). A model (3, 6) is returned unchanged."""
    return model if model.shape[1] == 6 else np.concatenate([model, np.zeros((3, 2))], axis=1)


def intrinsics_of(model: Array, camera: int) -> Array:
    """Return the intrinsics (log_scale, x, y) of one camera of a model (3, 6) of `FOCAL_POSES`."""
    return model[:, 4 + camera]


def log_scales_of(model: Array) -> Array:
    """Return a view (2,) of the log_scale of both cameras of a model (3, 6) of `FOCAL_POSES`."""
    return model[0, 4:]


def count_distinct(rows: Array) -> int:
    """Return the number of distinct rows (n, k), k at most 6."""
    # Equal rows have equal products with these irrational numbers, other rows hardly ever.
    keys = np.sort(rows @ np.sqrt([2, 3, 5, 7, 11, 13])[: rows.shape[1]])
    return min(len(keys), 1) + int(np.count_nonzero(keys[1:] != keys[:-1]))
