"""LM-LO: the classical LO-RANSAC that CA-RANSAC is measured against."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array
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
    best: Array | None = None
    drawn = 0
    stop_reason: StopReason = "budget"
    for _ in range(options.rounds):
        # 1. draw
        samples = sampler.draw(drawn, options.samples_per_round)
        drawn += options.samples_per_round
        # 2. hypothesise: the most promising models refined on their own inliers (the LO step), next to the best so far
        models = problem.best(problem.solve(samples), options.top_models, problem.max_error)
        models = refine_locally(problem, models, problem.max_error)
        models = models if best is None else np.concatenate([best[None], models])
        if len(models) == 0:
            continue
        # 3. keep the one with the largest consensus
        msac_scores = problem.msac_scores(models, problem.max_error)
        winner = int(np.argmax(msac_scores.sum(axis=1)))
        best = models[winner]
        # 4. stop?
        inlier_ratio = float(np.mean(msac_scores[winner, sampler.pool] > 0))
        needed = samples_needed(inlier_ratio, problem.sample_size, options.success_probability)
        if options.early_stop and drawn >= needed:
            stop_reason = "early_stop"
            break
    if best is None:
        return Estimate(model=None, stop_reason="degenerate", num_hypotheses=drawn)
    inliers = problem.inliers(best)
    if inliers.sum() <= problem.sample_size:
        return Estimate(model=None, stop_reason="no_consensus", num_hypotheses=drawn)
    # 5. polish on the consensus set, unless that loses it (a few points that hardly constrain the model)
    polished = refine_weighted(problem, best, inliers.astype(float), problem.max_error)
    keep = problem.inliers(polished).sum() > problem.sample_size
    return Estimate(model=polished if keep else best, stop_reason=stop_reason, num_hypotheses=drawn)
