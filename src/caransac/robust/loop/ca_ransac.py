"""THE loop: Consensus-Adaptive RANSAC (Cavalli, Barath, Pollefeys, Larsson, arXiv:2307.14030)."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from caransac.geometry import Floats
from caransac.options import Options
from caransac.results import Round, StopReason
from caransac.robust.loop.scale import Scale
from caransac.robust.loop.steps import Steps
from caransac.robust.loop.stopping import is_settled
from caransac.robust.problems import Problem


def ca_ransac(
    problem: Problem, scale: Scale, history: list[Round], steps: Steps, options: Options
) -> tuple[list[Round], StopReason]:
    """Run rounds until the stopping rule is met. The consensus of each round guides the next round.

    Args:
        problem: the matches.
        scale: scale of the problem.
        history: records of the rounds so far; the first is `prior_round`.
        steps: the steps of a round.
        options: see `Options`.

    Returns:
        The records of all rounds, including `history`, and the reason for stopping.
    """
    rounds, started = list(history), time.perf_counter()
    while rounds[-1].num_hypotheses < options.rounds * options.samples_per_round:
        last = rounds[-1]
        if last.num_hypotheses > 0 and options.left_since(started).max_seconds == 0:
            return rounds, "time"
        # 1. draw minimal samples from the likely inliers
        samples = steps.draw(last)
        drawn = last.num_hypotheses + len(samples)
        # 2. hypothesise: solve the samples, refine the most promising models on their inliers, add the best so far
        models = steps.hypothesise(samples, last)
        if len(models) == 0:
            rounds[-1] = replace(last, num_hypotheses=drawn)
            continue
        # 3. attend to the distinct models with the largest consensus
        models = steps.attend(models, last)
        noise = steps.measure(models[0], last)
        msac_scores = problem.msac_scores(models, scale.attention_error)
        # 4. update state and probabilities
        state, probabilities = steps.update(last, msac_scores)
        # 5. refine the best model on all matches, weighted by their probabilities
        best = steps.refine(models[0], probabilities, noise)
        rounds.append(
            Round(
                samples=samples,
                num_hypotheses=drawn,
                models=models,
                max_error=scale.attention_error,
                msac_scores=msac_scores,
                state=state,
                probabilities=probabilities,
                best=best,
                noise=noise,
            )
        )
        # 6. stop?
        if is_settled(rounds, options):
            return rounds, "early_stop"
    return rounds, "budget"


def prior_round(problem: Problem, scale: Scale, state: Floats, probabilities: Floats) -> Round:
    """Return the record before the first round: states (n, c) and inlier probabilities (n,) from side information."""
    return Round(
        samples=np.empty((0, problem.sample_size), np.int32),
        num_hypotheses=0,
        models=problem.no_models,
        max_error=scale.attention_error,
        msac_scores=np.empty((0, problem.num_points), np.float32),
        state=state,
        probabilities=probabilities,
        best=None,
        noise=scale.first,
    )
