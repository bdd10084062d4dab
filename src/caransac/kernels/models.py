"""Models against points: the same verbs for every kind of model, and on which side of the cameras points lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caransac import _native
from caransac._native import Correspondences, RefineOptions, Regions
from caransac.geometry import Array, Floats
from caransac.kernels._arrays import Indices
from caransac.kernels.degrees_of_freedom import ABSOLUTE, RELATIVE

NativeKind = (
    type[_native.Poses]
    | type[_native.Fundamentals]
    | type[_native.FocalPoses]
    | type[_native.RayPoses]
    | type[_native.Homographies]
    | type[_native.AbsolutePoses]
    | type[_native.AbsoluteFocalPoses]
)


@dataclass(frozen=True)
class ModelKernels:
    """What can be done with one kind of model: the same verbs for all kinds.

    Attributes:
        native: the compiled functions.
        shape: of one model.
        degrees_of_freedom: of one model.
    """

    native: NativeKind
    shape: tuple[int, int]
    degrees_of_freedom: int

    @property
    def empty(self) -> Array:
        """(0, ...) empty array of models."""
        return np.empty((0, *self.shape))

    def residuals_sq(self, models: Array, correspondences: Correspondences) -> Array:
        """Squared Sampson distances, symmetric transfer errors or reprojection errors of all points: (m, n)."""
        return self.native.residuals_sq(models, correspondences)

    def msac_scores(self, models: Array, correspondences: Correspondences, max_error: float) -> Floats:
        """MSAC scores ``1 - min(r, T^2) / T^2`` of all points for all models: (m, n).

        0 where r is not defined and, for poses, for a point behind a camera.
        """
        return self.native.msac_scores(models, correspondences, max_error)

    def spread_consensus(
        self, models: Array, correspondences: Correspondences, max_error: float, regions: Regions
    ) -> Array:
        """Consensus (m,) that counts evidence all over the images for more than a cluster of it.

        The sum, over the cells of a 16 x 16 grid on either image, of the square root of the total MSAC score in each,
        scores weighted as the regions say.
        """
        return self.native.spread_consensus(models, correspondences, max_error, regions)

    def top(self, models: Array, correspondences: Correspondences, max_error: float, k: int) -> Indices:
        """Indices (min(k, m),) of the k models with the largest total MSAC consensus, largest first.

        Exactly what scoring all of them would give, but for cheirality; models that cannot reach the k best are
        abandoned half-way.
        """
        return self.native.top(models, correspondences, max_error, k)

    def promising(
        self, models: Array, correspondences: Correspondences, max_error: float, count: int, options: RefineOptions
    ) -> Array:
        """Return the `count` `top` models (m, ...), refined on the same points: (k, ...)."""
        return self.native.promising(models, correspondences, max_error, count, options)

    def most_distinct(
        self,
        models: Array,
        correspondences: Correspondences,
        max_error: float,
        regions: Regions,
        count: int,
        same: float,
    ) -> Array:
        """Up to `count` distinct models of the largest `spread_consensus`, largest first: (m, ...) -> (k, ...).

        Args:
            models: (m, ...).
            correspondences: the points.
            max_error: threshold of the comparison.
            regions: of the points.
            count: models to keep, at most.
            same: cosine of the scores at which two models count as one.
        """
        return self.native.most_distinct(models, correspondences, max_error, regions, count, same)

    def mean_of_agreeing(
        self,
        poses: Array,
        correspondences: Correspondences,
        max_error: float,
        regions: Regions,
        reach: float,
        exponent: float,
    ) -> Array:
        """The mean (3, 4) of the poses (m, 3, 4) whose translation is closer than `reach` to that of the first.

        Args:
            poses: (m, 3, 4), at least one.
            correspondences: the points.
            max_error: threshold of the consensus.
            regions: of the points.
            reach: distance of translations, which have length one.
            exponent: of the `spread_consensus` in the weight of a pose; where none has any, the first is the answer.
        """
        if not issubclass(self.native, _native.Poses | _native.RayPoses):
            raise TypeError("only relative poses have a mean")
        return self.native.mean_of_agreeing(poses, correspondences, max_error, regions, reach, exponent)

    def right_matches(
        self, model: Array, correspondences: Correspondences, near: float, dimensions: int
    ) -> tuple[float, float]:
        """How many points within `near` of a model are more than wrong ones would be, and their median distance.

        Wrong matches are as frequent at any distance (of one dimension; of two, the area grows with the square), right
        ones are closer than half of `near`. Where there are none, 0 and `near`.
        """
        return self.native.right_matches(model, correspondences, near, dimensions)

    def refine(
        self, models: Array, correspondences: Correspondences, options: RefineOptions, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """Refine models by Levenberg-Marquardt on the robust Sampson cost; no cost ever rises.

        Args:
            models: (m, ...).
            correspondences: what they are fitted to.
            options: how.
            weights: (n,) weights of the points, not negative; None weighs all alike.

        Returns:
            (m, ...) models, and (m, 2) the cost before and after.
        """
        return self.native.refine(models, correspondences, weights, options)

    def information(self, model: Array, correspondences: Correspondences, weights: Array) -> Array:
        """``J^T W J`` of `jacobian` with weights (n,): what the points say about a model, (f, f), at noise one."""
        return self.native.information(model, correspondences, weights)

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
        """Largest standard deviation of what a model says: the covariance of its degrees of freedom, carried over.

        Args:
            model: the model.
            correspondences: what it was fitted to.
            weights: (n,) their weights, not negative.
            rates: (f, k) how what it says moves with each degree of freedom.
            variance: of the residuals.
            prior: (f, f) information that does not come from the points; infinity on the diagonal holds a number fixed.
            dropped: points of the largest influence that may agree by chance.

        Returns:
            The deviation, and that without the dropped points; of homographies both are the first.
        """
        return self.native.outcome_deviations(model, correspondences, weights, rates, variance, prior, dropped)

    def jacobian(self, model: Array, correspondences: Correspondences) -> tuple[Array, Array]:
        """Signed Sampson distances (n,) of a model and their derivatives (n, degrees of freedom) along `retract`.

        Of absolute poses, differences in the image (n, 2) and their derivatives (n, 2, degrees of freedom).
        """
        if issubclass(self.native, _native.Homographies):
            raise TypeError("the transfer errors of homographies have no sign to differentiate with")
        return self.native.jacobian(model, correspondences)

    def response(
        self,
        model: Array,
        correspondences: Correspondences,
        moved: Correspondences,
        weights: Array,
        variance: float,
        prior: Array,
    ) -> Array:
        """How a model's degrees of freedom follow its points to where they moved, to first order: (f,).

        For kinds with one residual. Arguments as those of `outcome_deviations`; matches whose slopes are absurd, or
        whose residuals are no numbers where they moved, take no part.
        """
        if issubclass(self.native, _native.Homographies | _native.AbsolutePoses | _native.AbsoluteFocalPoses):
            raise TypeError("only epipolar geometry has one residual for each match")
        return self.native.response(model, correspondences, moved, weights, variance, prior)

    def retract(self, model: Array, steps: Array) -> Array:
        """The model small steps (..., f) along the degrees of freedom away: (..., 3, columns)."""
        moved = self.native.retract(model, steps.reshape(-1, self.degrees_of_freedom))
        return moved.reshape(*steps.shape[:-1], *self.shape)


# [R | t] on SO(3) x S^2: three numbers turn, two move the translation on its sphere.
POSES = ModelKernels(_native.Poses, (3, 4), RELATIVE.pose)
# [R | t | a1 | a2] with the intrinsics (log_scale, x, y) of each camera relative to the camera that the points were
# normalised with: after the pose, three numbers for either camera.
FOCAL_POSES = ModelKernels(_native.FocalPoses, (3, 6), RELATIVE.with_intrinsics)
# [R | t] of rays as Lambert's azimuthal projection has them; residuals are angles in radians.
RAY_POSES = ModelKernels(_native.RayPoses, (3, 4), RELATIVE.pose)
# F on the manifold of matrices of rank two, up to scale; refined ones have Frobenius norm one.
FUNDAMENTALS = ModelKernels(_native.Fundamentals, (3, 3), 7)
# [R | t] of x = R X + t for 3D points X: three numbers turn, three move.
ABSOLUTE_POSES = ModelKernels(_native.AbsolutePoses, (3, 4), ABSOLUTE.pose)
# [R | t | a | b] with the intrinsics a = (log_scale, x, y), b = (k1, 0, 0) of the camera relative to the camera that
# the points were normalised with: after the pose, four numbers.
ABSOLUTE_FOCAL_POSES = ModelKernels(_native.AbsoluteFocalPoses, (3, 6), ABSOLUTE.with_lenses)
# H with x2 ~ H x1, of Frobenius norm one, positive in front of the cameras; residuals are symmetric transfer errors.
HOMOGRAPHIES = ModelKernels(_native.Homographies, (3, 3), 8)


def positive_depths(poses: Array, correspondences: Correspondences) -> Array:
    """1 where a point lies in front of both cameras of a pose (m, 3, 4), else 0: (m, n)."""
    return _native.Poses.positive_depths(poses, correspondences)
