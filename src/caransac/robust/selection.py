"""Selection: which of many models are worth refining, and which of those are worth attending to."""

from __future__ import annotations

import math

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Indices, Regions, most_likely, sample_uniform
from caransac.options import Options
from caransac.robust.problems import Problem
from caransac.robust.refinement import local_steps
from caransac.robust.scale import Scale
from caransac.tuning import Tuning

QUICK_SAMPLES = 64  # minimal samples, where a model is sought beside the loop


def likely_subset(problem: Problem, probabilities: Floats, count: int) -> Problem:
    """The problem of its `count` most probable matches, or of all of them."""
    return problem if problem.num_points <= count else problem.subset(most_likely(probabilities, count))


def promising(problem: Problem, models: Array, probabilities: Floats, count: int, scale: Scale, noise: float) -> Array:
    """Compare models (m, ...) on likely matches and refine the `count` best there by the LO step: (k, ...)."""
    max_error = scale.search_error(noise)
    likely = likely_subset(problem, probabilities, scale.tuning.compared_on).correspondences
    options = local_steps(problem, max_error, noise, scale.tuning)
    return problem.model_kernels.promising(models, likely, max_error, count, options)


def quick_model(problem: Problem, pool: Indices, max_error: float, noise: float, options: Options) -> Array | None:
    """The best model of a few samples from a pool, refined; None where they have none. It need not be precise."""
    models = problem.solve(sample_uniform(pool, problem.sample_size, QUICK_SAMPLES, seed=options.seed))
    if len(models) == 0:
        return None
    models = problem.best(models, options.top_models, max_error)
    models = problem.refine(models, local_steps(problem, max_error, noise, options.tuning))
    return np.asarray(problem.best(models, 1, max_error)[0])


def rank_regions(problem: Problem, prior: Floats, tuning: Tuning) -> Regions:
    """Return the cells of the matches in both images, each match weighted by its prior, to rank models by."""
    return Regions(problem.correspondences, problem.share(prior), (tuning.max_error / tuning.rank_scale) ** 2)


def most_distinct(problem: Problem, models: Array, regions: Regions, count: int, scale: Scale, noise: float) -> Array:
    """Up to `count` distinct ones of the models (m, ...), the largest consensus first.

    Matches of one place fail together (a repeated pattern, a second motion), so that evidence all over the images, in
    many of the regions, counts for more than a cluster of it.
    """
    max_error, same = scale.search_error(noise), scale.tuning.same_model
    return problem.model_kernels.most_distinct(models, problem.correspondences, max_error, regions, count, same)


def mean_of_agreeing(problem: Problem, poses: Array, regions: Regions, scale: Scale, noise: float) -> Array:
    """The mean of the poses (m, 3, 4) that agree with the first, weighted by a power of their consensus: (3, 4).

    Poses of about the same consensus are about as probable, and their errors differ: that of their mean is smaller.
    """
    tuning, max_error = scale.tuning, scale.search_error(noise)
    reach = math.radians(tuning.agreeing_deg)
    return problem.model_kernels.mean_of_agreeing(
        poses, problem.correspondences, max_error, regions, reach, tuning.mean_exponent
    )


def largest_consensus(problem: Problem, models: Array, count: int, scale: Scale, noise: float) -> Array:
    """The `count` models (m, ...) with the largest total of MSAC scores, the largest first."""
    totals = problem.msac_scores(models, scale.max_error(noise)).sum(axis=1, dtype=float)
    return models[np.argsort(-totals, kind="stable")[:count]]
