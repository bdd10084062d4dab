"""Fields that results share, converted to the units and models of the public API."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from caransac._support.arrays import spread_usable
from caransac.geometry import Array, split_pose
from caransac.kernels import RELATIVE
from caransac.options import Options
from caransac.policy import DEFAULT_POLICY
from caransac.results import POSE_NUMBERS, Refinement, RelativePose, Rival, Round
from caransac.robust.problems import Problem, with_intrinsics
from caransac.robust.problems.base import log_scales_of
from caransac.robust.problems.relative import RelativePoseProblem
from caransac.robust.records import Assessment, Estimate

MIRRORED = "the matches are mirrored, which no camera sees: is one image flipped?"


def report(
    pixels: tuple[Array, Array],
    problem: Problem,
    found: Estimate,
    options: Options,
    started: float,
    refinement: Refinement | None,
    public: Callable[[Array], Array] | None = None,
) -> dict[str, Any]:
    """Return the fields of two-view results for all given points, including those of `report_common`."""
    moved = refinement.points2 if refinement is not None and refinement.is_used else None
    return {
        **report_pixels(problem, found, options, started, public),
        "points1": pixels[0].copy(),  # the caller's own arrays may change
        "points2": pixels[1].copy() if moved is None else moved,
        "refinement": refinement,
    }


def report_pixels(
    problem: Problem,
    found: Estimate,
    options: Options,
    started: float,
    public: Callable[[Array], Array] | None = None,
) -> dict[str, Any]:
    """Return the fields of results from pixels, including those of `report_common`."""
    max_error, noise = lengths(problem, found)
    return {**report_common(problem, found, options, started, public), "max_error_px": max_error, "noise_px": noise}


def lengths(problem: Problem, found: Estimate) -> tuple[float, float | None]:
    """Return threshold and noise in pixels, or in degrees for rays. The noise is None if it was not estimated."""
    noise = None if found.probabilities is None or found.model is None else found.final_noise / problem.pixel
    return found.max_error / problem.pixel, noise


def report_common(
    problem: Problem,
    found: Estimate,
    options: Options,
    started: float,
    public: Callable[[Array], Array] | None = None,
) -> dict[str, Any]:
    """Return the fields that all results have, for the given points. `public` converts models (m, ...) for results."""
    msac_scores = np.zeros(problem.num_points, np.float32) if found.msac_scores is None else found.msac_scores
    inliers = spread_usable(msac_scores, problem.usable) > 0
    probabilities = (
        None if found.probabilities is None else spread_usable(found.probabilities, problem.usable).astype(float)
    )
    trace: tuple[Round, ...] = ()
    if options.keep_trace:
        trace = tuple(_public_round(problem, each, public or problem.public) for each in found.rounds)
    return {
        "success": found.model is not None,
        "stop_reason": found.stop_reason,
        "inliers": inliers,
        "num_inliers": int(inliers.sum()),
        "num_hypotheses": found.num_hypotheses,
        "consensus": float(msac_scores.sum()),
        "probabilities": probabilities,
        "trace": trace or None,
        "elapsed_s": time.perf_counter() - started,
    }


def assessed(found: Estimate) -> dict[str, Any]:
    """Return the assessed fields that all results have."""
    return common_fields(found.assess().as_finite())


def common_fields(seen: Assessment) -> dict[str, Any]:
    """Return the fields of an assessment that all results have."""
    warnings = []
    if seen.mirrored is not None and seen.mirrored >= DEFAULT_POLICY.mirrored_share:
        warnings.append(MIRRORED)
    if seen.cameras is not None and seen.cameras.contradicts:
        factor = math.exp(seen.cameras.shift)
        warnings.append(f"the matches fit better with a focal length of {factor:.2g} times the given one")
    return {"confidence": seen.confidence, "warnings": tuple(warnings)}


def assessed_pose(problem: RelativePoseProblem, found: Estimate) -> dict[str, Any]:
    """Return the assessed fields of a relative pose."""
    seen = found.assess().as_finite()
    alternatives = problem.no_models if seen.degeneracy is None else seen.degeneracy.alternatives
    return {
        **common_fields(seen),
        "rotation_confidence": seen.rotation_confidence,
        "degeneracy": seen.degeneracy_kind,
        "alternatives": tuple(RelativePose(*split_pose(pose)) for pose in problem.public(alternatives)),
        "rivals": rivals_of(problem, found, seen, problem.public),
        **covariance_of(problem, found, seen),
    }


def covariance_of(problem: RelativePoseProblem, found: Estimate, seen: Assessment) -> dict[str, Any]:
    """Return the covariance of a pose and of the free parameters that were estimated with it, and their names."""
    if seen.covariance is None:
        return {"covariance": None, "covariance_of": ()}
    free = _free("focal", problem.shared, [prior.focal for prior in problem.priors], RELATIVE.focal)
    units, lens = [1.0] * (len(POSE_NUMBERS) + len(free)), problem.lens_prior
    if lens is not None and not lens.is_as_given and found.model is not None:
        # k1 of the result refers to rays normalised by the given focal length.
        log_scales = log_scales_of(with_intrinsics(found.model))
        lenses = _free("k1" if lens.shared else "k1_", lens.shared, lens.deviations, RELATIVE.lens)
        units += [float(np.exp(2 * log_scales[index - RELATIVE.lens()])) for index in lenses.values()]
        free |= lenses
    chosen, scale = [*range(len(POSE_NUMBERS)), *free.values()], np.array(units)
    covariance = as_covariance(seen.covariance[chosen][:, chosen] * (scale[:, None] * scale))
    return {"covariance": covariance, "covariance_of": () if covariance is None else (*POSE_NUMBERS, *free)}


def as_covariance(matrix: Array) -> Array | None:
    """Return the nearest symmetric, positive semidefinite matrix to a covariance (f, f), or None if it is not finite.

    Rounding can make a covariance asymmetric or indefinite if the matches hardly constrain a number.
    """
    if not np.isfinite(matrix).all():
        return None
    matrix = 0.5 * matrix + 0.5 * matrix.T
    try:
        np.linalg.cholesky(matrix)  # it exists if the matrix is positive definite, and is much faster than eigh
        return matrix
    except np.linalg.LinAlgError:
        pass
    deviations = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    units = deviations[:, None] * deviations  # numbers have different units
    matrix = np.where(units > 0, matrix, 0.0)
    values, vectors = np.linalg.eigh(matrix / np.where(units > 0, units, 1.0))
    if values[0] < 0:
        matrix = units * ((vectors * np.maximum(values, 0.0)) @ vectors.T)
        matrix = 0.5 * matrix + 0.5 * matrix.T
    return matrix


def _free(name: str, shared: bool, deviations: Sequence[float], index: Callable[[int], int]) -> dict[str, int]:
    """Return indices of the estimated degrees of freedom by name: one if shared, otherwise one per uncertain camera."""
    if shared:
        return {name: index(0)}
    return {f"{name}{camera + 1}": index(camera) for camera, deviation in enumerate(deviations) if deviation > 0}


def rivals_of(
    problem: Problem, found: Estimate, seen: Assessment, public: Callable[[Array], Array]
) -> tuple[Rival, ...]:
    """Return the rivals of an answer for the given points. `public` converts models (k, ...) for results."""
    if seen.rivalry is None or found.msac_scores is None or len(seen.rivalry.models) == 0:
        return ()
    assert found.model is not None
    models = seen.rivalry.models
    answered = problem.distances(found.model) < found.max_error
    own = spread_usable((problem.msac_scores(models, found.max_error) > 0) & ~answered, problem.usable) > 0
    return tuple(Rival(model, each, float(each.mean())) for model, each in zip(public(models), own, strict=True))


def _public_round(problem: Problem, record: Round, public: Callable[[Array], Array]) -> Round:
    """Convert a record of the loop for results: public models, and one row for each given point."""
    given = np.arange(problem.num_points) if problem.usable is None else np.flatnonzero(problem.usable)
    return replace(
        record,
        samples=given.astype(np.int32)[record.samples],
        models=public(record.models),
        max_error=record.max_error / problem.pixel,
        noise=record.noise / problem.pixel,
        msac_scores=spread_usable(record.msac_scores, problem.usable),
        state=spread_usable(record.state.T, problem.usable).T,
        probabilities=spread_usable(record.probabilities, problem.usable),
        best=None if record.best is None else public(record.best[None])[0],
    )
