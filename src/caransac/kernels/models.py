"""Kinds of models: the compiled verbs that all kinds share."""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from caransac import _native
from caransac._native import Correspondences, RefineOptions, Regions
from caransac.geometry import Array, Floats

Indices = NDArray[np.int32]


class ModelKernels(Protocol):
    """The verbs of one kind of model: all are functions of the compiled class.

    Attributes:
        columns: columns of one model, which has three rows.
        degrees_of_freedom: degrees of freedom of one model.
    """

    columns: int
    degrees_of_freedom: int

    def residuals_sq(self, models: Array, correspondences: Correspondences) -> Array:
        """Return squared Sampson distances, symmetric transfer errors or reprojection errors of all points: (m, n)."""

    def msac_scores(self, models: Array, correspondences: Correspondences, max_error: float) -> Floats:
        """Return the MSAC scores ``1 - min(r, T^2) / T^2`` of all points for all models: (m, n).

        0 where r is not defined and, for poses, for a point behind a camera.
        """

    def spread_consensus(
        self, models: Array, correspondences: Correspondences, max_error: float, regions: Regions
    ) -> Array:
        """Return the consensus (m,) that prefers evidence all over the images to a cluster of it.

        The sum, over the cells of a 16 x 16 grid on each image, of the square root of the total MSAC score in the cell,
        with scores weighted as the regions say.
        """

    def top(self, models: Array, correspondences: Correspondences, max_error: float, k: int) -> Indices:
        """Return the indices (min(k, m),) of the models with the largest total MSAC consensus, largest first.

        The result is that of scoring all of them, except for cheirality; models that cannot reach the k best are
        abandoned half-way.
        """

    def promising(
        self, models: Array, correspondences: Correspondences, max_error: float, count: int, options: RefineOptions
    ) -> Array:
        """Return the `count` `top` models (m, ...), refined on the same points: (k, ...)."""

    def most_distinct(
        self,
        models: Array,
        correspondences: Correspondences,
        max_error: float,
        regions: Regions,
        count: int,
        same: float,
    ) -> Array:
        """Return up to `count` models of the largest `spread_consensus`, largest first: (m, ...) -> (k, ...).

        Of two models whose scores have a cosine of `same` or more, only the better one is returned.
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
        """Return the mean (3, 4) of the poses (m, 3, 4) whose translation is closer than `reach` to that of the first.

        The weight of a pose is its `spread_consensus` to the power `exponent`; if none has any, the first pose is
        returned. Only relative poses with exact cameras have a mean.
        """

    def right_matches(
        self, model: Array, correspondences: Correspondences, near: float, dimensions: int
    ) -> tuple[float, float]:
        """Return the number of right matches within `near` of a model, and their median distance.

        Wrong matches are equally frequent at any distance (in one dimension; in two, the area grows with the square),
        right ones are closer than half of `near`. Without right matches the result is 0 and `near`.
        """

    def refine(
        self, models: Array, correspondences: Correspondences, options: RefineOptions, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """Refine models (m, ...) by Levenberg-Marquardt on their robust cost, with weights (n,) of the points.

        Returns the models, and the cost (m, 2) before and after, which never rises.
        """

    def information(self, model: Array, correspondences: Correspondences, weights: Array) -> Array:
        """Return ``J^T W J`` of `jacobian` with weights (n,): the information of the points (f, f) at noise one."""

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
        """Return the largest standard deviation of the outcome, also without some influential points.

        Args:
            model: the model.
            correspondences: the points that it was fitted to.
            weights: (n,) their weights, not negative.
            rates: (f, k) how the outcome moves with each degree of freedom.
            variance: variance of the residuals.
            prior: (f, f) information that does not come from the points; infinity on the diagonal fixes a number.
            dropped: number of the most influential points, which may agree by chance; homographies drop none.
        """

    def jacobian(self, model: Array, correspondences: Correspondences) -> tuple[Array, Array]:
        """Return signed Sampson distances (n,) and their derivatives (n, f) along `retract`.

        For absolute poses, differences in the image (n, 2) and their derivatives (n, 2, f). Homographies have none.
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
        """Return how a model's degrees of freedom follow its points to where they moved, to first order: (f,).

        Only for relative poses and fundamental matrices. Arguments as for `outcome_deviations`; matches with absurd
        slopes, or without a residual where they moved, take no part.
        """

    def retract(self, model: Array, steps: Array) -> Array:
        """Return the models small steps (..., f) along the degrees of freedom away: (..., 3, columns)."""


def _kind(compiled: object) -> ModelKernels:
    """Return a compiled class as what it is used as."""
    return cast(ModelKernels, compiled)


# [R | t] on SO(3) x S^2: three numbers turn, two move the translation on its sphere.
POSES = _kind(_native.Poses)
# [R | t | a1 | a2] with the intrinsics (log_scale, x, y) of each camera relative to the camera that the points were
# normalised with: after the pose, three numbers for either camera.
FOCAL_POSES = _kind(_native.FocalPoses)
# [R | t] of rays as Lambert's azimuthal projection has them; residuals are angles in radians.
RAY_POSES = _kind(_native.RayPoses)
# F on the manifold of matrices of rank two, up to scale; refined ones have Frobenius norm one.
FUNDAMENTALS = _kind(_native.Fundamentals)
# [R | t] of x = R X + t for 3D points X: three numbers turn, three move.
ABSOLUTE_POSES = _kind(_native.AbsolutePoses)
# [R | t | a | b] with the intrinsics a = (log_scale, x, y), b = (k1, 0, 0) of the camera relative to the camera that
# the points were normalised with: after the pose, four numbers.
ABSOLUTE_FOCAL_POSES = _kind(_native.AbsoluteFocalPoses)
# H with x2 ~ H x1, of Frobenius norm one, positive in front of the cameras; residuals are symmetric transfer errors.
HOMOGRAPHIES = _kind(_native.Homographies)

positive_depths = _native.Poses.positive_depths
plane_poses = _native.Homographies.plane_poses


def where(mask: NDArray[np.bool_]) -> Indices:
    """Return the indices (k,) of the true entries of a mask (n,), ascending."""
    return mask.nonzero()[0].astype(np.int32)
