"""LM-LO: the classical LO-RANSAC that CA-RANSAC is measured against."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from caransac.geometry import Array
from caransac.kernels import RefineOptions
from caransac.options import Options
from caransac.results import StopReason
from caransac.robust.loop.refinement import local_steps, with_initial
from caransac.robust.loop.sampling import Sampler
from caransac.robust.loop.scale import Scale
from caransac.robust.loop.stopping import samples_needed
from caransac.robust.problems import Problem
from caransac.robust.records import Estimate


def lm_lo(problem: Problem, scale: Scale, sampler: Sampler, options: Options) -> Estimate:
    """Run LO-RANSAC with Levenberg-Marquardt refinement over batches of minimal samples.

    If the caller gave no threshold, the threshold follows the noise of the best model from batch to batch. The estimate
    has no scores, because the problem may have only some of the matches.
    """
    best: Array | None = None
    drawn, noise = 0, scale.first
    stop_reason: StopReason = "budget"
    started = time.perf_counter()
    while drawn < options.rounds * options.samples_per_round:
        if drawn > 0 and options.left_since(started).max_seconds == 0:
            stop_reason = "time"
            break
        max_error = scale.max_error(noise)
        # 1. draw
        samples = sampler.draw(drawn, options.samples_per_round)
        drawn += options.samples_per_round
        # 2. hypothesise: solve, refine the most promising models on their inliers (the LO step), add the best so far
        steps = local_steps(problem, max_error, noise, options.tuning)
        models = problem.model_kernels.promising(
            problem.solve(samples), problem.correspondences, max_error, options.top_models, steps
        )
        models = (
            with_initial(problem, models, max_error, steps) if best is None else np.concatenate([best[None], models])
        )
        if len(models) == 0:
            continue
        # 3. keep the model with the largest consensus
        msac_scores = problem.msac_scores(models, max_error)
        winner = int(np.argmax(msac_scores.sum(axis=1)))
        best, noise = models[winner], scale.measure(problem, models[winner], noise)
        # 4. stop?
        inlier_ratio = float(np.mean(msac_scores[winner, sampler.pool] > 0))
        needed = samples_needed(inlier_ratio, problem.sample_size, options.success_probability)
        if options.early_stop and drawn >= needed:
            stop_reason = "early_stop"
            break
    nothing = Estimate(
        model=None, stop_reason="degenerate", num_hypotheses=drawn, max_error=scale.inlier_error(scale.first)
    )
    if best is None:
        return nothing
    max_error = scale.max_error(noise)
    inliers = problem.inliers(best, max_error)
    if inliers.sum() <= problem.sample_size:
        return replace(nothing, stop_reason="no_consensus")
    # 5. polish on the consensus set; keep the unpolished model if this loses the consensus (possible with few matches)
    weights = inliers.astype(float)
    cauchy = RefineOptions(loss_scale=max_error, intrinsics=problem.intrinsics_prior(noise, best, weights))
    polished = problem.refine(best[None], cauchy, weights)[0]
    if problem.inliers(polished, max_error).sum() > problem.sample_size:
        best = polished
    found = replace(nothing, model=best, stop_reason=stop_reason, max_error=scale.inlier_error(noise), noise=noise)
    return replace(found, final_noise=scale.measure_answer(problem, best, noise))
