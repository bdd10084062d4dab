"""Estimate with photographs: a first estimate, its inliers refined, and a second estimate from the refined matches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import spread_usable
from caransac.geometry import Array
from caransac.options import Options
from caransac.result_parts import Refinement
from caransac.robust.patches.alignment import Photographs, refine_in_photographs
from caransac.robust.problems import Problem
from caransac.robust.records import Estimate, MatchInfo
from caransac.tuning import PATCHES

AnyProblem = TypeVar("AnyProblem", bound=Problem)
# (pixels1, pixels2, info, options) -> problem and estimate
EstimateStep = Callable[[Array, Array, MatchInfo, Options], tuple[AnyProblem, Estimate]]


def estimate_with_photographs(
    images: Photographs | None,
    pixels1: Array,
    pixels2: Array,
    info: MatchInfo,
    options: Options,
    estimate: EstimateStep[AnyProblem],
) -> tuple[AnyProblem, Estimate, Refinement | None]:
    """Estimate twice: from the given matches, then from its inliers that were refined, without scores.

    The first answer may be in the wrong valley, and precise matches lead out of it. It stays if the second answer
    explains much fewer matches. Without photographs, there is only the first.
    """
    started = time.perf_counter()
    problem, found = estimate(pixels1, pixels2, info, options)
    if images is None or found.model is None or found.msac_scores is None:
        return problem, found, None
    # 1. refine the inliers
    inliers = np.flatnonzero(spread_usable(found.msac_scores, problem.usable) > 0)
    inliers = choose_inliers(inliers, options)
    matches = refine_in_photographs(
        images, pixels1, pixels2, inliers, problem.local_maps(found.model, pixels1[inliers])
    )
    kept = Refinement(
        **vars(matches), is_used=False, noise_before_px=found.noise / problem.pixel, given2=pixels2.copy()
    )
    if matches.num_refined < PATCHES.min_refined * problem.sample_size:
        return problem, found, kept
    # 2. estimate again from the refined matches alone
    again = MatchInfo(features=info.features, used=matches.refined)
    moved, second = estimate(pixels1, matches.points2, again, options.left_since(started))
    # 3. choose
    if second.model is None:
        return problem, found, kept
    max_error = found.max_error / problem.pixel * moved.pixel
    consensus = float(moved.msac_scores(second.model[None], max_error).sum())
    if consensus < PATCHES.least_consensus * float(found.msac_scores.sum()):
        return problem, found, kept
    drawn = found.num_hypotheses + second.num_hypotheses
    return moved, replace(second, num_hypotheses=drawn), replace(kept, is_used=True)


def choose_inliers(inliers: NDArray[np.intp], options: Options) -> NDArray[np.intp]:
    """Return the inliers (k,) to refine: all, or as many as a working set has."""
    most = options.tuning.working_set
    if len(inliers) <= most:
        return inliers
    return np.sort(np.random.default_rng(options.seed).choice(inliers, most, replace=False, shuffle=False))
