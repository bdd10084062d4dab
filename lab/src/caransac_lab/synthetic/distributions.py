"""Distributions that numpy does not have in this form."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number between `low` and `high` whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def draw_beta(rng: np.random.Generator, logit_mean: float, concentration: float, count: int) -> Array:
    """Draw numbers (count,) from the Beta distribution with a given logit of its mean and a given concentration."""
    mean = 1 / (1 + np.exp(-logit_mean))
    return rng.beta(mean * concentration, (1 - mean) * concentration, count)
