"""The two loops: Consensus-Adaptive RANSAC, and the classical LO-RANSAC it is measured against."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from caransac.geometry import Array
from caransac.kernels import Floats, Indices
from caransac.problems import Problem
from caransac.sampler import Sampler, pool_sample
from caransac.state import StateNetwork
from caransac.types import Options, StopReason

FINALISTS = 3  # refined models a round whose scores are looked at, as a multiple of those attended to
MIN_ROUNDS = 2  # before an early stop
SAME_MODEL = 0.95  # two models whose scores have a larger cosine are one to the attention
NEGLIGIBLE_WEIGHT = 1e-3
# The noise of the keypoints varies by a factor of ten between detectors and data sets. These multiples of its estimate
# were chosen while looking at the validation scenes, so figures on those flatter them; the bounds are in units of the
# threshold the caller gave.
ERRORS_IN_NOISE, LOSS_SCALE_IN_NOISE, NOISE_BOUNDS = 3.0, 1.0, (0.1, 1.0)


@dataclass(frozen=True, eq=False)
class Round:
    """What one round of CA-RANSAC saw and concluded: the k distinct best models, their scores, and the new belief.

    Attributes:
        models: (k, d) refined models, the best first.
        scores: (k, n) their MSAC scores, what the state network attended to.
        probabilities: (n,) inlier probabilities after the update.
        best: (d,) the best model after the weighted refinement.
    """

    models: Array
    scores: Floats
    probabilities: Floats
    best: Array


@dataclass(frozen=True, eq=False)
class Estimate:
    """The best model (d,), or None with the reason; how many minimal samples it took; what the loop believed."""

    model: Array | None
    stop_reason: StopReason
    num_hypotheses: int
    probabilities: Floats | None = None
    rounds: tuple[Round, ...] = ()


def ca_ransac(problem: Problem, network: StateNetwork, side: Floats, options: Options) -> Estimate:
    """Consensus-Adaptive RANSAC (Cavalli, Barath, Pollefeys, Larsson): each round steers the next by its consensus.

    Args:
        problem: the correspondences.
        network: the trained state network.
        side: (n, d) side information of the correspondences.
        options: see `Options`.
    """
    state = network.init_state(side)
    prior = probabilities = network.decode(state)
    best: Array | None = None
    rounds: list[Round] = []
    drawn, max_error = 0, problem.max_error
    stop_reason: StopReason = "budget"
    for _ in range(options.rounds):
        # 1. minimal samples from the pool of likely inliers
        samples = pool_sample(probabilities, problem.sample_size, options.samples_per_round, options.seed, drawn)
        drawn += options.samples_per_round
        # 2. their models; the most promising refined on their own inliers (the LO step), next to the best so far
        models = hypothesise(problem, samples, options.local_models, max_error, best)
        if len(models) == 0:
            continue
        # 3. the distinct ones with the largest consensus
        models = models[problem.rank(models, FINALISTS * options.top_models, max_error)]
        models = models[np.argsort(-problem.score(models, max_error).sum(axis=1), kind="stable")]
        scores = problem.score(models, problem.max_error).astype(np.float32)
        kept = distinct(scores, options.top_models)
        models, scores = models[kept], scores[kept]
        # 4. attend to their consensus
        state = network.update(state, scores)
        probabilities = network.decode(state)
        # 5. refine the best one on all points, weighted by belief, on the scale of the noise
        noise = estimate_noise(problem, models[0], prior)
        max_error = ERRORS_IN_NOISE * noise
        weights = refinement_weights(network, probabilities, prior)
        best = problem.refine(models[0], weights, LOSS_SCALE_IN_NOISE * noise)
        rounds.append(Round(models, scores, probabilities, best))
        # 6. stop when another outlier-free sample is no longer needed and the threshold has settled on the noise
        inlier_ratio = float(np.mean(scores[0, np.unique(samples)] > 0))
        if (
            options.early_stop
            and len(rounds) >= MIN_ROUNDS
            and drawn >= samples_needed(inlier_ratio, problem.sample_size, options.success_probability)
        ):
            stop_reason = "early_stop"
            break
    if best is None:
        return Estimate(None, "degenerate", drawn, probabilities)
    # The refinement may give up the consensus of a few points that hardly constrain the model.
    for model in (best, rounds[-1].models[0]):
        if problem.inliers(model).sum() > problem.sample_size:
            return Estimate(model, stop_reason, drawn, probabilities, tuple(rounds))
    return Estimate(None, "no_consensus", drawn, probabilities, tuple(rounds))


def hypothesise(problem: Problem, samples: Indices, count: int, max_error: float, best: Array | None) -> Array:
    """The best so far, then the most promising models of the samples, refined on their own inliers: (m, d)."""
    models = problem.solve(samples)
    models = problem.refine_locally(models[problem.rank(models, count, max_error)], max_error)
    return models if best is None else np.concatenate([best[None], models])


def distinct(scores: Floats, count: int) -> list[int]:
    """The first `count` rows of scores (m, n) that are not nearly parallel to an earlier one."""
    lengths = np.linalg.norm(scores, axis=1)
    similarity = (scores @ scores.T) / np.maximum(np.outer(lengths, lengths), 1e-12)
    kept = [0]
    for row in range(1, len(scores)):
        if len(kept) == count:
            break
        if similarity[row, kept].max() < SAME_MODEL:
            kept.append(row)
    return kept


def estimate_noise(problem: Problem, model: Array, prior: Floats) -> float:
    """Median distance to the model of the points that looked like inliers before any model was tried."""
    distances = problem.distances(model)
    trusted = prior > min(0.5, float(np.partition(prior, -min(50, len(prior)))[-min(50, len(prior))]))
    distances = distances[trusted & (distances < 5 * problem.max_error)]
    noise = float(np.median(distances)) if len(distances) > 8 else 0.25 * problem.max_error
    return min(max(noise, NOISE_BOUNDS[0] * problem.max_error), NOISE_BOUNDS[1] * problem.max_error)


def refinement_weights(network: StateNetwork, probabilities: Floats, prior: Floats) -> Array:
    """Weights ``p ** alpha * prior ** beta`` of the points, those of no consequence set to zero.

    The prior knows nothing of the model being refined: it keeps the refinement from confirming its own start.
    """
    weights = probabilities.astype(float) ** network.alpha * prior.astype(float) ** network.beta
    return np.where(weights > NEGLIGIBLE_WEIGHT, weights, 0.0)


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


def samples_needed(inlier_ratio: float, sample_size: int, success_probability: float) -> float:
    """Samples after which one without outliers has been drawn with the given probability."""
    all_inliers = inlier_ratio**sample_size
    if all_inliers >= 1:
        return 1
    if all_inliers <= 0:
        return math.inf
    return math.log(1 - success_probability) / math.log1p(-all_inliers)
