"""Selection: which of many models are worth refining, and which of those are worth attending to."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import most_likely
from caransac.robust.problems import Problem
from caransac.robust.refinement import local_steps

COARSE_POINTS = 256  # likely points that models are first compared on, and then on `Problem.compared_on`
SHORTLIST = 4  # models that pass the coarse comparison, as a multiple of those that are refined
FINALISTS = 3  # models compared in search of distinct ones, as a multiple of those attended to
SAME_MODEL = 0.95  # two models whose scores have a larger cosine are one to the attention


def likely_subset(problem: Problem, probabilities: Floats, count: int) -> Problem:
    """The problem of its `count` most probable points, or of all of them."""
    return problem if problem.num_points <= count else problem.subset(most_likely(probabilities, count))


def promising(coarse: Problem, fine: Problem, models: Array, count: int, max_error: float) -> Array:
    """The `count` models with the largest consensus on the fine points of those that have it on the coarse ones.

    They are refined by the LO step. (m, ...) -> (k, ...).
    """
    points, options = (coarse.correspondences, fine.correspondences), local_steps(fine, max_error)
    return fine.model_kernels.promising(models, *points, max_error, SHORTLIST * count, count, options)


def most_distinct(problem: Problem, models: Array, count: int, max_error: float) -> tuple[Array, Floats]:
    """Distinct ones of the models (m, ...) with the largest consensus by a threshold, as in `most_supported`.

    Returns:
        (k, ...) up to `count` models, the largest consensus first, and (k, n) their MSAC scores at the problem's own
        threshold.
    """
    thresholds = max_error, problem.max_error
    return problem.model_kernels.attend(
        models, problem.correspondences, problem.regions, *thresholds, FINALISTS * count, count, SAME_MODEL
    )


def most_supported(problem: Problem, models: Array, max_error: float) -> Array:
    """The model (1, ...) of models (m, ...) with the largest consensus.

    Matches of one place fail together (a repeated pattern, a second motion), so that evidence all over the images, in
    many of the regions, counts for more than a heap of it.
    """
    return models[[np.argmax(problem.spread_consensus(models, max_error))]]
