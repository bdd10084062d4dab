"""The public calls: pixels in, result out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac._support.arrays import as_matches, as_reals
from caransac._support.batch import map_ordered
from caransac.camera import CameraLike, as_camera
from caransac.geometry import Array, essential_from_fundamental, essential_from_pose, split_pose
from caransac.options import Options, ScoreKind, check_score_kind, refuse_unknown
from caransac.results import FundamentalResult, RelativePoseResult, Round, StopReason
from caransac.robust import methods
from caransac.robust.cheirality import choose_pose
from caransac.robust.estimate import Estimate
from caransac.robust.methods import MatchInfo
from caransac.robust.problems import Essential, Fundamental, Problem

Found = TypeVar("Found", RelativePoseResult, FundamentalResult)


def estimate_relative_pose(
    points1: ArrayLike,
    points2: ArrayLike,
    camera1: CameraLike,
    camera2: CameraLike,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    features: ArrayLike | None = None,
    options: Options | None = None,
) -> RelativePoseResult:
    """Estimate the relative pose of two calibrated cameras from correspondences with outliers.

    Args:
        points1: (N, 2) pixels in image 1, any real dtype and strides.
        points2: (N, 2) pixels in image 2; row i matches row i of `points1`.
        camera1: a `Camera`, a 3x3 calibration matrix, or a COLMAP-style dict {model, params, width, height}. Lens
            distortion is removed from the points.
        camera2: camera of image 2.
        scores: (N,) one number per match that says how good it looks, or None.
        score_kind: what the scores are, needed with them: "ratio" for the second-nearest-neighbour ratio (lower is
            better), "confidence" for a matcher's score (higher is better).
        features: (N, d) further numbers about each match, for weights that were trained with them; None otherwise.
        options: see `Options`.

    Returns:
        The pose with ``x2 = R x1 + t`` and the inliers; ``success`` is False, with a ``stop_reason``, when the data
        determine no pose.

    Raises:
        ValueError: an argument has the wrong shape or impossible values; the message names it.
    """
    started = time.perf_counter()
    pixels1, pixels2, info, options = _check(points1, points2, scores, score_kind, features, options)
    lens1, lens2 = as_camera(camera1, "camera1"), as_camera(camera2, "camera2")
    problem = Essential.from_pixels(pixels1, pixels2, lens1, lens2, options.max_error_px)
    found = methods.run(problem, info, options)
    R = t = E = None
    if found.model is not None:
        R, t = split_pose(problem.public(found.model[None])[0])
        E = essential_from_pose(R, t)
    return RelativePoseResult(R=R, t=t, E=E, **_report(problem, found, options, started))


def estimate_fundamental(
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    features: ArrayLike | None = None,
    options: Options | None = None,
) -> FundamentalResult:
    """Estimate the fundamental matrix of two uncalibrated images from correspondences with outliers.

    Arguments and errors as in `estimate_relative_pose`, without the cameras.

    Returns:
        F with ``x2^T F x1 = 0`` for pixels, rank two, Frobenius norm one; ``success`` is False, with a ``stop_reason``,
        when the data determine none.
    """
    started = time.perf_counter()
    pixels1, pixels2, info, options = _check(points1, points2, scores, score_kind, features, options)
    problem = Fundamental.from_pixels(pixels1, pixels2, options.max_error_px)
    found = methods.run(problem, info, options)
    F = None if found.model is None else problem.public(found.model[None])[0]
    return FundamentalResult(F=F, **_report(problem, found, options, started))


def estimate_relative_poses(
    pairs: Iterable[object],
    *,
    options: Options | None = None,
    workers: int | Executor | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[RelativePoseResult]:
    """Estimate the relative poses of many pairs in threads: the same answers as one by one, to the bit.

    Args:
        pairs: any iterable, also a generator: pairs are read as they are needed, in the caller's thread. A pair is

            - a mapping of the arguments of `estimate_relative_pose`, ``{"points1": ..., "camera1": ..., ...}``,
            - a tuple ``(points1, points2, camera1, camera2)`` or ``(points1, points2, camera1, camera2, scores,
              score_kind)``, or
            - a record with these attributes, and `scores`, `score_kind`, `features` if it has them, such as
              `datasets.Pair`.
        options: for the pairs that do not bring their own.
        workers: threads; None for one per core. A third to a half of the work holds the interpreter lock, the more the
            fewer the matches, so threads keep two or three cores busy; for more of them pass a
            ``concurrent.futures.ProcessPoolExecutor`` or another executor.
        progress: called in the caller's thread with the number of pairs done, after each.

    Returns:
        One result per pair, in their order; a pair without an answer has ``success=False`` as usual.

    Raises:
        ValueError: a pair is wrong; the message has its index and names the argument.
    """
    return _estimate_all(estimate_relative_pose, ("camera1", "camera2"), pairs, options, workers, progress)


def estimate_fundamentals(
    pairs: Iterable[object],
    *,
    options: Options | None = None,
    workers: int | Executor | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[FundamentalResult]:
    """Estimate the fundamental matrices of many pairs in threads, as `estimate_relative_poses` does poses.

    A pair is a mapping of the arguments of `estimate_fundamental`, a tuple ``(points1, points2)`` or ``(points1,
    points2, scores, score_kind)``, or a record, whose cameras are not looked at.
    """
    return _estimate_all(estimate_fundamental, (), pairs, options, workers, progress)


def _estimate_all(
    estimate: Callable[..., Found],
    cameras: Sequence[str],
    pairs: Iterable[object],
    options: Options | None,
    workers: int | Executor | None,
    progress: Callable[[int], object] | None,
) -> list[Found]:
    results: list[Found] = []
    for result in map_ordered(partial(_estimate_one, estimate, cameras, options), enumerate(pairs), workers):
        results.append(result)
        if progress is not None:
            progress(len(results))
    return results


def _estimate_one(
    estimate: Callable[..., Found], cameras: Sequence[str], options: Options | None, numbered: tuple[int, object]
) -> Found:
    index, pair = numbered
    try:
        return estimate(**{"options": options, **_arguments(pair, cameras)})
    except ValueError as error:
        raise ValueError(f"pairs[{index}]: {error}") from error


def _arguments(pair: object, cameras: Sequence[str]) -> dict[str, Any]:
    """The keyword arguments that a pair is made of."""
    required = ("points1", "points2", *cameras)
    names = (*required, "scores", "score_kind", "features", "options")
    if isinstance(pair, Mapping):
        refuse_unknown(pair, names, "argument")
        arguments = dict(pair)
    elif isinstance(pair, tuple | list):
        if len(pair) not in (len(required), len(required) + 2):
            raise ValueError(f"a tuple must be ({', '.join(required)}[, scores, score_kind]), got {len(pair)} entries")
        arguments = dict(zip(names, pair, strict=False))
    else:
        arguments = {name: getattr(pair, name) for name in names if hasattr(pair, name)}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    missing = [name for name in required if name not in arguments]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing in a {type(pair).__name__}")
    return arguments


def pose_from_fundamental(
    F: ArrayLike,
    points1: ArrayLike,
    points2: ArrayLike,
    camera1: CameraLike,
    camera2: CameraLike,
) -> tuple[Array, Array]:
    """The relative pose that a fundamental matrix implies once the cameras are known.

    Args:
        F: (3, 3) fundamental matrix of pixels.
        points1: (N, 2) pixels in image 1; the pose puts most of them in front of both cameras.
        points2: (N, 2) pixels in image 2.
        camera1: camera of image 1, as in `estimate_relative_pose`; lens distortion has no place in F and is ignored
            in the matrix, but removed from the points.
        camera2: camera of image 2.

    Returns:
        R (3, 3) and t (3,) of length one with ``x2 = R x1 + t``.
    """
    pixels1, pixels2, *_ = as_matches(points1, points2, None)
    lens1, lens2 = as_camera(camera1, "camera1"), as_camera(camera2, "camera2")
    matrix = as_reals(F, "F")
    if matrix.shape != (3, 3):
        raise ValueError(f"F must have shape (3, 3), got {matrix.shape}")
    if not matrix.any():
        raise ValueError("F must not be zero")
    if len(pixels1) == 0:
        raise ValueError("points1 must not be empty: only matches tell which of four poses it is")
    calibrated = Essential.from_pixels(pixels1, pixels2, lens1, lens2, max_error_px=1.0)
    E = essential_from_fundamental(matrix, lens1.K, lens2.K)
    return split_pose(choose_pose(E, calibrated.correspondences))


def _check(
    points1: ArrayLike,
    points2: ArrayLike,
    scores: ArrayLike | None,
    score_kind: ScoreKind | None,
    features: ArrayLike | None,
    options: Options | None,
) -> tuple[Array, Array, MatchInfo, Options]:
    """The arguments as float64 arrays and an Options, or a ValueError that names what is wrong."""
    pixels1, pixels2, numbers = as_matches(points1, points2, scores)
    kind = check_score_kind(scores, score_kind)
    if features is not None:
        features = as_reals(features, "features")
        if features.ndim != 2 or len(features) != len(pixels1):
            raise ValueError(f"features must have shape ({len(pixels1)}, d), one row per match, got {features.shape}")
    if options is None:
        options = Options()
    if not isinstance(options, Options):
        raise ValueError(f"options must be a caransac.Options, not {type(options).__name__}")
    return pixels1, pixels2, MatchInfo(numbers, kind, features), options


class _Common(TypedDict):
    """The fields all results share."""

    success: bool
    stop_reason: StopReason
    inliers: NDArray[np.bool_]
    num_inliers: int
    num_hypotheses: int
    consensus: float
    probabilities: Array | None
    confidence: float | None
    trace: tuple[Round, ...] | None
    elapsed_s: float


def _report(problem: Problem, found: Estimate, options: Options, started: float) -> _Common:
    """The fields all results share, over the points as given."""
    msac_scores = np.zeros(problem.num_points, np.float32) if found.msac_scores is None else found.msac_scores
    inliers = problem.spread(msac_scores) > 0
    probabilities = None if found.probabilities is None else problem.spread(found.probabilities).astype(float)
    trace = tuple(_public_round(problem, each) for each in found.rounds) if options.keep_trace else ()
    return {
        "success": found.model is not None,
        "stop_reason": found.stop_reason,
        "inliers": inliers,
        "num_inliers": int(inliers.sum()),
        "num_hypotheses": found.num_hypotheses,
        "consensus": float(msac_scores.sum()),
        "probabilities": probabilities,
        "confidence": found.confidence,
        "trace": trace or None,
        "elapsed_s": time.perf_counter() - started,
    }


def _public_round(problem: Problem, record: Round) -> Round:
    """A record of the loop in the user's terms: models as results have them, rows of all points as given."""
    given = np.arange(problem.num_points) if problem.usable is None else np.flatnonzero(problem.usable)
    return replace(
        record,
        samples=given.astype(np.int32)[record.samples],
        models=problem.public(record.models),
        msac_scores=problem.spread(record.msac_scores),
        state=problem.spread(record.state.T).T,
        probabilities=problem.spread(record.probabilities),
        best=None if record.best is None else problem.public(record.best[None])[0],
    )
