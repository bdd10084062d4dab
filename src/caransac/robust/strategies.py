"""How CA-RANSAC draws, believes and refines: chosen before the loop, so that an ablation is no branch in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Indices
from caransac.learned.sample_quality import Quality, geometric_quality
from caransac.learned.state_network import StateNetwork
from caransac.options import Options
from caransac.results import Round
from caransac.robust.problems import Problem
from caransac.robust.refinement import (
    LOSS_SCALE_IN_NOISE,
    belief_weights,
    estimate_noise,
    refine_weighted,
    trusted_points,
)
from caransac.robust.sampling import ProsacSampler, Sampler, SelectiveSampler, UniformSampler, likely_inliers


@dataclass(frozen=True, eq=False)
class Strategies:
    """The three steps of a round that an ablation may replace.

    Attributes:
        draw: the record of the last round and the number of the next sample -> samples (S, sample_size).
        update: the record of the last round and the MSAC scores (k, n) of this one's models -> state (n, c) and
            probabilities (n,).
        refine: a model and the probabilities (n,) -> the refined model and the noise in thresholds.
    """

    draw: Callable[[Round, int, int], Indices]
    update: Callable[[Round, Floats], tuple[Floats, Floats]]
    refine: Callable[[Array, Floats], tuple[Array, float]]


def choose_strategies(
    problem: Problem,
    network: StateNetwork,
    prior: Floats,
    options: Options,
    static_pool: Floats | None = None,
    quality: Quality = geometric_quality,
    best_first: Indices | None = None,
) -> Strategies:
    """The strategies of CA-RANSAC, or of its ablations.

    Args:
        problem: the correspondences.
        network: the trained state network.
        prior: (n,) inlier probabilities before any model.
        options: ``state_update``, ``adaptive_sampling`` and ``adaptive_refinement`` choose.
        static_pool: (n,) what to sample by where sampling does not adapt.
        quality: what tells promising samples, with ``options.oversampling``.
        best_first: (n,) the matches by their scores, if they have any.
    """
    trusted = trusted_points(problem, prior)

    def draw_from(likely: Floats, first: int, num: int) -> Indices:
        num_by_score = 0 if best_first is None else int(problem.by_score * num)
        count = num - num_by_score
        pool = likely_inliers(likely, problem.sample_size, options.samples_per_round)
        sampler: Sampler = UniformSampler(pool, problem.sample_size, options.seed)
        samples = SelectiveSampler(sampler, problem, quality, options.oversampling).draw(first, count)
        if best_first is None or num_by_score == 0:
            return samples
        sampler = ProsacSampler(best_first, problem.sample_size, options.seed)
        return np.concatenate([samples, sampler.draw(int(first * problem.by_score), num_by_score)])

    def update(last: Round, msac_scores: Floats) -> tuple[Floats, Floats]:
        return network.update(last.state, msac_scores)

    def refine_by_belief(model: Array, probabilities: Floats) -> tuple[Array, float]:
        noise = estimate_noise(trusted, model)
        weights = belief_weights(network, probabilities, prior)
        loss_scale = LOSS_SCALE_IN_NOISE * problem.tail * noise * problem.max_error
        return refine_weighted(problem, model, weights, loss_scale), noise

    def refine_on_inliers(model: Array, _probabilities: Floats) -> tuple[Array, float]:
        noise = estimate_noise(trusted, model)
        return refine_weighted(problem, model, problem.inliers(model).astype(float), problem.max_error), noise

    fixed = np.ones(problem.num_points, np.float32) if static_pool is None else static_pool
    return Strategies(
        draw=(lambda last, first, num: draw_from(last.probabilities, first, num))
        if options.adaptive_sampling
        else (lambda _last, first, num: draw_from(fixed, first, num)),
        update=update if options.state_update else (lambda last, _scores: (last.state, last.probabilities)),
        refine=refine_by_belief if options.adaptive_refinement else refine_on_inliers,
    )
