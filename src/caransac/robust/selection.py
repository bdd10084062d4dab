"""Selection: which of many models are worth refining, and which of those are worth attending to."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Regions, most_likely
from caransac.robust.problems import Problem
from caransac.robust.refinement import local_steps
from caransac.robust.scale import Scale
from caransac.tuning import Tuning


def likely_subset(problem: Problem, probabilities: Floats, count: int) -> Problem:
    """The problem of its `count` most probable matches, or of all of them."""
    return problem if problem.num_points <= count else problem.subset(most_likely(probabilities, count))


def promising(problem: Problem, models: Array, probabilities: Floats, count: int, scale: Scale, noise: float) -> Array:
    """The `count` models with the largest consensus on likely matches, refined by the LO step: (m, ...) -> (k, ...).

    They are compared coarse to fine: all of them on few matches, the better ones on more, where the best are refined.
    """
    tuning, max_error = scale.tuning, scale.search_error(noise)
    coarse, fine = (likely_subset(problem, probabilities, size).correspondences for size in tuning.compared_on)
    options = local_steps(problem, max_error, noise, tuning)
    return problem.model_kernels.promising(models, coarse, fine, max_error, tuning.shortlist * count, count, options)


def rank_regions(problem: Problem, prior: Floats, tuning: Tuning) -> Regions:
    """Where the matches lie in either image, and what each counts where models are ranked."""
    sharpness = (tuning.search_error / tuning.rank_scale) ** 2
    weights = problem.share(prior ** np.float32(tuning.prior_exponent))
    return Regions(problem.correspondences, weights, sharpness)


def most_distinct(problem: Problem, models: Array, regions: Regions, count: int, scale: Scale, noise: float) -> Array:
    """Up to `count` distinct ones of the models (m, ...), the largest consensus first.

    Matches of one place fail together (a repeated pattern, a second motion), so that evidence all over the images, in
    many of the regions, counts for more than a cluster of it.
    """
    max_error, same = scale.search_error(noise), scale.tuning.same_model
    return problem.model_kernels.most_distinct(models, problem.correspondences, max_error, regions, count, same)


def largest_consensus(problem: Problem, models: Array, count: int, scale: Scale, noise: float) -> Array:
    """The `count` models (m, ...) with the largest total of MSAC scores, the largest first."""
    totals = problem.msac_scores(models, scale.max_error(noise)).sum(axis=1, dtype=float)
    return models[np.argsort(-totals, kind="stable")[:count]]
