"""How far to trust an estimate: the probability that its pose is right to five degrees, from the run's own evidence."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, Floats
from caransac.learned.state_network import StateNetwork
from caransac.robust.estimate import Estimate
from caransac.robust.problems import Problem
from caransac.robust.refinement import belief_weights

CONFIDENT_DEG = 5.0
LOOKED_RIGHT = 0.5  # probability before any model
SAME_CONSENSUS = 0.8  # cosine of the scores of two models that are one answer
FEW = 8  # matches: fewer of them that looked right say little
STEP = 1e-6  # of finite differences
# Real errors of the baseline's direction in units of the deviation that independent noise predicts. Of 3, 4 and 5, the
# best calibrated on training pairs; lenses, poses taken for truth and outliers among the inliers make up the rest.
ERRORS_IN_DEVIATION = 4.0
BASELINE_DEVIATION = "log standard deviation of the baseline's direction, were the noise as estimated"
EVIDENCE = (
    "log support: probability-weighted consensus of the answer",
    "log number of matches",
    "log expected number of right matches",
    "share of the matches that looked right at first which the answer explains, as if there were eight more",
    "support of the best other model in the last round, relative to the answer's",
    "log noise",
    BASELINE_DEVIATION,
    "share of the rounds whose best model had the answer's consensus",
)


def evidence(network: StateNetwork, problem: Problem, found: Estimate) -> Array:
    """What a run says about its own answer, the numbers of `EVIDENCE`: (8,). The answer must exist."""
    assert found.model is not None and found.msac_scores is not None
    prior, last, answer = found.rounds[0].probabilities, found.rounds[-1], found.msac_scores
    support = float(last.probabilities @ answer)
    trusted = prior > LOOKED_RIGHT
    others = [float(last.probabilities @ other) for other in last.msac_scores[1:]]
    weights = belief_weights(network, last.probabilities, prior) * (answer > 0)
    # As if the noise were larger by as much as real errors are: next to a prior, the information must be honest.
    noise = ERRORS_IN_DEVIATION * last.noise
    deviation = outcome_deviation(problem, found.model, weights, noise) / ERRORS_IN_DEVIATION
    agreeing = [cosine(r.msac_scores[0], answer) > SAME_CONSENSUS for r in found.rounds[1:]]
    return np.array(
        [
            np.log1p(support),
            np.log(problem.num_points),
            np.log1p(last.probabilities.sum()),
            (answer[trusted] > 0).sum() / (trusted.sum() + FEW),
            max(others, default=0.0) / max(support, 1e-6),
            np.log(last.noise),
            np.log(deviation + 1e-5),
            np.mean(agreeing),
        ]
    )


def outcome_deviation(problem: Problem, model: Array, weights: Array, noise: float) -> float:
    """Largest standard deviation of the baseline's direction in radians.

    The covariance of the model, from the weighted (n,) points it was fitted to at a noise in thresholds, carried over
    to the direction.
    """
    information = problem.information(model, weights, noise)
    floor = 1e-9 * np.trace(information) + 1e-12 / (noise * problem.max_error) ** 2
    information += floor * np.eye(len(information))
    direction = problem.outcome(model)
    moved = np.stack([problem.outcome(problem.retract(model, STEP * axis)) for axis in np.eye(len(information))])
    rates = (moved * np.sign(moved @ direction)[:, None] - direction) / STEP
    return float(np.sqrt(np.linalg.eigvalsh(rates.T @ np.linalg.solve(information, rates))[-1]))


def cosine(a: Floats, b: Floats) -> float:
    """Cosine of the angle between two vectors, 0 where one vanishes."""
    return float(a @ b / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-12))


def confidence(network: StateNetwork, problem: Problem, found: Estimate) -> float | None:
    """Probability that the pose error is below five degrees; 0 without an answer, None if the weights cannot tell."""
    if found.model is None:
        return 0.0
    name = f"confidence.{problem.name}"
    if f"{name}.weight" not in network.weights:
        return None
    numbers = evidence(network, problem, found)
    log_odds = numbers @ network.weights[f"{name}.weight"] + network.weights[f"{name}.bias"]
    deviation = float(np.exp(numbers[EVIDENCE.index(BASELINE_DEVIATION)]))
    return float(within_limit(deviation) / (1 + np.exp(-np.clip(log_odds, -30, 30))))


def within_limit(deviation: float) -> float:
    """Probability that the right baseline is found to five degrees, given its predicted deviation in radians.

    Cameras that hardly moved show much consensus and no direction, which few training pairs teach.
    """
    limit = np.radians(CONFIDENT_DEG) / (ERRORS_IN_DEVIATION * deviation)
    return float(-np.expm1(-0.5 * limit**2))  # of two normal coordinates across the direction
