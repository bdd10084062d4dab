"""Estimate with photographs: a first estimate, its inliers refined, and a second estimate from the refined matches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import spread_usable, take_usable
from caransac.geometry import Array
from caransac.options import Options
from caransac.result_parts import RefinedMatches, Refinement
from caransac.robust.patches.alignment import Photographs, refine_in_photographs
from caransac.robust.problems import Problem
from caransac.robust.records import Estimate, MatchInfo
from caransac.tuning import PatchTuning

AnyProblem = TypeVar("AnyProblem", bound=Problem)
# (pixels1, pixels2, info, options) -> problem and estimate
EstimateStep = Callable[[Array, Array, MatchInfo, Options], tuple[AnyProblem, Estimate]]
# (indices (k,) of inliers, standard deviation of the points in pixels) -> refined matches
RefineStep = Callable[[NDArray[np.intp], float], RefinedMatches]


def estimate_with_photographs(
    images: Photographs | None,
    pixels1: Array,
    pixels2: Array,
    info: MatchInfo,
    options: Options,
    estimate: EstimateStep[AnyProblem],
) -> tuple[AnyProblem, Estimate, Refinement | None]:
    """Estimate from matches of two images, refined in the photographs; see `estimate_and_refine`."""
    refine: RefineStep | None = None
    if images is not None:
        refine = partial(refine_in_photographs, images, pixels1, pixels2, options.tuning.patches)
    return estimate_and_refine(refine, pixels2, info, options, partial(estimate, pixels1))


def estimate_and_refine(
    refine: RefineStep | None,
    pixels2: Array,
    info: MatchInfo,
    options: Options,
    estimate: Callable[[Array, MatchInfo, Options], tuple[AnyProblem, Estimate]],
) -> tuple[AnyProblem, Estimate, Refinement | None]:
    """Estimate from the given matches, and again from its inliers that `refine` aligned in photographs.

    The first answer may be in the wrong valley, and precise matches lead out of it. It stays if the second answer
    explains much fewer matches. If the second answer has many inliers that the first one did not have, they are refined
    too, for a third estimate. Without photographs, there is only the first.
    """
    started, tuning = time.perf_counter(), options.tuning.patches
    problem, found = estimate(pixels2, info, options)
    if refine is None or found.model is None:
        return problem, found, None
    again = MatchInfo(features=info.features)  # the scores have done their work
    noise_px, drawn, refinement = found.final_noise / problem.pixel, found.num_hypotheses, None
    inliers = inliers_of(problem, found)
    for _ in range(tuning.most_passes):
        # 1. refine the inliers
        before, inliers = inliers, inliers_of(problem, found)
        if (
            refinement is not None
            and np.count_nonzero(inliers & ~before) <= tuning.new_inliers * refinement.num_refined
        ):
            break
        chosen = choose_inliers(np.flatnonzero(inliers), options)
        matches = refine(chosen, noise_px / problem.median_error)
        # 2. estimate from the refined matches alone
        moved, second = problem, found.without_model()
        if matches.num_refined >= tuning.min_refined * problem.sample_size:
            used = replace(again, precision=precision_of(matches, tuning))
            moved, second = estimate(matches.points2, used, options.left_since(started))
            drawn += second.num_hypotheses
        # 3. accept the answer?
        accepted = second.model is not None and tuning.least_consensus <= consensus_ratio(moved, second, problem, found)
        if accepted or refinement is None:
            refinement = Refinement(**vars(matches), is_used=accepted, noise_before_px=noise_px, given2=pixels2.copy())
        if not accepted:
            break
        problem, found = moved, with_doubts(second, found, take_usable(matches.refined, moved.usable))
    return problem, replace(found, num_hypotheses=drawn), refinement


def precision_of(matches: RefinedMatches, tuning: PatchTuning) -> Array:
    """Return the relative precision (N,) of refined matches; 0 for the others.

    The variance of a match is the variance that its patches show, and the variance that they do not show.
    """
    shown = 1 / np.sqrt(np.maximum(np.linalg.det(matches.information), 1e-12))  # geometric mean of both directions
    hidden = tuning.hidden_deviation_px**2
    return np.where(matches.refined, hidden / (hidden + shown), 0.0)


def with_doubts(second: Estimate, first: Estimate, refined: NDArray[np.bool_]) -> Estimate:
    """Return the second estimate, in which no match is more probable than in the first one, unless it was refined (n,).

    The second estimate knows only the distances of the other matches, not their scores.
    """
    known, before = second.probabilities, first.probabilities
    if known is None or before is None or len(known) != len(before):
        return second
    *earlier, last = second.rounds
    probabilities = np.where(refined, known, np.minimum(known, before))
    return replace(second, rounds=(*earlier, replace(last, probabilities=probabilities)))


def inliers_of(problem: Problem, found: Estimate) -> NDArray[np.bool_]:
    """Return the mask (N,) of the inliers among the given matches."""
    assert found.msac_scores is not None
    return spread_usable(found.msac_scores, problem.usable) > 0


def consensus_ratio(moved: Problem, second: Estimate, problem: Problem, found: Estimate) -> float:
    """Return the consensus of the second answer divided by that of the first, both at the threshold of the first."""
    assert second.model is not None and found.msac_scores is not None
    max_error = found.max_error / problem.pixel * moved.pixel
    return float(moved.msac_scores(second.model[None], max_error).sum()) / float(found.msac_scores.sum())


def choose_inliers(inliers: NDArray[np.intp], options: Options) -> NDArray[np.intp]:
    """Return the inliers (k,) to refine: all, or as many as a working set has."""
    most = options.tuning.working_set
    if len(inliers) <= most:
        return inliers
    return np.sort(np.random.default_rng(options.seed).choice(inliers, most, replace=False, shuffle=False))
