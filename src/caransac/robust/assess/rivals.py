"""Rivals: models of many matches that the answer does not explain.

A moving object, a pattern that repeats, or an overlay that does not move at all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array
from caransac.geometry.mirroring import mirrored_share
from caransac.kernels import most_likely, where
from caransac.options import Options
from caransac.robust.loop.sampling import sampling_pool
from caransac.robust.loop.steps import QUICK_SAMPLES, quick_model
from caransac.robust.problems import Problem
from caransac.robust.records import Estimate, Rivalry

REACH = 2.0  # in thresholds: matches that are closer to the answer are its own
WORTH = 0.05  # likely matches that are not explained, in explained ones: with fewer no rival is sought
LIKELY = 1024  # matches that are considered, the most probable by prior
CHANCE_REACH = 2.0, 5.0  # in thresholds: matches this far from a model agree with it by chance alone
# A rival is told of if it has this share of the matches of the answer, this many, and this many times those that agree
# with it by chance.
MIN_SHARE, MIN_MATCHES, MIN_EXCESS = 0.25, 20, 2.0


def find_rivals(problem: Problem, found: Estimate, options: Options) -> Rivalry:
    """The strongest model of the likely matches that an answer does not explain; the answer must have a prior.

    The matches between two images that do not move count as a model, without being told as one.
    """
    prior = found.prior
    if found.model is None or found.msac_scores is None or prior is None:
        return Rivalry(problem.no_models, 0.0)
    # Points behind a camera are explained as well: without parallax, any side will do.
    rest = where(~(problem.distances(found.model) < REACH * found.max_error))
    own = max(float(np.count_nonzero(found.msac_scores > 0)), 1.0)
    others = problem.subset(rest)
    still = np.count_nonzero(unmoved(others, found.max_error)) / own
    none = Rivalry(problem.no_models, still)
    likely = rest[most_likely(prior[rest], LIKELY)]
    likely_prior = prior[likely]
    if len(likely) < 2 * problem.sample_size or float(likely_prior.sum()) < WORTH * own:
        return none
    part = problem.subset(likely)
    pool = sampling_pool(likely_prior, problem.sample_size, QUICK_SAMPLES, options.tuning)
    max_error = options.tuning.max_error * found.noise
    best = quick_model(part, pool, max_error, found.noise, options)
    if best is None:
        return none
    beyond_chance, by_chance = _count(others, best, max_error)
    share = max(beyond_chance - problem.sample_size, 0.0) / own  # any model goes through its sample
    told = share >= MIN_SHARE and beyond_chance >= max(MIN_MATCHES, MIN_EXCESS * by_chance)
    return Rivalry(best[None] if told else problem.no_models, max(share, still))


def find_mirroring(problem: Problem, found: Estimate) -> float | None:
    """Share of the inliers of two images whose neighbourhood is turned over; None if too few tell."""
    if found.msac_scores is None or problem.traits.degeneracy == "one view":
        return None
    inliers = where(found.msac_scores > 0)
    some = problem.subset(inliers[:: len(inliers) // 128 + 1])  # copying all takes as long as looking at some
    return mirrored_share(some.points1, some.points2)


def unmoved(problem: Problem, max_error: float) -> NDArray[np.bool_]:
    """Which matches (n,) are in the same place in both images; none if image 2 is none, but space."""
    if problem.traits.degeneracy == "one view":
        return np.zeros(problem.num_points, bool)
    x, y = (problem.points2 - problem.points1).T
    return np.asarray(x**2 + y**2 < max_error**2)


def _count(rest: Problem, model: Array, max_error: float) -> tuple[float, float]:
    """How many matches a model has beyond those by chance, and these: as many as lie in as much room farther away."""
    near, middle, far = (np.count_nonzero(rest.inliers(model, factor * max_error)) for factor in (1.0, *CHANCE_REACH))
    low, high = (factor**rest.error_dimensions for factor in CHANCE_REACH)
    by_chance = (far - middle) / (high - low)
    return max(near - by_chance, 0.0), by_chance
