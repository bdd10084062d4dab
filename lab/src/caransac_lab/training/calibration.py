"""The confidence: logistic regression from the evidence of a run to the correctness of its answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array
from caransac.robust.assess.confidence import standardised

# Ridge penalty on the weights, because some products are nearly equal; the best of four values in cross-validation.
RIDGE = 3e-3
NEWTON_STEPS = 50


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Log-odds that are linear in the `products` of the evidence.

    Attributes:
        mean: (d,) means of the evidence.
        scale: (d,) standard deviations of the evidence; 0 for values that are not measured for the problem.
        weight: (p,) weights of the products.
        bias: bias of the log-odds.
    """

    mean: Array
    scale: Array
    weight: Array
    bias: float

    def probabilities(self, evidence: Array) -> Array:
        """Return the probabilities (n,) for evidence (n, d)."""
        log_odds = products(evidence, self.mean, self.scale) @ self.weight + self.bias
        return np.asarray(1 / (1 + np.exp(-np.clip(log_odds, -30, 30))))


def products(evidence: Array, mean: Array, scale: Array) -> Array:
    """Return the regressors of the log-odds: the standardised evidence, and the products of any two values.

    Args:
        evidence: (..., D) evidence.
        mean: (D,) means of the evidence.
        scale: (D,) standard deviations of the evidence, 0 for values that the fit does not use.
    """
    used = np.flatnonzero(scale > 0)
    standard = standardised(evidence[..., used], mean[used], scale[used])
    first, second = np.triu_indices(len(used))
    return np.concatenate([standard, standard[..., first] * standard[..., second]], axis=-1)


def fit_logistic(evidence: Array, outcomes: NDArray[np.bool_]) -> LogisticFit:
    """Fit the log-odds of outcomes (n,) to evidence (n, d) by Newton's method. Columns with NaN are left out."""
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
        # Limits the step to a few units, because larger steps overshoot.
        theta -= step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-8:
            break
    return LogisticFit(mean, scale, theta[:-1], float(theta[-1]))
