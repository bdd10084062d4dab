"""LM-LO: the classical LO-RANSAC that CA-RANSAC is measured against."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, Floats
from caransac.options import Options
from caransac.results import StopReason
from caransac.robust.estimate import Estimate
from caransac.robust.problems import Problem
from caransac.robust.refinement import refine_locally, refine_weighted
from caransac.robust.sampling import Sampler
from caransac.robust.stopping import samples_needed


def lm_lo(problem: Problem, sampler: Sampler, options: Options) -> Estimate:
    """LO-RANSAC with Levenberg-Marquardt refinement over batches of minimal samples."""
    if len(sampler.pool) < problem.sample_size:
        return Estimate(model=None, stop_reason="too_few_points", num_hypotheses=0)
    best: tuple[Array, Floats] | None = None  # the model, and its MSAC scores
    drawn = 0
    stop_reason: StopReason = "budget"
    for _ in range(options.rounds):
        # 1. draw
        samples = sampler.draw(drawn, options.samples_per_round)
        drawn += options.samples_per_round
        # 2. hypothesise: the most promising models refined on their own inliers (the LO step), next to the best so far
        models = problem.best(problem.solve(samples), options.top_models, problem.max_error)
        models = refine_locally(problem, models, problem.max_error)
        models = models if best is None else np.concatenate([best[0][None], models])
        if len(models) == 0:
            continue
        # 3. keep the one with the largest consensus
        msac_scores = problem.msac_scores(models, problem.max_error)
        winner = int(np.argmax(msac_scores.sum(axis=1)))
        best = models[winner], msac_scores[winner]
        # 4. stop?
        inlier_ratio = float(np.mean(msac_scores[winner, sampler.pool] > 0))
        needed = samples_needed(inlier_ratio, problem.sample_size, options.success_probability)
        if options.early_stop and drawn >= needed:
            stop_reason = "early_stop"
            break
    if best is None:
        return Estimate(model=None, stop_reason="degenerate", num_hypotheses=drawn)
    model, msac_scores = best
    inliers = msac_scores > 0
    if inliers.sum() <= problem.sample_size:
        return Estimate(model=None, stop_reason="no_consensus", num_hypotheses=drawn)
    # 5. polish on the consensus set, unless that loses it (a few points that hardly constrain the model)
    polished = refine_weighted(problem, model, inliers.astype(float), problem.max_error)
    polished_scores = problem.msac_scores(polished[None], problem.max_error)[0]
    if (polished_scores > 0).sum() > problem.sample_size:
        model, msac_scores = polished, polished_scores
    return Estimate(model=model, stop_reason=stop_reason, num_hypotheses=drawn, msac_scores=msac_scores)
