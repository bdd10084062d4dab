"""The steps of a round of CA-RANSAC: chosen before the loop, so that an ablation is no branch in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Indices
from caransac.learned.sample_quality import load_quality
from caransac.learned.state_network import MatchStates
from caransac.options import Options
from caransac.results import Round
from caransac.robust.match_info import MatchInfo
from caransac.robust.problems import Problem
from caransac.robust.refinement import match_weights, refine_weighted
from caransac.robust.sampling import ProsacSampler, Sampler, SelectiveSampler, UniformSampler, sampling_pool
from caransac.robust.scale import Scale, likely_matches
from caransac.robust.selection import largest_consensus, mean_of_agreeing, most_distinct, promising, rank_regions


@dataclass(frozen=True, eq=False)
class Strategies:
    """The steps of a round, which ablations replace.

    Attributes:
        draw: the record of the last round -> samples (S, sample_size).
        hypothesise: samples and the record of the last round -> models (m, ...), the most promising ones refined, and
            the best one so far.
        attend: models (m, ...) and the record of the last round -> distinct ones (k, ...), the best first.
        measure: a model and the record of the last round -> the noise of its right matches.
        update: the record of the last round and the MSAC scores (k, n) of models -> state (n, c), probabilities (n,).
        refine: a model, the probabilities (n,) and the noise -> the model refined on all matches.
        average: the record of the last round -> the answer: the mean of its models that agree with the best one.
    """

    draw: Callable[[Round], Indices]
    hypothesise: Callable[[Indices, Round], Array]
    attend: Callable[[Array, Round], Array]
    measure: Callable[[Array, Round], float]
    update: Callable[[Round, Floats], tuple[Floats, Floats]]
    refine: Callable[[Array, Floats, float], Array]
    average: Callable[[Round], Array | None]


def choose_strategies(
    problem: Problem, scale: Scale, network: MatchStates, prior: Floats, info: MatchInfo, options: Options
) -> Strategies:
    """The strategies of CA-RANSAC, or of its ablations.

    Args:
        problem: the matches.
        scale: of the problem.
        network: the trained state network.
        prior: (n,) inlier probabilities before any model.
        info: what is known of the matches.
        options: ``state_update``, ``adaptive_sampling``, ``adaptive_refinement`` and ``tuning.spread_ranking`` choose.
    """
    tuning = options.tuning
    likely = likely_matches(problem, prior, tuning)
    regions = rank_regions(problem, prior, tuning)

    def refine_promising(models: Array, last: Round) -> Array:
        return promising(problem, models, last.probabilities, options.local_models, scale, last.noise)

    def hypothesise_beside_best(samples: Indices, last: Round) -> Array:
        return with_best(last, refine_promising(problem.solve(samples), last))

    def hypothesise_from_best(samples: Indices, last: Round) -> Array:
        return refine_promising(with_best(last, problem.solve(samples)), last)

    def attend_to_distinct(models: Array, last: Round) -> Array:
        return most_distinct(problem, models, regions, options.top_models, scale, last.noise)

    def attend_to_largest(models: Array, last: Round) -> Array:
        return largest_consensus(problem, models, options.top_models, scale, last.noise)

    def measure(model: Array, last: Round) -> float:
        return scale.measure(likely, model, last.noise)

    def update(last: Round, msac_scores: Floats) -> tuple[Floats, Floats]:
        return network.update(last.state, msac_scores)

    def keep(last: Round, _msac_scores: Floats) -> tuple[Floats, Floats]:
        return last.state, last.probabilities

    def refine_by_probability(model: Array, probabilities: Floats, noise: float) -> Array:
        weights = problem.share(match_weights(network, probabilities, tuning.min_weight))
        return refine_weighted(problem, model, weights, noise)

    def refine_on_inliers(model: Array, _probabilities: Floats, noise: float) -> Array:
        inliers = problem.inliers(model, scale.max_error(noise))
        return refine_weighted(problem, model, inliers.astype(float), noise)

    def average_agreeing(last: Round) -> Array | None:
        if last.best is None:
            return None
        poses = np.concatenate([last.best[None], last.models])
        return mean_of_agreeing(problem, poses, regions, scale, last.noise)

    def keep_best(last: Round) -> Array | None:
        return last.best

    return Strategies(
        draw=_choose_draw(problem, info, options),
        hypothesise=hypothesise_beside_best if tuning.spread_ranking else hypothesise_from_best,
        attend=attend_to_distinct if tuning.spread_ranking else attend_to_largest,
        measure=measure,
        update=update if options.state_update else keep,
        refine=refine_by_probability if options.adaptive_refinement else refine_on_inliers,
        average=average_agreeing if problem.has_mean and tuning.agreeing_deg > 0 else keep_best,
    )


def _choose_draw(problem: Problem, info: MatchInfo, options: Options) -> Callable[[Round], Indices]:
    """How samples are drawn: from the sampling pool and, of some problems, a share of them by score."""
    tuning = options.tuning
    quality = load_quality(options.sample_quality)
    best_first = info.order() if problem.by_score > 0 and info.scores is not None else None
    static = None if options.adaptive_sampling else _static_pool(problem, info, tuning.static_ratio)

    def draw(last: Round) -> Indices:
        first, num = last.num_hypotheses, options.samples_per_round
        num_by_score = 0 if best_first is None else int(problem.by_score * num)
        pool = sampling_pool(last.probabilities if static is None else static, problem.sample_size, num, tuning)
        sampler: Sampler = UniformSampler(pool, problem.sample_size, options.seed)
        samples = SelectiveSampler(sampler, problem, quality, options.oversampling).draw(first, num - num_by_score)
        if best_first is None or num_by_score == 0:
            return samples
        sampler = ProsacSampler(best_first, problem.sample_size, options.seed)
        return np.concatenate([samples, sampler.draw(int(first * problem.by_score), num_by_score)])

    return draw


def with_best(last: Round, models: Array) -> Array:
    """Models (m, ...), after the best one so far if there is one."""
    return models if last.best is None else np.concatenate([last.best[None], models])


def _static_pool(problem: Problem, info: MatchInfo, max_ratio: float) -> Floats:
    """What to sample by where sampling does not adapt: matches of low ratio or, without ratios, all alike."""
    if info.scores is None or info.score_kind != "ratio":
        return np.ones(problem.num_points, np.float32)
    return (info.scores < max_ratio).astype(np.float32)
