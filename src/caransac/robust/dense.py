"""Very many matches: the method works on some of them, spread over the image; all of them then refine its answer.

Dense matchers give more matches than a model of a few numbers needs to be found. What is left to gain by all of them is
precision, by plain averaging, where weights that the model itself gave would only confirm it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Indices, RefineOptions
from caransac.results import Round
from caransac.robust.estimate import Estimate
from caransac.robust.problems import Problem
from caransac.robust.refinement import MAX_ERROR_IN_NOISE

DENSE = 20_000  # more matches than this are dense
WORKED_ON, DRAWN = 4096, 65_536  # matches the method works on, of so many drawn at random
CELLS = 64  # of a grid on image 1, along either side
LOSS_SCALE_IN_NOISE, REACH_IN_NOISE = 3.0, 15.0  # scale of the final Cauchy loss, and how far points count
BINS_PER_THRESHOLD, FARTHEST = 8, 4  # thresholds


def spread_matches(problem: Problem, quality: Array | None, seed: int) -> Indices:
    """Indices (WORKED_ON,) of matches spread over image 1, the better ones of each place by quality (n,)."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice(problem.num_points, min(DRAWN, problem.num_points), replace=False, shuffle=False)
    if quality is not None:
        drawn = drawn[np.argsort(-quality[drawn], kind="stable")]
    points = problem.correspondences.subset(drawn.astype(np.int32)).points1
    low, high = np.quantile(points, (0.005, 0.995), axis=0)
    place = np.clip((points - low) / np.maximum(high - low, 1e-12) * CELLS, 0, CELLS - 1).astype(int)
    cell = place[:, 0] * CELLS + place[:, 1]
    by_cell = np.argsort(cell, kind="stable")
    firsts = np.flatnonzero(np.diff(cell[by_cell], prepend=-1))
    rank = np.empty(len(cell), int)  # of each match among those of its cell
    rank[by_cell] = np.arange(len(cell)) - np.repeat(firsts, np.diff(firsts, append=len(cell)))
    return np.sort(drawn[np.argsort(rank, kind="stable")[:WORKED_ON]]).astype(np.int32)


def widen(problem: Problem, chosen: Indices, found: Estimate, keep_trace: bool) -> Estimate:
    """The estimate of some points as one of all: refined on all, and all judged by it.

    Args:
        problem: all points.
        chosen: (k,) those that the estimate is of.
        found: the estimate.
        keep_trace: whether rounds before the last one are wanted.
    """
    rounds = found.rounds if keep_trace else found.rounds[-1:]
    if found.model is None:
        return replace(found, rounds=tuple(_widen_round(problem, chosen, each) for each in rounds))
    found = refine_on_all(problem, found)
    assert found.model is not None
    model, rounds = found.model, found.rounds if keep_trace else found.rounds[-1:]
    return replace(
        found,
        msac_scores=problem.msac_scores(model[None], problem.max_error)[0],
        rounds=tuple(_widen_round(problem, chosen, each) for each in rounds),
    )


def refine_on_all(problem: Problem, found: Estimate) -> Estimate:
    """The estimate, which has a model, with that refined on all points of the problem, as they are near it."""
    assert found.model is not None
    noise = found.noise or 1 / (MAX_ERROR_IN_NOISE * problem.tail)
    options = RefineOptions(
        loss_scale=LOSS_SCALE_IN_NOISE * noise * problem.max_error,
        max_residual=REACH_IN_NOISE * noise * problem.max_error,
        intrinsics=problem.intrinsics_prior(noise),
    )
    model = problem.refine(found.model[None], options)[0]
    rounds = (*found.rounds[:-1], replace(found.rounds[-1], best=model)) if found.rounds else ()
    return replace(found, model=model, rounds=rounds)


def _widen_round(problem: Problem, chosen: Indices, record: Round) -> Round:
    """The record of a round on some points as one on all; the state of the others is not known, and zero."""
    state = np.zeros((problem.num_points, record.state.shape[1]), np.float32)
    state[chosen] = record.state
    if record.best is None:
        probabilities = np.full(problem.num_points, record.probabilities.mean(), np.float32)
    else:
        probabilities = _by_distance(problem.distances(record.best) / problem.max_error, chosen, record.probabilities)
    probabilities[chosen] = record.probabilities
    return replace(
        record,
        samples=chosen[record.samples],
        msac_scores=problem.msac_scores(record.models, problem.max_error),
        state=state,
        probabilities=probabilities,
    )


def _by_distance(distances: Array, chosen: Indices, probabilities: Floats) -> Floats:
    """Probabilities (n,) of points by their distances (n,) to a model: the mean of the chosen ones as far from it."""
    bins = np.minimum(distances * BINS_PER_THRESHOLD, FARTHEST * BINS_PER_THRESHOLD).astype(int)
    counts, totals = (
        np.bincount(bins[chosen], weights, FARTHEST * BINS_PER_THRESHOLD + 1) for weights in (None, probabilities)
    )
    known = counts > 0
    means = np.interp(np.arange(len(counts)), np.flatnonzero(known), totals[known] / counts[known])
    return np.asarray(means[bins], np.float32)
