"""The confidence of an estimate: the probability that it is right, computed from the evidence of the run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array, Floats
from caransac.learned.state_network import StateNetwork
from caransac.learned.weights_file import KEPT
from caransac.options import Options
from caransac.robust.assess.evidence import EVIDENCE, run_evidence
from caransac.robust.assess.limits import limit_confidence
from caransac.robust.problems import Problem
from caransac.robust.records import Assessment, Estimate

CONFIDENCE_PARTS = ("mean", "scale", "weight", "bias")


def assess_confidence(
    network: StateNetwork, problem: Problem, found: Estimate, seen: Assessment, options: Options
) -> Assessment:
    """Add the confidence of the answer and, for a pose, of its rotation to an assessment.

    They are None if the weights have no fit for the problem.
    """
    fits = [_fit_of(network, what, problem.traits.confidence) for what in ("confidence", "rotation_confidence")]
    if all(fit is None for fit in fits):
        return seen
    evidence = run_evidence(network, problem, found, seen, options)
    # Patches that agree are evidence, which the fits do not know.
    more = 0.0 if problem.precision is None else options.tuning.patches.log_odds
    sure, rotation = (None if fit is None else fit.probability(evidence.numbers, more) for fit in fits)
    if sure is not None:
        sure = limit_confidence(sure, problem, found, seen, evidence, options)
    if sure is not None and rotation is not None:
        rotation = max(rotation, sure)  # a right pose has a right rotation
    return replace(seen, confidence=sure, rotation_confidence=rotation)


@dataclass(frozen=True, eq=False)
class ConfidenceFit:
    """Log-odds of being right, a quadratic function of the standardised evidence.

    Attributes:
        used: (d,) indices of the numbers of evidence that the fit uses.
        mean: (d,) means of these numbers in training.
        scale: (d,) deviations of these numbers in training.
        linear: (d,) weights of the numbers.
        quadratic: (d, d) weights of products of two numbers, an upper triangular matrix.
        bias: log-odds at the mean.
    """

    used: NDArray[np.intp]
    mean: Array
    scale: Array
    linear: Array
    quadratic: Array
    bias: float

    @classmethod
    def of(cls, mean: Floats, scale: Floats, weight: Floats, bias: Floats) -> ConfidenceFit:
        """Return the fit of a weights file: a weight for each number and each product. Scale 0 marks unused numbers."""
        used = np.flatnonzero(scale > 0)
        quadratic = np.zeros((len(used), len(used)))
        quadratic[np.triu_indices(len(used))] = weight[len(used) :]
        linear = weight[: len(used)].astype(float)
        return cls(used, mean[used].astype(float), scale[used].astype(float), linear, quadratic, float(bias))

    def probability(self, evidence: Array, more: float = 0.0) -> float | None:
        """Return the probability of being right, given evidence (D,); None if a number of the fit was not measured.

        `more` are log-odds of further evidence.
        """
        standard = standardised(evidence[self.used], self.mean, self.scale)
        log_odds = float((self.linear + self.quadratic @ standard) @ standard) + self.bias + more
        return None if math.isnan(log_odds) else 1 / (1 + math.exp(-min(max(log_odds, -30.0), 30.0)))


@lru_cache(maxsize=KEPT)
def _fit_of(network: StateNetwork, what: str, name: str | None) -> ConfidenceFit | None:
    """Return the fit with a name, or None if the weights have no fit for this evidence."""
    mean, scale, weight, bias = (network.weights.get(f"{what}.{name}.{part}") for part in CONFIDENCE_PARTS)
    if mean is None or scale is None or weight is None or bias is None or len(mean) != len(EVIDENCE):
        return None
    return ConfidenceFit.of(mean, scale, weight, bias)


def standardised(evidence: Array, mean: Array, scale: Array) -> Array:
    """Standardise the evidence (..., d) and clip it to the range seen in training."""
    extreme = 2.5  # deviations
    return np.minimum(np.maximum((evidence - mean) / scale, -extreme), extreme)
