"""The public calls: pixels in, result out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from caransac.camera import Camera, as_camera
from caransac.estimator import Estimate, ca_ransac, lm_lo
from caransac.geometry import Array, essential_from_pose
from caransac.kernels import Indices
from caransac.problems import Essential, Fundamental, Problem
from caransac.sampler import ProsacSampler, Sampler, UniformSampler, order_by_score
from caransac.side import side_information
from caransac.state import load_network
from caransac.types import FundamentalResult, Options, RelativePoseResult, ScoreKind

LARGEST = 1e12  # beyond any pixel; squares and products of such numbers are still far from overflow
MIN_FILTERED = 20  # matches the ratio filter leaves at least, the best ones


def estimate_relative_pose(
    points1: ArrayLike,
    points2: ArrayLike,
    camera1: Camera | ArrayLike | Mapping[str, object],
    camera2: Camera | ArrayLike | Mapping[str, object],
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind = "ratio",
    options: Options | None = None,
) -> RelativePoseResult:
    """Estimate the relative pose of two calibrated cameras from correspondences with outliers.

    Args:
        points1: (N, 2) pixels in image 1, any real dtype and strides.
        points2: (N, 2) pixels in image 2; row i matches row i of `points1`.
        camera1: a `Camera`, a 3x3 calibration matrix, or a COLMAP-style dict {model, params, width, height}. Lens
            distortion is removed from the points.
        camera2: camera of image 2.
        scores: (N,) one number a match that says how good it looks, or None.
        score_kind: "ratio" for the second-nearest-neighbour ratio (lower is better), "confidence" for a matcher's
            score (higher is better).
        options: see `Options`.

    Returns:
        The pose with ``x2 = R x1 + t`` and the inliers; ``success`` is False, with a ``stop_reason``, when the data
        determine no pose.

    Raises:
        ValueError: an argument has the wrong shape or impossible values; the message names it.
    """
    started = time.perf_counter()
    pixels1, pixels2, scores, options = _check(points1, points2, scores, score_kind, options)
    lens1, lens2 = as_camera(camera1, "camera1"), as_camera(camera2, "camera2")
    # Distances are measured on the normalised image plane, where a pixel is as long as the inverse focal length.
    pixel = 0.5 * (1 / lens1.mean_focal + 1 / lens2.mean_focal)
    problem = Essential(lens1.pixels_to_rays(pixels1), lens2.pixels_to_rays(pixels2), options.max_error_px * pixel)
    found = _run(problem, scores, score_kind, options)
    R = t = E = None
    if found.model is not None:
        rotations, translations = Essential.split(found.model[None])
        R, t = rotations[0].copy(), translations[0].copy()
        E = essential_from_pose(R, t)
    return RelativePoseResult(R=R, t=t, E=E, **_report(problem, found, started))


def estimate_fundamental(
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind = "ratio",
    options: Options | None = None,
) -> FundamentalResult:
    """Estimate the fundamental matrix of two uncalibrated images from correspondences with outliers.

    Arguments and errors as in `estimate_relative_pose`, without the cameras.

    Returns:
        F with ``x2^T F x1 = 0`` for pixels, rank two, Frobenius norm one; ``success`` is False, with a ``stop_reason``,
        when the data determine none.
    """
    started = time.perf_counter()
    pixels1, pixels2, scores, options = _check(points1, points2, scores, score_kind, options)
    # Centre each image but scale both alike: the Sampson distance then only changes its unit. Medians, because a single
    # absurd match would otherwise squeeze all others into a point.
    centre1, centre2 = (np.median(pixels, axis=0) if len(pixels) else np.zeros(2) for pixels in (pixels1, pixels2))
    shifted1, shifted2 = pixels1 - centre1, pixels2 - centre2
    spread = float(np.median(np.abs([shifted1, shifted2]))) if len(pixels1) else 0.0
    scale = 0.5 / spread if spread > 0 else 1.0
    problem = Fundamental(shifted1 * scale, shifted2 * scale, options.max_error_px * scale)
    found = _run(problem, scores, score_kind, options)
    F = None
    if found.model is not None:
        normalise1, normalise2 = (
            np.array([[scale, 0, -scale * c[0]], [0, scale, -scale * c[1]], [0, 0, 1]]) for c in (centre1, centre2)
        )
        F = normalise2.T @ found.model.reshape(3, 3) @ normalise1
        F /= np.abs(F).max()  # first, so that the norm cannot underflow
        F /= np.linalg.norm(F)
    return FundamentalResult(F=F, **_report(problem, found, started))


def _check(
    points1: ArrayLike, points2: ArrayLike, scores: ArrayLike | None, score_kind: str, options: Options | None
) -> tuple[Array, Array, Array | None, Options]:
    """The arguments as float64 arrays and an Options, or a ValueError that names what is wrong."""
    pixels1, pixels2 = _as_reals(points1, "points1"), _as_reals(points2, "points2")
    for name, pixels in (("points1", pixels1), ("points2", pixels2)):
        if pixels.ndim != 2 or pixels.shape[1] != 2:
            raise ValueError(f"{name} must have shape (N, 2), got {pixels.shape}")
    if len(pixels1) != len(pixels2):
        raise ValueError(f"points1 and points2 must have the same length, got {len(pixels1)} and {len(pixels2)}")
    if score_kind not in get_args(ScoreKind):
        raise ValueError(f"score_kind must be one of {', '.join(get_args(ScoreKind))}, not {score_kind!r}")
    if scores is not None:
        scores = _as_reals(scores, "scores")
        if scores.shape != (len(pixels1),):
            raise ValueError(f"scores must have shape ({len(pixels1)},), one a match, got {scores.shape}")
    if options is None:
        options = Options()
    if not isinstance(options, Options):
        raise ValueError(f"options must be a caransac.Options, not {type(options).__name__}")
    return pixels1, pixels2, scores, options


def _as_reals(values: ArrayLike, name: str) -> Array:
    try:
        array = np.asarray(values)
    except ValueError as error:  # lists of unequal lengths
        raise ValueError(f"{name} must be an array: {error}") from error
    if np.ma.isMaskedArray(values):
        raise ValueError(f"{name} must not be a masked array; pass the valid rows only")
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must hold real numbers, not {array.dtype}")
    array = np.ascontiguousarray(array, dtype=np.float64)
    if not np.all(np.abs(array) < LARGEST):
        raise ValueError(f"{name} must not contain NaN, infinity or numbers beyond {LARGEST:g}")
    return array


def _run(problem: Problem, scores: Array | None, score_kind: ScoreKind, options: Options) -> Estimate:
    """Run the method on the points that have rays; probabilities come back over all points."""
    usable = np.flatnonzero(np.isfinite(problem.points1).all(axis=1) & np.isfinite(problem.points2).all(axis=1))
    learned = options.method == "ca-ransac"
    if len(usable) < problem.sample_size:
        return Estimate(None, "too_few_points", 0, np.zeros(problem.num_points, np.float32) if learned else None)
    if not learned:
        return _run_classical(problem, usable.astype(np.int32), scores, score_kind, options)
    sub = problem.subset(usable.astype(np.int32))
    side = side_information(sub.points1, sub.points2, None if scores is None else scores[usable], score_kind)
    found = ca_ransac(sub, load_network(options.weights), side, options)
    probabilities = np.zeros(problem.num_points, np.float32)
    probabilities[usable] = found.probabilities
    return replace(found, probabilities=probabilities)


def _run_classical(
    problem: Problem, order: Indices, scores: Array | None, score_kind: ScoreKind, options: Options
) -> Estimate:
    """Filter and order the points by score, choose the sampler, and run LM-LO."""
    if scores is not None:
        order = order[order_by_score(scores[order], higher_is_better=score_kind == "confidence")]
        if score_kind == "ratio":
            order = order[: max(int((scores[order] < options.max_ratio).sum()), MIN_FILTERED)]
    progressive = scores is not None and options.method == "lm-lo"
    make_sampler = ProsacSampler if progressive else UniformSampler
    sampler: Sampler = make_sampler(np.arange(len(order), dtype=np.int32), problem.sample_size, options.seed)
    return lm_lo(problem.subset(order), sampler, options)  # what is filtered out costs nothing


def _report(problem: Problem, found: Estimate, started: float) -> dict[str, Any]:
    """The fields all results share, over the points as given."""
    scores = (
        problem.score(found.model[None], problem.max_error)[0]
        if found.model is not None
        else np.zeros(problem.num_points)
    )
    return {
        "success": found.model is not None,
        "stop_reason": found.stop_reason,
        "inliers": scores > 0,
        "num_inliers": int((scores > 0).sum()),
        "num_hypotheses": found.num_hypotheses,
        "score": float(scores.sum()),
        "probabilities": None if found.probabilities is None else found.probabilities.astype(float),
        "elapsed_s": time.perf_counter() - started,
    }
