"""THE loop: Consensus-Adaptive RANSAC (Cavalli, Barath, Pollefeys, Larsson, arXiv:2307.14030)."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Indices
from caransac.learned.state_network import StateNetwork
from caransac.options import Options
from caransac.results import Round
from caransac.robust.estimate import Estimate
from caransac.robust.problems import Problem
from caransac.robust.refinement import ERRORS_IN_NOISE
from caransac.robust.selection import COARSE_POINTS, likely_subset, most_distinct, promising
from caransac.robust.stopping import effort_of_round, is_settled
from caransac.robust.strategies import Strategies


def ca_ransac(problem: Problem, belief: Round, strategies: Strategies, options: Options) -> Estimate:
    """Each round steers the next by its consensus.

    Args:
        problem: the correspondences.
        belief: what is believed of them at first: `first_belief`, perhaps with a first model and the noise.
        strategies: how to draw, update and refine.
        options: see `Options`.
    """
    rounds, drawn, settled = [belief], 0, False
    for _ in range(options.rounds):
        last = rounds[-1]
        # 1. draw minimal samples from the likely inliers, as many as it may take
        effort = effort_of_round(last, problem, options)
        samples = strategies.draw(last, drawn, effort.samples)
        drawn += effort.samples
        # 2. hypothesise: their models, the most promising ones refined on their own inliers, next to the best so far
        models = hypothesise(problem, samples, last, effort.local_models)
        if len(models) == 0:
            continue
        # 3. attend to the distinct ones with the largest consensus
        models, msac_scores = attend(problem, models, last, options.top_models)
        # 4. update the belief
        state, probabilities = strategies.update(last, msac_scores)
        # 5. refine the best one on all points, weighted by belief, on the scale of the noise
        best, noise = strategies.refine(models[0], probabilities)
        rounds.append(
            Round(
                samples=samples,
                num_hypotheses=drawn,
                models=models,
                msac_scores=msac_scores,
                state=state,
                probabilities=probabilities,
                best=best,
                noise=noise,
            )
        )
        # 6. stop?
        settled = is_settled(rounds, options)
        if settled:
            break
    return conclude(problem, rounds, settled, options)


def first_belief(problem: Problem, network: StateNetwork, side: Floats) -> Round:
    """The record before any model was tried, from side information (n, d)."""
    state, probabilities = network.first(side)
    return Round(
        samples=np.empty((0, problem.sample_size), np.int32),
        num_hypotheses=0,
        models=problem.no_models,
        msac_scores=np.empty((0, len(side)), np.float32),
        state=state,
        probabilities=probabilities,
        best=None,
        noise=0.0,
    )


def search_error(problem: Problem, last: Round) -> float:
    """The threshold by which models are compared: the problem's at first, then one that suits the noise."""
    return problem.max_error if last.best is None else ERRORS_IN_NOISE * problem.tail * last.noise * problem.max_error


def hypothesise(problem: Problem, samples: Indices, last: Round, count: int) -> Array:
    """The best model so far, then the `count` most promising ones of the samples, refined by the LO step: (m, ...).

    Models are compared coarse to fine on likely points: on few of them, the better ones on more, where the best are
    refined too.
    """
    max_error = search_error(problem, last)
    coarse, fine = (likely_subset(problem, last.probabilities, size) for size in (COARSE_POINTS, problem.compared_on))
    models = promising(coarse, fine, problem.solve(samples), count, max_error)
    return models if last.best is None else np.concatenate([last.best[None], models])


def attend(problem: Problem, models: Array, last: Round, count: int) -> tuple[Array, Floats]:
    """The `count` distinct models with the largest consensus all over the images, largest first.

    Returns:
        (k, ...) models, and (k, n) their MSAC scores at the problem's own threshold: what the network attends to.
    """
    return most_distinct(problem, models, count, search_error(problem, last))


def conclude(problem: Problem, rounds: list[Round], settled: bool, options: Options) -> Estimate:
    """The best model of the last round, settled or not, if the points support it."""
    last, drawn = rounds[-1], options.rounds * options.samples_per_round
    if last.best is None:
        return Estimate(model=None, stop_reason="degenerate", num_hypotheses=drawn, rounds=tuple(rounds))
    model, msac_scores = last.best, problem.msac_scores(last.best[None], problem.max_error)[0]
    if (msac_scores > 0).sum() <= problem.sample_size and len(last.models):
        # The refinement may give up the consensus of a few points that hardly constrain the model.
        model, msac_scores = last.models[0], last.msac_scores[0]
    if (msac_scores > 0).sum() <= problem.sample_size:
        return Estimate(model=None, stop_reason="no_consensus", num_hypotheses=drawn, rounds=tuple(rounds))
    return Estimate(
        model=model,
        stop_reason="early_stop" if settled else "budget",
        num_hypotheses=last.num_hypotheses if settled else drawn,
        msac_scores=msac_scores,
        rounds=tuple(rounds),
    )
