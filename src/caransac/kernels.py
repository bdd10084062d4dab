"""The compiled kernels, typed and documented; the only importer of the compiled module.

Points are (n, 2) arrays, models (m, 3, 3) matrices M with ``x2^T M x1 = 0``, samples (S, k, 2) arrays of k points each.
The kernels expect coordinates of the order of one: normalised image coordinates, or centred and scaled pixels. All of
them release the interpreter lock, keep no state and give the same answer for the same input.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caransac import _native
from caransac._native import Activation, Loss
from caransac.geometry import Array, Floats

Indices = NDArray[np.int32]
Layer = tuple[Floats, Floats, Activation, bool]

__all__ = [
    "Activation",
    "Loss",
    "essential_from_pose",
    "five_point",
    "five_point_poses",
    "fundamental_from_pose",
    "fundamental_jacobian",
    "instruction_set",
    "mlp",
    "msac_scores",
    "neighbour_features",
    "pose_from_essential",
    "pose_jacobian",
    "pose_scores",
    "positive_depths",
    "real_roots",
    "refine_fundamental",
    "refine_pose",
    "residuals_sq",
    "retract_fundamental",
    "retract_pose",
    "sample_prosac",
    "sample_uniform",
    "sample_weighted",
    "seven_point",
    "spread_consensus",
    "top_models",
]


def _reals(array: object) -> Array:
    return np.ascontiguousarray(array, dtype=np.float64)


def _integers(array: object) -> Indices:
    return np.ascontiguousarray(array, dtype=np.int32)


def instruction_set() -> str:
    """Instruction set in use: "baseline", "avx2" or "avx512".

    The best one the CPU has, unless the environment variable CARANSAC_INSTRUCTION_SET asks for a lesser one.
    """
    return _native.instruction_set()


def real_roots(coefficients: Array) -> Array:
    """Distinct real roots of cubics or of polynomials of degree ten: what the solvers use.

    Args:
        coefficients: (m, 4) or (m, 11), constant term first.

    Returns:
        (m, 3) or (m, 10) roots in no particular order, the rest NaN.
    """
    return _native.real_roots(_reals(coefficients))


def five_point(x1: Array, x2: Array) -> tuple[Array, Indices]:
    """Essential matrices of samples of five calibrated correspondences.

    Args:
        x1: (S, 5, 2) normalised image coordinates.
        x2: (S, 5, 2) normalised image coordinates.

    Returns:
        (m, 3, 3) matrices of Frobenius norm sqrt(2), at most 10 a sample and none for a degenerate one, and (m,) the
        sample each comes from.
    """
    return _native.five_point(_reals(x1), _reals(x2))


def five_point_poses(points1: Array, points2: Array, samples: Indices) -> tuple[Array, Array, Indices]:
    """Poses through samples of five correspondences that put them in front of both cameras.

    `five_point`, then `pose_from_essential`, without arrays in between.

    Args:
        points1: (n, 2) normalised image coordinates.
        points2: (n, 2) normalised image coordinates.
        samples: (S, 5) indices of points.

    Returns:
        (p, 3, 3) rotations, (p, 3) translations of length one, and (p,) the sample each comes from.
    """
    return _native.five_point_poses(_reals(points1), _reals(points2), _integers(samples))


def seven_point(x1: Array, x2: Array) -> tuple[Array, Indices]:
    """Fundamental matrices of samples of seven correspondences.

    Args:
        x1: (S, 7, 2) coordinates.
        x2: (S, 7, 2) coordinates.

    Returns:
        (m, 3, 3) matrices of Frobenius norm one, at most 3 a sample and none for a degenerate one, and (m,) the sample
        each comes from.
    """
    return _native.seven_point(_reals(x1), _reals(x2))


def pose_from_essential(essentials: Array, x1: Array, x2: Array) -> tuple[Array, Array, Indices]:
    """Poses that put a sample's points in front of both cameras.

    Args:
        essentials: (m, 3, 3) essential matrices.
        x1: (m, k, 2) the points of each matrix's sample.
        x2: (m, k, 2) the points of each matrix's sample.

    Returns:
        (p, 3, 3) rotations, (p, 3) translations of length one, and (p,) the essential matrix each comes from. At most
        one of the four poses of an essential matrix qualifies; matrices where none does are left out.
    """
    return _native.pose_from_essential(_reals(essentials), _reals(x1), _reals(x2))


def essential_from_pose(rotations: Array, translations: Array) -> Array:
    """Essential matrices ``[t]x R``: (m, 3, 3) and (m, 3) -> (m, 3, 3)."""
    return _native.essential_from_pose(_reals(rotations), _reals(translations))


def fundamental_from_pose(rotations: Array, translations: Array, K1: Array, K2: Array) -> Array:
    """Fundamental matrices ``K2^-T [t]x R K1^-1``: (m, 3, 3) and (m, 3) -> (m, 3, 3)."""
    return _native.fundamental_from_pose(_reals(rotations), _reals(translations), _reals(K1), _reals(K2))


def residuals_sq(models: Array, points1: Array, points2: Array) -> Array:
    """Squared Sampson distances of all points to all models: (m, n)."""
    return _native.residuals_sq(_reals(models), _reals(points1), _reals(points2))


def msac_scores(models: Array, points1: Array, points2: Array, max_error: float) -> Floats:
    """MSAC scores ``1 - min(r, T^2) / T^2`` of all points for all models: (m, n); 0 where r is not defined."""
    return _native.msac_scores(_reals(models), _reals(points1), _reals(points2), max_error**2)


def pose_scores(rotations: Array, translations: Array, points1: Array, points2: Array, max_error: float) -> Floats:
    """MSAC scores of all points for the essential matrices of all poses: (m, n); 0 for a point behind a camera."""
    return _native.pose_scores(_reals(rotations), _reals(translations), _reals(points1), _reals(points2), max_error**2)


def spread_consensus(scores: Floats, regions: Indices, num_regions: int) -> Array:
    """Consensus that counts evidence all over the images for more than a heap of it: (m,).

    Args:
        scores: (m, n) scores of the models.
        regions: (images, n) the region of every point in each image, below `num_regions`.
        num_regions: regions of an image.

    Returns:
        For each model the sum over the regions of all images of the square root of the total score there.
    """
    return _native.spread_consensus(np.ascontiguousarray(scores, np.float32), _integers(regions), num_regions)


def positive_depths(rotations: Array, translations: Array, points1: Array, points2: Array) -> Array:
    """1 where a point lies in front of both cameras of a pose, else 0: (m, n)."""
    return _native.positive_depths(_reals(rotations), _reals(translations), _reals(points1), _reals(points2))


def mlp(x: Sequence[Floats], layers: Sequence[Layer]) -> Floats:
    """A small network applied to every row of the arrays x side by side: (n, a), (n, b), ... -> (n, last outputs).

    A layer is ``(weight (a, b), bias (b,), activation, residual)``: ``activation(x @ weight + bias)``, plus x when
    residual. Arrays are single precision, layers at most 128 wide, x together at most 1024. x may be transposed
    or a slice: only blocks of rows are ever copied.
    """
    return _native.mlp([np.asarray(part, np.float32) for part in x], list(layers))


def neighbour_features(points1: Array, points2: Array, min_distance: float = 0.012) -> Floats:
    """How each match agrees with its spatial neighbours in either image: (n, 18).

    Args:
        points1: (n, 2) in units of their spread in image 1, around their centre.
        points2: (n, 2) in units of their spread in image 2, around their centre.
        min_distance: closer neighbours do not count; see neighbours.h for that and for the features.
    """
    return _native.neighbour_features(_reals(points1), _reals(points2), min_distance)


def top_models(models: Array, points1: Array, points2: Array, max_error: float, k: int) -> tuple[Indices, Array]:
    """The k models with the largest total MSAC consensus, largest first.

    Exactly what scoring all of them would give; models that cannot reach the k best are abandoned half-way.

    Returns:
        (min(k, m),) indices of models, and (min(k, m),) their totals.
    """
    return _native.top_models(_reals(models), _reals(points1), _reals(points2), max_error**2, k)


def refine_pose(
    rotations: Array,
    translations: Array,
    points1: Array,
    points2: Array,
    *,
    weights: Array | None = None,
    loss: Loss = Loss.CAUCHY,
    loss_scale: float = 1.0,
    max_residual: float = 0.0,
    max_steps: int = 25,
    max_points: int = 0,
    min_decrease: float = 1e-7,
    single_precision: bool = False,
) -> tuple[Array, Array, Array]:
    """Refine poses by Levenberg-Marquardt on the robust Sampson cost; no cost ever rises.

    Args:
        rotations: (m, 3, 3).
        translations: (m, 3).
        points1: (n, 2) normalised image coordinates.
        points2: (n, 2) normalised image coordinates.
        weights: (n,) weights of the points, not negative; None weighs all alike.
        loss: robust loss of the squared distance.
        loss_scale: distance at which the loss turns, in the unit of the points.
        max_residual: use only points closer than this to the model it starts from, and in front of its cameras; 0
            uses all.
        max_steps: Levenberg-Marquardt steps, at most.
        max_points: use this many evenly spread points when more qualify; 0 uses all.
        min_decrease: stop after a step that lowers the cost by a smaller fraction.
        single_precision: find the steps in single precision, two thirds of the time, for models that will be
            refined again; costs stay in double precision, so none rises here either.

    Returns:
        (m, 3, 3) rotations, (m, 3) translations, and (m, 2) the cost before and after.
    """
    return _native.refine_pose(
        _reals(rotations),
        _reals(translations),
        _reals(points1),
        _reals(points2),
        None if weights is None else _reals(weights),
        loss,
        loss_scale,
        max_residual**2,
        max_steps,
        max_points,
        min_decrease,
        single_precision,
    )


def refine_fundamental(
    models: Array,
    points1: Array,
    points2: Array,
    *,
    weights: Array | None = None,
    loss: Loss = Loss.CAUCHY,
    loss_scale: float = 1.0,
    max_residual: float = 0.0,
    max_steps: int = 25,
    max_points: int = 0,
    min_decrease: float = 1e-7,
    single_precision: bool = False,
) -> tuple[Array, Array]:
    """Refine fundamental matrices on the rank-two manifold; arguments as in `refine_pose`.

    Returns:
        (m, 3, 3) matrices of Frobenius norm one, and (m, 2) the cost before and after.
    """
    return _native.refine_fundamental(
        _reals(models),
        _reals(points1),
        _reals(points2),
        None if weights is None else _reals(weights),
        loss,
        loss_scale,
        max_residual**2,
        max_steps,
        max_points,
        min_decrease,
        single_precision,
    )


def pose_jacobian(rotation: Array, translation: Array, points1: Array, points2: Array) -> tuple[Array, Array]:
    """Signed Sampson distances (n,) of a pose and their derivatives (n, 5) along `retract_pose`."""
    return _native.pose_jacobian(_reals(rotation), _reals(translation), _reals(points1), _reals(points2))


def fundamental_jacobian(model: Array, points1: Array, points2: Array) -> tuple[Array, Array]:
    """Signed Sampson distances (n,) of one matrix and their derivatives (n, 7) along `retract_fundamental`."""
    return _native.fundamental_jacobian(_reals(model), _reals(points1), _reals(points2))


def retract_pose(rotation: Array, translation: Array, delta: Array) -> tuple[Array, Array]:
    """Pose at the step delta (5,): three numbers turn, two move the translation on its sphere."""
    return _native.retract_pose(_reals(rotation), _reals(translation), _reals(delta))


def retract_fundamental(model: Array, delta: Array) -> Array:
    """Fundamental matrix at the step delta (7,) on the rank-two manifold."""
    return _native.retract_fundamental(_reals(model), _reals(delta))


def sample_uniform(pool: Indices, size: int, count: int, *, seed: int, first: int = 0) -> Indices:
    """Samples of `size` distinct members of the pool, every subset equally likely: (count, size).

    Sample number first + i depends on the seed and that number only: batches can be drawn in any order, by any number
    of threads and on any platform.
    """
    return _native.sample_uniform(_integers(pool), size, count, seed, first)


def sample_weighted(pool: Indices, weights: Array, size: int, count: int, *, seed: int, first: int = 0) -> Indices:
    """As `sample_uniform`, each next member chosen in proportion to its weight: (count, size)."""
    return _native.sample_weighted(_integers(pool), _reals(weights), size, count, seed, first)


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
