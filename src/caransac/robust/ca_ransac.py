"""THE loop: Consensus-Adaptive RANSAC."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import Indices, spread_consensus
from caransac.learned.sample_quality import Quality, geometric_quality
from caransac.learned.state_network import StateNetwork
from caransac.options import Options
from caransac.results import Round, StopReason
from caransac.robust.problems import Problem
from caransac.robust.sampling import SelectiveSampler, UniformSampler, likely_inliers

FINALISTS = 3  # models compared in search of distinct ones, as a multiple of those attended to
REGIONS = 16  # rows and columns of the grid of `spread_consensus`
MIN_ROUNDS = 2  # before an early stop
SCOUT_POINTS, SHORTLIST = 512, 4  # likely points that models are first compared on; how many go on, times those refined
JURY_POINTS = 2048  # likely points that the shortlist is compared and refined on
SAME_MODEL = 0.95  # two models whose scores have a larger cosine are one to the attention
NEGLIGIBLE_WEIGHT = 1e-3
# The noise of the keypoints varies by a factor of ten between detectors and data sets. These multiples of its estimate
# were chosen on two training scenes with weights that had not seen them; the bounds are in units of the threshold.
ERRORS_IN_NOISE, LOSS_SCALE_IN_NOISE, NOISE_BOUNDS = 3.0, 1.0, (0.1, 1.0)


@dataclass(frozen=True, eq=False)
class Estimate:
    """The best model (d,), or None with the reason; how many minimal samples it took; what the rounds believed."""

    model: Array | None
    stop_reason: StopReason
    num_hypotheses: int
    rounds: tuple[Round, ...] = ()
    confidence: float | None = None

    @property
    def probabilities(self) -> Floats | None:
        """(n,) inlier probabilities after the last round; None from a method that has none."""
        return self.rounds[-1].probabilities if self.rounds else None


def ca_ransac(
    problem: Problem,
    network: StateNetwork,
    side: Floats,
    options: Options,
    static_pool: Floats | None = None,
    quality: Quality = geometric_quality,
) -> Estimate:
    """Consensus-Adaptive RANSAC (Cavalli, Barath, Pollefeys, Larsson): each round steers the next by its consensus.

    Args:
        problem: the correspondences.
        network: the trained state network.
        side: (n, d) side information of the correspondences.
        options: see `Options`.
        static_pool: (n,) what to sample by instead of the probabilities (the ablation of adaptive sampling).
        quality: what tells promising samples, with ``options.oversampling``.
    """
    state = network.init_state(side)
    prior = probabilities = network.decode(state)
    best: Array | None = None
    first_pool: Indices | None = None
    rounds = [first_belief(problem, prior)]
    regions = np.stack([regions_of(problem.points1), regions_of(problem.points2)])
    drawn, max_error = 0, problem.max_error
    stop_reason: StopReason = "budget"
    for _ in range(options.rounds):
        # 1. minimal samples from the pool of likely inliers, the most promising of those drawn
        likely = probabilities if static_pool is None else static_pool
        pool = likely_inliers(likely, problem.sample_size, options.samples_per_round)
        sampler = UniformSampler(pool, problem.sample_size, options.seed)
        promising = SelectiveSampler(sampler, problem.points1, problem.points2, quality, options.oversampling)
        samples = promising.draw(drawn, options.samples_per_round)
        drawn += options.samples_per_round
        first_pool = np.unique(samples) if first_pool is None else first_pool
        # 2. their models; the most promising refined on their own inliers (the LO step), next to the best so far
        jury, scout = (problem.subset(most_likely(probabilities, count)) for count in (JURY_POINTS, SCOUT_POINTS))
        models = hypothesise(problem, samples, options.local_models, max_error, best, jury, scout)
        if len(models) == 0:
            continue
        # 3. the distinct ones with the largest consensus; matches of one place fail together (a repeated pattern, a
        # second motion), so that evidence all over the images counts for more than a heap of it
        consensus = spread_consensus(problem.score(models, max_error), regions, REGIONS**2)
        models = models[np.argsort(-consensus, kind="stable")[: FINALISTS * options.top_models]]
        scores = problem.score(models, problem.max_error)
        kept = distinct(scores, options.top_models)
        models, scores = models[kept], scores[kept]
        # 4. attend to their consensus
        if options.state_update:
            state = network.update(state, scores)
            probabilities = network.decode(state)
        # 5. refine the best one on all points, weighted by belief, on the scale of the noise
        noise = estimate_noise(problem, models[0], prior)
        max_error = ERRORS_IN_NOISE * noise * problem.max_error
        if options.adaptive_refinement:
            weights = refinement_weights(network, probabilities, prior)
            best = problem.refine(models[0], weights, LOSS_SCALE_IN_NOISE * noise * problem.max_error)
        else:
            best = problem.refine(models[0], problem.inliers(models[0]).astype(float), problem.max_error)
        rounds.append(Round(models=models, scores=scores, probabilities=probabilities, best=best, noise=noise))
        # 6. stop when another outlier-free sample is no longer needed and the threshold has settled on the noise; later
        # pools agree with the model because it chose them, so the first one is asked
        inlier_ratio = float(np.mean(scores[0, first_pool] > 0))
        if (
            options.early_stop
            and len(rounds) > MIN_ROUNDS
            and drawn >= samples_needed(inlier_ratio, problem.sample_size, options.success_probability)
        ):
            stop_reason = "early_stop"
            break
    if best is None:
        return Estimate(None, "degenerate", drawn, tuple(rounds))
    # The refinement may give up the consensus of a few points that hardly constrain the model.
    for model in (best, rounds[-1].models[0]):
        if problem.inliers(model).sum() > problem.sample_size:
            return Estimate(model, stop_reason, drawn, tuple(rounds))
    return Estimate(None, "no_consensus", drawn, tuple(rounds))


def first_belief(problem: Problem, prior: Floats) -> Round:
    """The record before any model was tried."""
    no_scores = np.empty((0, len(prior)), np.float32)
    return Round(models=problem.no_models, scores=no_scores, probabilities=prior, best=None, noise=0.0)


def hypothesise(
    problem: Problem,
    samples: Indices,
    count: int,
    max_error: float,
    best: Array | None,
    jury: Problem | None = None,
    scout: Problem | None = None,
) -> Array:
    """The best so far, then the most promising models of the samples, refined on their own inliers: (m, d).

    Models are compared and refined on the points of the jury, by default on all; with a scout, fewer points, only those
    that do well on these.
    """
    jury = jury or problem
    models = problem.solve(samples)
    if scout is not None:
        models = models[scout.rank(models, SHORTLIST * count, max_error)]
    models = jury.refine_locally(models[jury.rank(models, count, max_error)], max_error)
    return models if best is None else np.concatenate([best[None], models])


def most_likely(probabilities: Floats, count: int) -> Indices:
    """The `count` most probable points, or all of them: (min(count, n),), in no particular order."""
    if len(probabilities) <= count:
        return np.arange(len(probabilities), dtype=np.int32)
    return np.argpartition(-probabilities, count)[:count].astype(np.int32)


def regions_of(points: Array) -> Indices:
    """The cell (n,) of every point in a grid over where most of them are."""
    ends = [len(points) // 100, 99 * len(points) // 100]
    low, high = np.partition(points, ends, axis=0)[ends]
    cells = (points - low) / np.maximum(high - low, 1e-12) * REGIONS
    column, row = np.clip(cells, 0, REGIONS - 1).astype(np.int32).T
    return np.asarray(row * REGIONS + column)


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
    """Median distance, in thresholds, to the model of the points that looked right before any model was tried."""
    distances = problem.distances(model) / problem.max_error
    trusted = prior > min(0.5, float(np.partition(prior, -min(50, len(prior)))[-min(50, len(prior))]))
    distances = distances[trusted & (distances < 5)]
    noise = float(np.median(distances)) if len(distances) > 8 else 0.25
    return min(max(noise, NOISE_BOUNDS[0]), NOISE_BOUNDS[1])


def refinement_weights(network: StateNetwork, probabilities: Floats, prior: Floats) -> Array:
    """Weights ``p ** alpha * prior ** beta`` of the points, those of no consequence set to zero.

    The prior knows nothing of the model being refined: it keeps the refinement from confirming its own start.
    """
    weights = probabilities ** np.float32(network.alpha) * prior ** np.float32(network.beta)
    return np.where(weights > NEGLIGIBLE_WEIGHT, weights, 0.0).astype(float)


def samples_needed(inlier_ratio: float, sample_size: int, success_probability: float) -> float:
    """Samples after which one without outliers has been drawn with the given probability."""
    all_inliers = inlier_ratio**sample_size
    if all_inliers >= 1:
        return 1
    if all_inliers <= 0:
        return math.inf
    return math.log(1 - success_probability) / math.log1p(-all_inliers)
