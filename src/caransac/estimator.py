"""The loop: sample, solve, rank, refine, keep the best, stop when sure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from caransac.geometry import Array
from caransac.problems import Problem
from caransac.sampler import Sampler
from caransac.types import Options, StopReason


@dataclass(frozen=True, eq=False)
class Estimate:
    """The best model (d,), or None with the reason, and the number of minimal samples it took."""

    model: Array | None
    stop_reason: StopReason
    num_hypotheses: int


def estimate(problem: Problem, sampler: Sampler, options: Options) -> Estimate:
    """LO-RANSAC with Levenberg-Marquardt refinement (LM-LO) over batches of minimal samples."""
    if len(sampler.pool) < problem.sample_size:
        return Estimate(None, "too_few_points", 0)
    best: Array | None = None
    drawn = 0
    stop_reason: StopReason = "budget"
    for _ in range(options.rounds):
        # 1. hypothesise
        samples = sampler.draw(drawn, options.samples_per_round)
        drawn += options.samples_per_round
        models = problem.solve(samples)
        # 2. refine the most promising (the LO step), next to the best so far
        candidates = problem.refine_locally(models[problem.rank(models, options.top_models)])
        if best is not None:
            candidates = np.concatenate([best[None], candidates])
        if len(candidates) == 0:
            continue
        # 3. keep the one with the largest consensus
        scores = problem.score(candidates)
        winner = int(np.argmax(scores.sum(axis=1)))
        best = candidates[winner]
        # 4. stop when another outlier-free sample is no longer needed
        inlier_ratio = float(np.mean(scores[winner, sampler.pool] > 0))
        if options.early_stop and drawn >= samples_needed(
            inlier_ratio, problem.sample_size, options.success_probability
        ):
            stop_reason = "early_stop"
            break
    if best is None:
        return Estimate(None, "degenerate", drawn)
    inliers = problem.inliers(best)
    if inliers.sum() <= problem.sample_size:
        return Estimate(None, "no_consensus", drawn)
    # 5. polish on the consensus set, unless that loses it (a few points that hardly constrain the model)
    polished = problem.refine(best, inliers.astype(float))
    keep = problem.inliers(polished).sum() > problem.sample_size
    return Estimate(polished if keep else best, stop_reason, drawn)


def samples_needed(inlier_ratio: float, sample_size: int, success_probability: float) -> float:
    """Samples after which one without outliers has been drawn with the given probability."""
    all_inliers = inlier_ratio**sample_size
    if all_inliers >= 1:
        return 1
    if all_inliers <= 0:
        return math.inf
    return math.log(1 - success_probability) / math.log1p(-all_inliers)
