"""Kinds of models, and the compiled functions that all kinds share."""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from caransac import _native
from caransac._native import Correspondences, RefineOptions, Regions
from caransac.geometry import Array, Floats

Indices = NDArray[np.int32]


class ModelKernels(Protocol):
    """Operations on one kind of model, implemented by a compiled class.

    Attributes:
        columns: number of columns of a model, which has three rows.
        degrees_of_freedom: number of degrees of freedom of a model.
    """

    columns: int
    degrees_of_freedom: int

    def residuals_sq(self, models: Array, correspondences: Correspondences) -> Array:
        """Return squared Sampson distances, symmetric transfer errors or reprojection errors of all points: (m, n)."""

    def msac_scores(self, models: Array, correspondences: Correspondences, max_error: float) -> Floats:
        """Return the MSAC scores ``1 - min(r, T^2) / T^2`` of all points for all models: (m, n).

        The score is 0 if r is not defined and, for poses, if the point is behind a camera.
        """

    def spread_consensus(
        self, models: Array, correspondences: Correspondences, max_error: float, regions: Regions
    ) -> Array:
        """Return a consensus (m,) that rewards evidence that is spread over the images.

        Each image has a grid of 16 x 16 cells. The consensus is the sum, over all cells, of the square root of the
        total MSAC score in the cell. The regions define the weights of the scores.
        """

    def top(self, models: Array, correspondences: Correspondences, max_error: float, k: int) -> Indices:
        """Return the indices (min(k, m),) of the models with the largest total MSAC consensus, largest first.

        The result is the same as if all models were scored completely, except for cheirality. Models that cannot be
        among the k best are abandoned early.
        """

    def promising(
        self, models: Array, correspondences: Correspondences, max_error: float, count: int, options: RefineOptions
    ) -> Array:
        """Return the `count` best models of `top`, refined on the same points: (m, ...) -> (k, ...)."""

    def most_distinct(
        self,
        models: Array,
        correspondences: Correspondences,
        max_error: float,
        regions: Regions,
        count: int,
        same: float,
    ) -> Array:
        """Return up to `count` models with the largest `spread_consensus`, largest first: (m, ...) -> (k, ...).

        If the scores of two models have a cosine of `same` or more, only the better model is returned.
        """

    def mean_of_agreeing(
        self,
        models: Array,
        correspondences: Correspondences,
        max_error: float,
        regions: Regions,
        reach: float,
        exponent: float,
    ) -> Array:
        """Return the mean (3, 4) of the poses (m, 3, 4) whose translation is within `reach` radians of the first.

        The weight of a pose is its `spread_consensus` to the power `exponent`. If all weights are zero, the first pose
        is returned. Only relative poses with exact cameras have a mean.
        """

    def right_matches(
        self, model: Array, correspondences: Correspondences, near: float, dimensions: int
    ) -> tuple[float, float]:
        """Return the number of right matches within `near` of a model, and their median distance.

        It assumes that wrong matches are equally frequent at any distance (in two dimensions, per area), and that right
        matches are closer than half of `near`. Without right matches the result is 0 and `near`.
        """

    def refine(
        self, models: Array, correspondences: Correspondences, options: RefineOptions, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """Refine models (m, ...) by Levenberg-Marquardt on their robust cost, with weights (n,) of the points.

        Return the models and their cost (m, 2) before and after. The cost never increases.
        """

    def information(self, model: Array, correspondences: Correspondences, weights: Array) -> Array:
        """Return ``J^T W J`` of `jacobian` with weights (n,): the information (f, f) of the points at unit noise."""

    def outcome_deviations(
        self,
        model: Array,
        correspondences: Correspondences,
        weights: Array,
        rates: Array,
        variance: float,
        prior: Array,
        dropped: int,
    ) -> tuple[float, float]:
        """Return the largest standard deviation of the outcome, with all points and without the influential points.

        Args:
            model: the model.
            correspondences: points that the model was fitted to.
            weights: (n,) weights of the points, not negative.
            rates: (f, k) derivatives of the outcome with respect to each degree of freedom.
            variance: variance of the residuals.
            prior: (f, f) prior information. Infinity on the diagonal fixes a degree of freedom.
            dropped: number of the most influential points to leave out, as they may agree by chance. Homographies drop
                no points.
        """

    def jacobian(self, model: Array, correspondences: Correspondences) -> tuple[Array, Array]:
        """Return signed Sampson distances (n,) and their derivatives (n, f) along `retract`.

        For absolute poses, return differences in the image (n, 2) and their derivatives (n, 2, f). Homographies have no
        Jacobian.
        """

    def response(
        self,
        model: Array,
        correspondences: Correspondences,
        moved: Correspondences,
        weights: Array,
        variance: float,
        prior: Array,
    ) -> Array:
        """Return the first-order change (f,) of the degrees of freedom of a model if its points move.

        Only for relative poses and fundamental matrices. The arguments are those of `outcome_deviations`. Matches with
        huge derivatives, or without a residual after the move, are ignored.
        """

    def retract(self, model: Array, steps: Array) -> Array:
        """Return the models (..., 3, columns) after small steps (..., f) along the degrees of freedom."""


def _kind(compiled: object) -> ModelKernels:
    """Return a compiled class as a `ModelKernels` for type checkers."""
    return cast(ModelKernels, compiled)


# [R | t] on SO(3) x S^2: three numbers for the rotation, two for the translation on its sphere.
POSES = _kind(_native.Poses)
# [R | t | a1 | a2] with the intrinsics (log_scale, x, y) of each camera, relative to the camera that normalised the
# points: the numbers of the pose, then three numbers for each camera.
FOCAL_POSES = _kind(_native.FocalPoses)
# [R | t] for rays in Lambert's azimuthal projection; residuals are angles in radians.
RAY_POSES = _kind(_native.RayPoses)
# F on the manifold of matrices of rank two, up to scale; a refined F has Frobenius norm one.
FUNDAMENTALS = _kind(_native.Fundamentals)
# [R | t] of x = R X + t for 3D points X: three numbers for the rotation, three for the translation.
ABSOLUTE_POSES = _kind(_native.AbsolutePoses)
# [R | t | a | b] with the intrinsics a = (log_scale, x, y) and b = (k1, 0, 0) of the camera, relative to the camera
# that normalised the points: the numbers of the pose, then four numbers.
ABSOLUTE_FOCAL_POSES = _kind(_native.AbsoluteFocalPoses)
# H with x2 ~ H x1, of Frobenius norm one, positive in front of the cameras; residuals are symmetric transfer errors.
HOMOGRAPHIES = _kind(_native.Homographies)

positive_depths = _native.Poses.positive_depths
plane_poses = _native.Homographies.plane_poses


def where(mask: NDArray[np.bool_]) -> Indices:
    """Return the indices (k,) of the true entries of a mask (n,), ascending."""
    return mask.nonzero()[0].astype(np.int32)
