"""The steps of a round of CA-RANSAC. Options switch parts of them off, for the ablations of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Indices, Regions, most_likely, sample_uniform
from caransac.learned.state_network import MatchStates
from caransac.options import Options
from caransac.results import Round
from caransac.robust.loop.refinement import local_steps, loss_scale, match_weights, refine_weighted, with_initial
from caransac.robust.loop.sampling import DrawStep, PoolSampler, Sampler, sampling_pool
from caransac.robust.loop.scale import Scale, likely_matches
from caransac.robust.loop.stopping import round_size
from caransac.robust.problems import Problem
from caransac.robust.records import MatchInfo
from caransac.tuning import Tuning

Draw = Callable[[Round], Indices]  # the record of the last round -> minimal samples (S, sample_size)


class Steps:
    """The steps of a round, each a method that takes the record of the last round."""

    def __init__(
        self,
        problem: Problem,
        scale: Scale,
        network: MatchStates,
        prior: Floats,
        info: MatchInfo,
        options: Options,
        draw: DrawStep | None = None,
    ) -> None:
        """Prepare the steps.

        Args:
            problem: the matches.
            scale: scale of the problem.
            network: the trained state network.
            prior: (n,) inlier probabilities before any model.
            info: scores and features of the matches.
            options: see `Options`; ``state_update``, ``adaptive_sampling``, ``adaptive_refinement`` and
                ``tuning.spread_ranking`` switch ablations.
            draw: see `pipeline.estimate_model`.
        """
        self.problem, self.scale, self.network, self.options = problem, scale, network, options
        self.likely = likely_matches(problem, prior, options.tuning)
        self.regions = rank_regions(problem, prior, options.tuning)
        self.draw = _choose_draw(problem, info, options, draw)

    def hypothesise(self, samples: Indices, last: Round) -> Array:
        """Solve samples (S, sample_size) and refine the most promising models; return (m, ...), the best so far first.

        The models are compared and refined on the most probable matches. A round with fewer samples refines fewer
        models.
        """
        problem, options, tuning = self.problem, self.options, self.options.tuning
        max_error = self.scale.search_error(last.noise)
        models = problem.solve(samples)
        models = models if tuning.spread_ranking else with_best(last, models)
        compared = max(tuning.compared_on, problem.num_points // 4)
        likely = likely_subset(problem, last.probabilities, compared).correspondences
        steps = local_steps(problem, max_error, last.noise, tuning)
        count = max(options.local_models * len(samples) // options.samples_per_round, options.top_models)
        models = problem.model_kernels.promising(models, likely, max_error, count, steps)
        models = with_initial(problem, models, max_error, steps) if last.best is None else models
        return with_best(last, models) if tuning.spread_ranking else models

    def attend(self, models: Array, last: Round) -> Array:
        """Return the distinct models with the largest consensus: (m, ...) -> (k, ...), the best first.

        Matches of one place are often wrong together (a repeated pattern, a second motion). Consensus in many regions
        of the images therefore counts more than the same consensus in one region.
        """
        count, tuning = self.options.top_models, self.options.tuning
        if not tuning.spread_ranking:
            totals = self.problem.msac_scores(models, self.scale.max_error(last.noise)).sum(axis=1, dtype=float)
            return models[np.argsort(-totals, kind="stable")[:count]]
        return self.problem.model_kernels.most_distinct(
            models,
            self.problem.correspondences,
            self.scale.search_error(last.noise),
            self.regions,
            count,
            tuning.same_model,
        )

    def measure(self, model: Array, last: Round) -> float:
        """Return the noise of the right matches of a model."""
        return self.scale.measure(self.likely, model, last.noise)

    def update(self, last: Round, msac_scores: Floats) -> tuple[Floats, Floats]:
        """Update states (n, c) and probabilities (n,) with the MSAC scores (k, n) of the attended models."""
        if not self.options.state_update:
            return last.state, last.probabilities
        return self.network.update(last.state, msac_scores)

    def refine(self, model: Array, probabilities: Floats, noise: float) -> Array:
        """Refine a model on all matches, weighted by their probabilities (n,), or on its inliers."""
        problem = self.problem
        if self.options.adaptive_refinement and problem.traits.weighted:
            weights = problem.share(match_weights(self.network, probabilities, self.options.tuning.min_weight))
            scale = loss_scale(problem, model, weights, noise, self.options.tuning)
            return refine_weighted(problem, model, weights, noise, scale)
        inliers = problem.inliers(model, self.scale.max_error(noise))
        return refine_weighted(problem, model, inliers.astype(float), noise)

    def average(self, last: Round) -> Array | None:
        """Return the answer: the mean of the best model and the models that agree with it, weighted by consensus.

        Models of about the same consensus are about equally probable and have different errors, so their mean has a
        smaller error.
        """
        tuning, problem = self.options.tuning, self.problem
        if last.best is None or not problem.traits.has_mean or tuning.agreeing_deg == 0:
            return last.best
        return problem.model_kernels.mean_of_agreeing(
            np.concatenate([last.best[None], last.models]),
            problem.correspondences,
            self.scale.search_error(last.noise),
            self.regions,
            math.radians(tuning.agreeing_deg),
            tuning.mean_exponent,
        )


def _choose_draw(problem: Problem, info: MatchInfo, options: Options, draw_step: DrawStep | None) -> Draw:
    """Return the step that draws samples from the pool. For some problems, it draws a share of them by score."""
    tuning = options.tuning
    by_score = problem.traits.by_score
    best_first = info.order() if by_score > 0 and info.scores is not None else None
    static = None if options.adaptive_sampling else _static_pool(problem, info, tuning.static_ratio)

    def draw(last: Round) -> Indices:
        first, likely = last.num_hypotheses, last.probabilities if static is None else static
        pool = sampling_pool(likely, problem.sample_size, options.samples_per_round, tuning)
        num = round_size(likely[pool], last, problem, options)
        num_by_score = 0 if best_first is None else int(by_score * num)
        sampler: Sampler = PoolSampler(pool, problem.sample_size, options.seed)
        sampler = sampler if draw_step is None else draw_step(problem, sampler)
        samples = sampler.draw(first, num - num_by_score)
        if best_first is None or num_by_score == 0:
            return samples
        sampler = PoolSampler(best_first, problem.sample_size, options.seed, ordered=True)
        return np.concatenate([samples, sampler.draw(int(first * by_score), num_by_score)])

    return draw


def _static_pool(problem: Problem, info: MatchInfo, max_ratio: float) -> Floats:
    """Return the probabilities for sampling that does not adapt: 1 for matches with a low ratio, or for all matches."""
    if info.scores is None or info.score_kind != "ratio":
        return np.ones(problem.num_points, np.float32)
    return (info.scores < max_ratio).astype(np.float32)


def with_best(last: Round, models: Array) -> Array:
    """Prepend the best model so far, if there is one, to models (m, ...)."""
    return models if last.best is None else np.concatenate([last.best[None], models])


def likely_subset(problem: Problem, probabilities: Floats, count: int) -> Problem:
    """Return the subproblem of the `count` most probable matches, or the problem itself if it has no more."""
    return problem if problem.num_points <= count else problem.subset(most_likely(probabilities, count))


def rank_regions(problem: Problem, prior: Floats, tuning: Tuning) -> Regions:
    """Return the image cells of the matches, weighted by their prior. The ranking of models uses them."""
    return Regions(problem.correspondences, problem.share(prior), (tuning.max_error / tuning.rank_scale) ** 2)


def quick_model(problem: Problem, likely: Floats, max_error: float, noise: float, options: Options) -> Array | None:
    """Return the best model of a few samples, locally refined, or None. `likely` (n,) are inlier probabilities."""
    size, count = problem.sample_size, 64  # a quarter of a round: the model is only compared with the answer
    pool = sampling_pool(likely, size, count, options.tuning)
    models = problem.solve(sample_uniform(pool, size, count, seed=options.seed))
    if len(models) == 0:
        return None
    kernels, points = problem.model_kernels, problem.correspondences
    steps = local_steps(problem, max_error, noise, options.tuning)
    models = kernels.promising(models, points, max_error, options.top_models, steps)
    return np.asarray(models[kernels.top(models, points, max_error, 1)[0]])
