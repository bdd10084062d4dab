"""The confidence: a logistic regression from a run's evidence to whether its pose was right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array

RIDGE = 1e-2  # of the weights on standardised evidence, against pairs of numbers that say nearly the same
NEWTON_STEPS = 50


def fit_logistic(evidence: Array, outcomes: NDArray[np.bool_]) -> tuple[Array, float]:
    """Weights (d,) and bias of the log-odds of the outcomes, by Newton's method.

    Args:
        evidence: (n, d).
        outcomes: (n,).
    """
    mean, scale = evidence.mean(axis=0), evidence.std(axis=0) + 1e-9
    x = np.concatenate([(evidence - mean) / scale, np.ones((len(evidence), 1))], axis=1)
    y = outcomes.astype(float)
    ridge = RIDGE * len(x) * np.diag([1.0] * evidence.shape[1] + [0.0])
    theta = np.zeros(x.shape[1])
    for _ in range(NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ theta, -30, 30)))
        gradient = x.T @ (p - y) + ridge @ theta
        curvature = (x * (p * (1 - p))[:, None]).T @ x + ridge + 1e-6 * np.eye(len(theta))
        step = np.linalg.solve(curvature, gradient)
        theta -= step / max(1.0, float(np.abs(step).max()))  # a step of a few units at most: far ones overshoot
        if np.abs(step).max() < 1e-8:
            break
    weights = theta[:-1] / scale
    return weights, float(theta[-1] - weights @ mean)
