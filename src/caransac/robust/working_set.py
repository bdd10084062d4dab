"""Working sets for very many matches: estimate on a subset that is spread over the image, then refine on all matches.

More than a few thousand matches do not help to find a model with few parameters. They only make it more precise, by
averaging. The final refinement weighs them equally: weights that come from the model would only confirm it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Indices, RefineOptions
from caransac.results import Round
from caransac.robust.assess.uncertainty import pose_covariance
from caransac.robust.problems import Problem
from caransac.robust.records import Assessment, Estimate, MatchInfo
from caransac.tuning import Tuning


def choose_working_set(problem: Problem, info: MatchInfo, seed: int, tuning: Tuning) -> Indices | None:
    """Return sorted indices of matches spread over image 1, with the best scores of each cell; None for all."""
    size = tuning.working_set
    if problem.num_points <= size:
        return None
    considered = min(8 * size, problem.num_points)  # drawn at random: ranking millions of matches takes too long
    drawn = np.random.default_rng(seed).choice(problem.num_points, considered, replace=False, shuffle=False)
    if info.scores is not None:
        drawn = drawn[info.order(drawn)]
    points = problem.correspondences.subset(drawn.astype(np.int32)).points1
    low, high = np.quantile(points, (0.005, 0.995), axis=0)
    cells = 64  # per side of image 1; the default working set has two matches per cell
    place = np.clip((points - low) / np.maximum(high - low, 1e-12) * cells, 0, cells - 1).astype(int)
    cell = place[:, 0] * cells + place[:, 1]
    by_cell = np.argsort(cell, kind="stable")
    firsts = np.flatnonzero(np.diff(cell[by_cell], prepend=-1))
    rank = np.empty(len(cell), int)  # of each match within its cell
    rank[by_cell] = np.arange(len(cell)) - np.repeat(firsts, np.diff(firsts, append=len(cell)))
    return np.sort(drawn[np.argsort(rank, kind="stable")[:size]]).astype(np.int32)


def widen(problem: Problem, chosen: Indices, found: Estimate, tuning: Tuning, keep_trace: bool) -> Estimate:
    """Refine the estimate of a working set (k,) on all matches of the problem, and score all of them.

    Rounds before the last one are dropped unless `keep_trace` is True: extending them takes time.
    """
    if found.model is not None:
        model = _refine_on_all(problem, found, tuning)
        msac_scores = problem.msac_scores(model[None], found.max_error)[0]
        rounds = (*found.rounds[:-1], replace(found.rounds[-1], best=model)) if found.rounds else ()
        of_part, found = found.assess, replace(found, model=model, msac_scores=msac_scores, rounds=rounds)
        found = replace(found, assess=partial(_assess_on_all, problem, found, tuning, of_part))
    rounds = found.rounds if keep_trace else found.rounds[-1:]
    return replace(found, rounds=tuple(_widen_round(problem, chosen, each) for each in rounds))


def extend(problem: Problem, part: Indices, found: Estimate) -> Estimate:
    """Score all matches of the problem with the model that was estimated from a part (k,) of them."""
    scores = None if found.model is None else problem.msac_scores(found.model[None], found.max_error)[0]
    return replace(found, msac_scores=scores, rounds=tuple(_widen_round(problem, part, each) for each in found.rounds))


def _assess_on_all(
    problem: Problem, found: Estimate, tuning: Tuning, assess_part: Callable[[], Assessment]
) -> Assessment:
    """Return the assessment of a working set, with the covariance from all matches."""
    assert found.model is not None
    weights = (problem.distances(found.model) < tuning.wide_reach * found.noise).astype(float)
    covariance = pose_covariance(problem, found, weights, tuning.wide_loss_scale * found.noise)
    return replace(assess_part(), covariance=covariance)


def _refine_on_all(problem: Problem, found: Estimate, tuning: Tuning) -> Array:
    """Return the model of an estimate, refined on all matches near it."""
    assert found.model is not None
    options = RefineOptions(
        loss_scale=tuning.wide_loss_scale * found.noise,
        max_residual=tuning.wide_reach * found.noise,
        intrinsics=problem.intrinsics_prior(found.noise),
    )
    return np.asarray(problem.refine(found.model[None], options)[0])


def _widen_round(problem: Problem, chosen: Indices, record: Round) -> Round:
    """Extend the record of a round on a working set (k,) to all matches; the other matches have state zero."""
    state = np.zeros((problem.num_points, record.state.shape[1]), np.float32)
    state[chosen] = record.state
    if record.best is None:
        probabilities = np.full(problem.num_points, record.probabilities.mean(), np.float32)
    else:
        distances = problem.distances(record.best) / record.max_error
        probabilities = _by_distance(distances, chosen, record.probabilities)
    probabilities[chosen] = record.probabilities
    return replace(
        record,
        samples=chosen[record.samples],
        msac_scores=problem.msac_scores(record.models, record.max_error),
        state=state,
        probabilities=probabilities,
    )


def _by_distance(distances: Array, chosen: Indices, probabilities: Floats) -> Floats:
    """Return probabilities (n,) for distances (n,) to a model: the mean of the chosen matches at similar distances."""
    per_threshold, last = 8, 32  # bins: probabilities hardly change beyond four thresholds
    bins = np.minimum(distances * per_threshold, last).astype(int)
    counts, totals = (np.bincount(bins[chosen], weights, last + 1) for weights in (None, probabilities))
    known = counts > 0
    means = np.interp(np.arange(len(counts)), np.flatnonzero(known), totals[known] / counts[known])
    return np.asarray(means[bins], np.float32)
