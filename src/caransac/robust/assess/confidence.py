"""The confidence of an estimate: the probability that it is right, computed from the evidence of the run."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from caransac.camera_priors import IGNORED_DISTORTION_DEVIATION, UNKNOWN_DISTORTION_DEVIATION
from caransac.geometry import Array, Floats
from caransac.kernels import RefineOptions, where
from caransac.learned.state_network import StateNetwork
from caransac.learned.weights_file import KEPT
from caransac.options import Options
from caransac.robust.assess.camera_evidence import position_deviation
from caransac.robust.assess.degeneracy import shows_depth, shows_plane_twice
from caransac.robust.assess.evidence import EVIDENCE, RunEvidence, run_evidence
from caransac.robust.assess.uncertainty import bent_by
from caransac.robust.problems import Absolute, AbsoluteFocal, Problem
from caransac.robust.records import Assessment, Estimate

FEW_CONFIRM = 2  # more inliers than a minimal sample that may agree by chance, so that they confirm no answer
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
    numbers, limit = evidence.numbers, problem.outcome_limit
    sure, rotation = (None if fit is None else fit.probability(numbers) for fit in fits)
    assess_lenses = problem.traits.usual_focal is not None and found.k1 is None
    if sure is not None and assess_lenses and sure > withstands_lenses(math.inf, limit):  # else no lens lowers it
        sure = min(sure, withstands_lenses(ignored_lens_shift(problem, found, evidence), limit))
    may_fit_copies = not problem.traits.exact_cameras  # exact cameras fit a plane and its copy only by chance
    if sure is not None and sure > 0.5 and may_fit_copies and shows_plane_twice(problem, found, options):
        sure /= 2  # either of the two may be right
    if sure is not None and np.count_nonzero(found.msac_scores) <= problem.sample_size + FEW_CONFIRM:
        sure /= 2
    if sure is not None and isinstance(problem, Absolute):
        sure = min(sure, _limit_of_one_view(problem, found, seen))
    if sure is not None and shows_depth(problem, found, options.tuning):
        sure /= 2
    if sure is not None and rotation is not None:
        rotation = max(rotation, sure)  # a right pose has a right rotation
    return replace(seen, confidence=sure, rotation_confidence=rotation)


def _limit_of_one_view(problem: Absolute, found: Estimate, seen: Assessment) -> float:
    """Return an upper limit of the confidence of an absolute pose, from a rival, mirroring or an uncertain camera."""
    assert found.model is not None and seen.rivalry is not None
    if seen.mirrored is not None:
        return 0.0
    limit, rivals = 1.0, seen.rivalry.models
    apart = [np.linalg.norm(np.subtract(*problem.outcomes(np.stack([each, found.model])))) for each in rivals]
    if any(each > problem.outcome_limit for each in apart):  # else the rival is the same pose, with more of its matches
        limit = 1 / (1 + seen.rivalry.share)  # the rival may be right instead, in proportion to its support
    if isinstance(problem, AbsoluteFocal):
        deviation = max(position_deviation(problem, found), 1e-9)
        limit = min(limit, math.erf(problem.outcome_limit / (2**0.5 * deviation)))
    return limit


def ignored_lens_shift(problem: Problem, found: Estimate, evidence: RunEvidence) -> float:
    """Return the shift of the outcome by lens distortion that the given cameras do not have.

    The evidence contains a linear prediction. If that is not small, the model is refined with distorted points.
    """
    assert found.model is not None and found.msac_scores is not None
    shift = math.exp(evidence.lens_shift) * UNKNOWN_DISTORTION_DEVIATION / IGNORED_DISTORTION_DEVIATION
    inliers = where(found.msac_scores > 0)
    if shift < 0.05 * problem.outcome_limit or len(inliers) == 0:  # too little to lower the confidence
        return shift
    likely = problem.subset(inliers[:: -(-len(inliers) // 256)])  # a few points and steps suffice to see the shift
    options = RefineOptions(
        loss_scale=found.noise,
        max_steps=8,
        min_decrease=1e-3,
        intrinsics=problem.intrinsics_prior(found.noise),
    )
    bent = [bent_by(likely, sign * UNKNOWN_DISTORTION_DEVIATION) for sign in (-1, 1)]
    models = [found.model, *(each.refine(found.model[None], options)[0] for each in bent)]
    direction, *others = problem.outcomes(np.stack(models))
    return max(shift, *(2 * math.asin(min(float(np.linalg.norm(each - direction)) / 2, 1.0)) for each in others))


def withstands_lenses(shift: float, limit: float) -> float:
    """Return the probability that an unknown lens moves the outcome by less than a limit, given its typical shift."""
    # Half of the cameras that are given as exact are assumed to have an unknown lens instead. This matters most if the
    # camera hardly moved.
    return 1 - 0.5 * math.erfc(limit / (2**0.5 * shift))


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

    def probability(self, evidence: Array) -> float | None:
        """Return the probability of being right, given evidence (D,); None if a number of the fit was not measured."""
        standard = standardised(evidence[self.used], self.mean, self.scale)
        log_odds = float((self.linear + self.quadratic @ standard) @ standard) + self.bias
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
