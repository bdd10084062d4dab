"""The compiled kernels, typed and documented; the only importer of the compiled module.

Points become `Correspondences` once; the kernels read those. Coordinates are of the order of one: normalised image
coordinates, or centred and scaled pixels. All kernels release the interpreter lock, keep no state and give the same
answer for the same input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac import _native
from caransac._native import Activation, Correspondences, IntrinsicsPrior, Loss, RefineOptions, Regions, ScoreKind
from caransac.geometry import Array, Floats

Indices = NDArray[np.int32]
NativeKind = type[_native.Poses] | type[_native.Fundamentals] | type[_native.FocalPoses] | type[_native.Homographies]
Layer = tuple[Floats, Floats, Activation, bool]
_Numbers = TypeVar("_Numbers", Array, Floats, Indices)

__all__ = [
    "FOCAL_POSES",
    "FUNDAMENTALS",
    "HOMOGRAPHIES",
    "POSES",
    "Activation",
    "Correspondences",
    "Indices",
    "IntrinsicsPrior",
    "Layer",
    "Loss",
    "ModelKernels",
    "RefineOptions",
    "Regions",
    "ScoreKind",
    "StateKernels",
    "calibrate",
    "five_point",
    "five_point_poses",
    "four_point",
    "inner_products",
    "instruction_set",
    "mlp",
    "most_likely",
    "neighbour_features",
    "normalise",
    "pack",
    "plane_poses",
    "positive_depths",
    "real_roots",
    "sample_prosac",
    "sample_uniform",
    "seven_point",
    "side_information",
    "widths",
]


def _aligned(array: _Numbers) -> _Numbers:
    return array if array.flags.aligned else array.copy()  # as C++ wants it, and some CPUs


def _reals(array: object) -> Array:
    return _aligned(np.ascontiguousarray(array, dtype=np.float64))


def _floats(array: ArrayLike) -> Floats:
    return _aligned(np.ascontiguousarray(array, dtype=np.float32))


def _integers(array: ArrayLike) -> Indices:
    given = np.asarray(array)
    whole = given.dtype.kind in "iu" or given.size == 0
    if not whole or (given.dtype != np.int32 and np.any((given < -(2**31)) | (given >= 2**31))):
        raise ValueError("indices must be integers of 32 bits")  # others would silently become different ones
    return _aligned(np.ascontiguousarray(given, dtype=np.int32))


def instruction_set() -> str:
    """Instruction set in use: "baseline", "avx2" or "avx512".

    The best one the CPU has, unless the environment variable CARANSAC_INSTRUCTION_SET asks for a lesser one.
    """
    return _native.instruction_set()


def pack(points1: Array, points2: Array) -> Correspondences:
    """Points (n, 2) and (n, 2), a match in every row, as every kernel reads them; a ValueError if one is not finite.

    ``len`` of it is n, ``points1`` and ``points2`` are copies of the points, ``subset`` takes some of them by index,
    ``spreads`` says of either image where its points are, (2, 3): their centre and the spread around it, blind to a few
    absurd ones, and ``in_spreads`` gives the points relative to that.
    """
    return _native.pack(_reals(points1), _reals(points2))


def calibrate(pixels1: Array, pixels2: Array, intrinsics: Array) -> Correspondences:
    """Normalised image coordinates of pixels (n, 2) of two cameras, the rows fx, fy, cx, cy of intrinsics (2, 4)."""
    return _native.calibrate(_reals(pixels1), _reals(pixels2), _reals(intrinsics))


def normalise(pixels1: Array, pixels2: Array) -> tuple[Correspondences, Array, float]:
    """Points ``(pixels - centre) * scale`` of about one for pixels (n, 2) of two images; centres (2, 2); scale.

    Each image is centred by medians, and both are scaled alike.
    """
    return _native.normalise(_reals(pixels1), _reals(pixels2))


# Solvers -------------------------------------------------------------------------------------------------------------


def five_point(correspondences: Correspondences, samples: Indices) -> tuple[Array, Indices]:
    """Essential matrices through samples of five calibrated correspondences.

    Args:
        correspondences: in normalised image coordinates.
        samples: (S, 5) indices of correspondences.

    Returns:
        (m, 3, 3) matrices of Frobenius norm sqrt(2), at most 10 per sample and none for a degenerate one, and (m,) the
        sample each comes from.
    """
    return _native.five_point(correspondences, _integers(samples))


def five_point_poses(correspondences: Correspondences, samples: Indices) -> tuple[Array, Indices]:
    """Poses (p, 3, 4) of `five_point` that put their sample in front of both cameras, and (p,) that sample.

    At most one of the four poses of an essential matrix qualifies; matrices where none does are left out.
    """
    return _native.five_point_poses(correspondences, _integers(samples))


def seven_point(correspondences: Correspondences, samples: Indices) -> tuple[Array, Indices]:
    """Fundamental matrices through samples (S, 7) of correspondences.

    Returns:
        (m, 3, 3) matrices of Frobenius norm one, at most 3 per sample and none for a degenerate one, and (m,) the
        sample each comes from.
    """
    return _native.seven_point(correspondences, _integers(samples))


def four_point(correspondences: Correspondences, samples: Indices) -> tuple[Array, Indices]:
    """Homographies through samples (S, 4) of correspondences.

    Returns:
        (m, 3, 3) matrices of Frobenius norm one, at most one per sample and none for a degenerate or impossible one,
        and (m,) the sample each comes from.
    """
    return _native.four_point(correspondences, _integers(samples))


def real_roots(coefficients: Array) -> Array:
    """Distinct real roots of cubics or of polynomials of degree ten: what the solvers use.

    Args:
        coefficients: (m, 4) or (m, 11), constant term first.

    Returns:
        (m, 3) or (m, 10) roots in no particular order, the rest NaN.
    """
    return _native.real_roots(_reals(coefficients))


# Models --------------------------------------------------------------------------------------------------------------


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

    def residuals_sq(self, models: Array, correspondences: Correspondences) -> Array:
        """Squared Sampson distances, or symmetric transfer errors, of all points to all models: (m, n)."""
        return self.native.residuals_sq(_reals(models), correspondences)

    def msac_scores(self, models: Array, correspondences: Correspondences, max_error: float) -> Floats:
        """MSAC scores ``1 - min(r, T^2) / T^2`` of all points for all models: (m, n).

        0 where r is not defined and, for poses, for a point behind a camera.
        """
        return self.native.msac_scores(_reals(models), correspondences, max_error)

    def spread_consensus(
        self, models: Array, correspondences: Correspondences, max_error: float, regions: Regions
    ) -> Array:
        """Consensus (m,) that counts evidence all over the images for more than a heap of it.

        The sum, over the cells of a 16 x 16 grid on either image, of the square root of the total MSAC score in each.
        """
        return self.native.spread_consensus(_reals(models), correspondences, max_error, regions)

    def top(self, models: Array, correspondences: Correspondences, max_error: float, k: int) -> Indices:
        """Indices (min(k, m),) of the k models with the largest total MSAC consensus, largest first.

        Exactly what scoring all of them would give, but for cheirality; models that cannot reach the k best are
        abandoned half-way.
        """
        return self.native.top(_reals(models), correspondences, max_error, k)

    def promising(
        self,
        models: Array,
        coarse: Correspondences,
        fine: Correspondences,
        max_error: float,
        shortlist: int,
        count: int,
        options: RefineOptions,
    ) -> Array:
        """The `shortlist` `top` models of few points, of these the `count` best of more, refined there: (k, ...).

        Args:
            models: (m, ...).
            coarse: few points.
            fine: more points.
            max_error: threshold of the comparison.
            shortlist: models that pass the first comparison.
            count: models that pass the second, k at most.
            options: of the refinement.
        """
        return self.native.promising(_reals(models), coarse, fine, max_error, shortlist, count, options)

    def attend(
        self,
        models: Array,
        correspondences: Correspondences,
        regions: Regions,
        search_error: float,
        max_error: float,
        finalists: int,
        count: int,
        same: float,
    ) -> tuple[Array, Floats]:
        """Distinct models (k, ...) of the largest `spread_consensus`, largest first, and their MSAC scores (k, n).

        Args:
            models: (m, ...).
            correspondences: the points.
            regions: of the points.
            search_error: threshold of the comparison.
            max_error: threshold of the scores.
            finalists: models that pass the comparison.
            count: those of them that are kept, k at most.
            same: cosine of the scores from which on two models are one.
        """
        return self.native.attend(
            _reals(models), correspondences, regions, search_error, max_error, finalists, count, same
        )

    def right_matches(
        self, model: Array, correspondences: Correspondences, near: float, dimensions: int
    ) -> tuple[float, float]:
        """How many points within `near` of a model are more than wrong ones would be, and their median distance.

        Wrong matches are as frequent at any distance (of one dimension; of two, the area grows with the square), right
        ones are closer than half of `near`. Where there are none, 0 and `near`.
        """
        return self.native.right_matches(_reals(model), correspondences, near, dimensions)

    def near_median(self, model: Array, correspondences: Correspondences, near: float) -> tuple[int, float]:
        """How many points are within a distance of a model, and their median one; `near` itself if there are none."""
        return self.native.near_median(_reals(model), correspondences, near)

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
        return self.native.refine(
            _reals(models), correspondences, None if weights is None else _reals(weights), options
        )

    def information(self, model: Array, correspondences: Correspondences, weights: Array) -> Array:
        """``J^T W J`` of `jacobian` with weights (n,): what the points say about a model, (f, f), at noise one."""
        return self.native.information(_reals(model), correspondences, _reals(weights))

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
        return self.native.outcome_deviations(
            _reals(model), correspondences, _reals(weights), _reals(rates), variance, _reals(prior), dropped
        )

    def jacobian(self, model: Array, correspondences: Correspondences) -> tuple[Array, Array]:
        """Signed Sampson distances (n,) of a model and their derivatives (n, degrees of freedom) along `retract`."""
        if issubclass(self.native, _native.Homographies):
            raise TypeError("the transfer errors of homographies have no sign to differentiate with")
        return self.native.jacobian(_reals(model), correspondences)

    def retract(self, model: Array, delta: Array) -> Array:
        """The model a small step along the degrees of freedom away."""
        return self.native.retract(_reals(model), _reals(delta))


# [R | t] on SO(3) x S^2: three numbers turn, two move the translation on its sphere.
POSES = ModelKernels(_native.Poses, (3, 4), 5)
# [R | t | a1 | a2] with the intrinsics (log_scale, x, y) of each camera relative to the camera that the points were
# normalised with: after the pose, three numbers for either camera.
FOCAL_POSES = ModelKernels(_native.FocalPoses, (3, 6), 11)
# F on the manifold of matrices of rank two, up to scale; refined ones have Frobenius norm one.
FUNDAMENTALS = ModelKernels(_native.Fundamentals, (3, 3), 7)
# H with x2 ~ H x1, of Frobenius norm one, positive in front of the cameras; residuals are symmetric transfer errors.
HOMOGRAPHIES = ModelKernels(_native.Homographies, (3, 3), 8)


def positive_depths(poses: Array, correspondences: Correspondences) -> Array:
    """1 where a point lies in front of both cameras of a pose (m, 3, 4), else 0: (m, n)."""
    return _native.Poses.positive_depths(_reals(poses), correspondences)


def plane_poses(H: Array, correspondences: Correspondences) -> Array:
    """The poses [R | t] that a homography (3, 3) of rays has, with most points in front of the camera: (k, 3, 4).

    Two for a plane, none for a rotation.
    """
    return _native.Homographies.plane_poses(_reals(H), correspondences)


# Points --------------------------------------------------------------------------------------------------------------


def most_likely(probabilities: Floats, count: int) -> Indices:
    """Indices (k,) of the `count` most probable points, ascending; of equal ones the first, and all if no more."""
    return _native.most_likely(_floats(probabilities), count)


def inner_products(rows: Floats, row: Floats) -> Floats:
    """Inner products (m,) of rows (m, n) with one (n,): the same from any number of threads of any library."""
    return _native.inner_products(_floats(rows), _floats(row))


def widths(correspondences: Correspondences, most: int) -> tuple[float, float]:
    """Width of the region of the points in its lengths, in either image: little for a line.

    Medians of the distances along and across the region from its middle; `most` points, or all, are asked.
    """
    return _native.widths(correspondences, most)


# Samples -------------------------------------------------------------------------------------------------------------


def sample_uniform(pool: Indices, size: int, count: int, *, seed: int, first: int = 0) -> Indices:
    """Samples of `size` distinct members of the pool, every subset equally likely: (count, size).

    Sample number first + i depends on the seed and that number only: batches can be drawn in any order, by any number
    of threads and on any platform.
    """
    return _native.sample_uniform(_integers(pool), size, count, seed, first)


def sample_prosac(
    pool: Indices, size: int, count: int, *, seed: int, first: int = 0, horizon: float = 200_000.0
) -> Indices:
    """As `sample_uniform`, from a growing prefix of a pool ordered best first (PROSAC): (count, size).

    Args:
        pool: indices, best first.
        size: members of a sample.
        count: samples to draw.
        seed: seed.
        first: number of the first sample.
        horizon: samples after which the prefix has become the whole pool.
    """
    return _native.sample_prosac(_integers(pool), size, count, seed, first, horizon)


# Networks ------------------------------------------------------------------------------------------------------------


def mlp(x: Sequence[Floats], layers: Sequence[Layer]) -> Floats:
    """A small network applied to every row of the arrays x side by side: (n, a), (n, b), ... -> (n, last outputs).

    A layer is ``(weight (a, b), bias (b,), activation, residual)``: ``activation(x @ weight + bias)``, plus x when
    residual. Arrays are single precision, layers at most 128 wide, x together at most 1024. x may be transposed
    or a slice: only blocks of rows are ever copied.
    """
    return _native.mlp([_aligned(np.asarray(part, np.float32)) for part in x], list(layers))


class StateKernels:
    """The state network with its weights packed: all layers in one call. See `caransac.learned.state_network`."""

    def __init__(
        self,
        init: Sequence[Layer],
        decoder: Sequence[Layer],
        message: Sequence[Layer],
        digest: Sequence[Layer],
        update: Sequence[Layer],
    ) -> None:
        """Layers as in `mlp`; message and digest have hidden layers and end without an activation."""
        self._parts = [list(part) for part in (init, decoder, message, digest, update)]
        self._native = _native.StateNetwork(*self._parts)

    def __reduce__(self) -> tuple[type[StateKernels], tuple[list[Layer], ...]]:
        return StateKernels, tuple(self._parts)  # to be pickled, which the packed weights cannot be

    def first(self, side: Floats) -> tuple[Floats, Floats]:
        """States (n, c) and inlier probabilities (n,) from side information (n, d)."""
        return self._native.first(_floats(side))

    def update(self, state: Floats, msac_scores: Floats) -> tuple[Floats, Floats]:
        """States (n, c) and inlier probabilities (n,) after seeing scores (k, n), k from 1 to 1024.

        Of the same bits from any number of threads of any library.
        """
        return self._native.update(_floats(state), _floats(msac_scores))


def side_information(
    correspondences: Correspondences, scores: Array | None, score_kind: ScoreKind, min_distance: float = 0.012
) -> Floats:
    """Scores (n,), or none, lifted to 16 sines and cosines and two numbers for their kind, then `neighbour_features`.

    Returns:
        (n, 36).
    """
    return _native.side_information(
        correspondences, None if scores is None else _reals(scores), score_kind, min_distance
    )


def neighbour_features(correspondences: Correspondences, min_distance: float = 0.012) -> Floats:
    """How each match agrees with its spatial neighbours in either image: (n, 18).

    Args:
        correspondences: in units of the points' spread in each image, around their centre.
        min_distance: closer neighbours do not count; see neighbours.h for that and for the features.
    """
    return _native.neighbour_features(correspondences, min_distance)
