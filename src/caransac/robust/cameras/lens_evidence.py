"""Fit k1 of the lenses, and test whether the matches support it. Otherwise the given k1 is kept.

A free k1 reduces the accuracy if the given lens is right, because noise can look like distortion. A model with free
lenses and a model with the given lenses are therefore compared by their Bayes factor, which penalises free parameters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from caransac.geometry import Array, Floats, symmetric_inverse
from caransac.kernels import most_likely
from caransac.learned.state_network import MatchStates
from caransac.results import Round
from caransac.robust.cameras.lens_fits import LensFit, lens_covariance, line_noise, refit, start_fit
from caransac.robust.loop.refinement import match_weights, refine_weighted
from caransac.robust.loop.scale import Scale, likely_matches
from caransac.robust.problems import Problem
from caransac.robust.records import LensEvidence
from caransac.tuning import CAMERAS


def fit_lenses(
    problem: Problem, last: Round, prior: Floats, scale: Scale, network: MatchStates, *, brief: bool = False
) -> tuple[Problem, Round, LensEvidence | None]:
    """Fit the lenses to the matches and decide whether they are accepted.

    Args:
        problem: the matches, undistorted with the lenses that were accepted so far.
        last: record of the last round.
        prior: (n,) inlier probabilities before any model.
        scale: scale of the problem.
        network: the trained state network.
        brief: whether to skip the evidence if the gain of the fit is too small even without a penalty.

    Returns:
        The problem, undistorted with the new lenses if they are accepted, else with the given ones; the record of the
        round, with a new best model and noise if lenses are accepted; the evidence, or None if it was skipped. If there
        is nothing to fit, the problem and the record do not change.
    """
    lens_prior, tuning = problem.lens_prior, scale.tuning
    if lens_prior is None or last.best is None:
        return problem, last, None
    # The prior of the matches counts as much as their posterior, which depends on a model with other lenses.
    posterior = match_weights(network, last.probabilities, tuning.min_weight)
    weights = problem.share(np.sqrt(posterior * prior))
    chosen = most_likely(weights.astype(np.float32), CAMERAS.lens_matches)
    chosen = chosen[weights[chosen] > 0.01]  # lighter matches hardly count, but take as long
    weights = weights[chosen]
    if len(chosen) <= problem.sample_size:
        return problem, last, None
    start = freed = start_fit(last.best, problem.subset(chosen))
    noise = last.noise
    # A new lens may be far from the given one. A wide loss can still find it.
    for factor in (4.0, 1.5) if lens_prior.is_as_given else (1.0,):
        freed = refit(freed, weights, factor * noise, last.noise, brief=True)
        noise = scale.measure(likely_matches(freed.problem, prior[chosen], tuning), freed.model, noise)
    freed = refit(freed, weights, noise, noise)
    starts = [start] if lens_prior.is_as_given else [start, freed]
    given = [LensFit(each.model, each.problem.through(lens_prior.given)) for each in starts]
    held = min(refit(each, weights, noise, noise, held=True).cost for each in given)
    gain = (held - freed.cost) / (2 * line_noise(problem, noise) ** 2)  # of log-likelihood
    if brief and gain < CAMERAS.lens_evidence:
        return problem.through(lens_prior.given), last, None
    evidence = _evidence(freed, gain, weights, noise, scale)
    if not evidence.is_shown:
        return problem.through(lens_prior.given), last, evidence
    seen = problem.through(evidence.k1)
    best = refine_weighted(seen, freed.model[:, : last.best.shape[1]], problem.share(posterior), noise)
    noise = scale.measure(likely_matches(seen, prior, tuning), best, noise)
    return seen, replace(last, best=best, noise=noise), evidence


def _evidence(freed: LensFit, gain: float, weights: Array, noise: float, scale: Scale) -> LensEvidence:
    """Return the evidence for the lenses of a fit, given its gain of log-likelihood and the match weights (n,)."""
    lenses = freed.lenses
    inliers = weights * freed.problem.inliers(freed.model, scale.tuning.max_error * noise)
    covariance = lens_covariance(freed, inliers, noise)
    uncertain = np.flatnonzero(lenses.deviations)[: 1 if lenses.shared else 2]
    prior, left = np.square(lenses.deviations)[uncertain], covariance[np.ix_(uncertain, uncertain)]
    # The penalty for free parameters (Occam factor): how much the matches narrow the prior of k1.
    penalty = 0.5 * float(np.log(max(np.linalg.det(left + np.diag(prior)) / max(np.linalg.det(left), 1e-30), 1.0)))
    # The gain may come from another pose. Lenses cannot gain more than their distance from the given ones implies.
    off = np.subtract(lenses.k1, lenses.given)[uncertain]
    gain = min(gain, 0.5 * float(off @ symmetric_inverse(left) @ off))
    first, second = np.sqrt(np.maximum(np.diag(covariance), 0.0)).tolist()
    return LensEvidence(lenses.k1, (first, second), is_shown=gain - penalty >= CAMERAS.lens_evidence)
