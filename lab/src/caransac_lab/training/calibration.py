"""The confidence: a logistic regression from a run's evidence to whether its answer was right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array
from caransac.robust.assess.confidence import standardised

RIDGE = 3e-3  # of the weights, against products that say nearly the same; the best of four in cross-validation
NEWTON_STEPS = 50


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Log-odds that are linear in `products` of the evidence.

    Attributes:
        mean: (d,) of the evidence.
        scale: (d,) its deviations; 0 of numbers that are not measured for the problem.
        weight: (p,) of the products.
        bias: of the log-odds.
    """

    mean: Array
    scale: Array
    weight: Array
    bias: float

    def probabilities(self, evidence: Array) -> Array:
        """Probabilities (n,) of evidence (n, d)."""
        log_odds = products(evidence, self.mean, self.scale) @ self.weight + self.bias
        return np.asarray(1 / (1 + np.exp(-np.clip(log_odds, -30, 30))))


def products(evidence: Array, mean: Array, scale: Array) -> Array:
    """What the log-odds are linear in: the standardised numbers of a fit, and the products of any two of them.

    Args:
        evidence: (..., D).
        mean: (D,) of the numbers.
        scale: (D,) their deviations, 0 of those that the fit does not use.
    """
    used = np.flatnonzero(scale > 0)
    standard = standardised(evidence[..., used], mean[used], scale[used])
    first, second = np.triu_indices(len(used))
    return np.concatenate([standard, standard[..., first] * standard[..., second]], axis=-1)


def fit_logistic(evidence: Array, outcomes: NDArray[np.bool_]) -> LogisticFit:
    """The log-odds of outcomes (n,) given evidence (n, d), by Newton's method; numbers with NaN are left out."""
    measured = np.isfinite(evidence).all(axis=0)
    mean, scale = (np.where(measured, each, 0.0) for each in (evidence.mean(axis=0), evidence.std(axis=0) + 1e-9))
    x = products(evidence, mean, scale)
    x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    y = outcomes.astype(float)
    ridge = RIDGE * len(x) * np.diag([1.0] * (x.shape[1] - 1) + [0.0])
    theta = np.zeros(x.shape[1])
    for _ in range(NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ theta, -30, 30)))
        gradient = x.T @ (p - y) + ridge @ theta
        curvature = (x * (p * (1 - p))[:, None]).T @ x + ridge + 1e-6 * np.eye(len(theta))
        step = np.linalg.solve(curvature, gradient)
        theta -= step / max(1.0, float(np.abs(step).max()))  # a step of a few units at most: far ones overshoot
        if np.abs(step).max() < 1e-8:
            break
    return LogisticFit(mean, scale, theta[:-1], float(theta[-1]))
