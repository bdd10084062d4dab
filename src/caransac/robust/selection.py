"""Selection: which of many models are worth refining, and which of those are worth attending to."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Indices, Regions
from caransac.robust.problems import Problem

COARSE_POINTS, FINE_POINTS = 512, 2048  # likely points that models are first compared on, and then
SHORTLIST = 4  # models that pass the coarse comparison, as a multiple of those that are refined
FINALISTS = 3  # models compared in search of distinct ones, as a multiple of those attended to
SAME_MODEL = 0.95  # two models whose scores have a larger cosine are one to the attention


def likely_subset(problem: Problem, probabilities: Floats, count: int) -> Problem:
    """The problem of its `count` most probable points, in no particular order, or of all of them."""
    return problem if problem.num_points <= count else problem.subset(most_likely(probabilities, count))


def most_likely(probabilities: Floats, count: int) -> Indices:
    """Indices of the `count` most probable points, in no particular order, or of all of them."""
    if len(probabilities) <= count:
        return np.arange(len(probabilities), dtype=np.int32)
    return np.argpartition(-probabilities, count)[:count].astype(np.int32)


def most_supported(problem: Problem, models: Array, count: int, max_error: float, regions: Regions) -> Array:
    """The `count` models (m, ...) with the largest consensus, largest first.

    Matches of one place fail together (a repeated pattern, a second motion), so that evidence all over the images, in
    many of the regions, counts for more than a heap of it.
    """
    consensus = problem.spread_consensus(models, max_error, regions)
    return models[np.argsort(-consensus, kind="stable")[:count]]
