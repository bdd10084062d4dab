"""The classical LO-RANSAC that CA-RANSAC is measured against."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array
from caransac.options import Options
from caransac.results import StopReason
from caransac.robust.ca_ransac import Estimate, hypothesise, samples_needed
from caransac.robust.problems import Problem
from caransac.robust.sampling import Sampler


def lm_lo(problem: Problem, sampler: Sampler, options: Options) -> Estimate:
    """LO-RANSAC with Levenberg-Marquardt refinement (LM-LO) over batches of minimal samples."""
    if len(sampler.pool) < problem.sample_size:
        return Estimate(None, "too_few_points", 0)
    best: Array | None = None
    drawn, max_error = 0, problem.max_error
    stop_reason: StopReason = "budget"
    for _ in range(options.rounds):
        # 1. sample
        samples = sampler.draw(drawn, options.samples_per_round)
        drawn += options.samples_per_round
        # 2. solve, and refine the most promising models (the LO step), next to the best so far
        models = hypothesise(problem, samples, options.top_models, max_error, best)
        if len(models) == 0:
            continue
        # 3. keep the one with the largest consensus
        scores = problem.score(models, max_error)
        winner = int(np.argmax(scores.sum(axis=1)))
        best = models[winner]
        # 4. stop when another outlier-free sample is no longer needed
        if options.early_stop and drawn >= samples_needed(
            float(np.mean(scores[winner, sampler.pool] > 0)), problem.sample_size, options.success_probability
        ):
            stop_reason = "early_stop"
            break
    if best is None:
        return Estimate(None, "degenerate", drawn)
    inliers = problem.inliers(best)
    if inliers.sum() <= problem.sample_size:
        return Estimate(None, "no_consensus", drawn)
    # 5. polish on the consensus set, unless that loses it (a few points that hardly constrain the model)
    polished = problem.refine(best, inliers.astype(float), max_error)
    keep = problem.inliers(polished).sum() > problem.sample_size
    return Estimate(polished if keep else best, stop_reason, drawn)
