"""Whether matches show that lenses bend lines, and by how much: k1 leaves what was given only where they do.

A free k1 costs accuracy where the lens is as given, and no matches are free of noise that looks like a lens. So the two
models are compared as hypotheses: by the Bayes factor, in which a model pays for what it could have explained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from caransac.geometry import Array, Floats, symmetric_inverse
from caransac.kernels import most_likely
from caransac.learned.state_network import MatchStates
from caransac.results import Round
from caransac.robust.cameras.lens_fits import lens_fits
from caransac.robust.loop.refinement import match_weights, refine_weighted
from caransac.robust.loop.scale import Scale, likely_matches
from caransac.robust.problems import Problem, with_intrinsics
from caransac.robust.records import LensEvidence

LOSS_SCALES = 4.0, 1.5  # in noises: of one refinement after the other, from wide to narrow
# Matches that lenses are fitted to, at most: the likeliest, as few of many are right. On the training scenes 1200 gain
# 0.2 and 0.8 AUC@5 over 600 at k1 of -0.05 and -0.1, 2000 in sum no more; flat lenses lose 0.4, those of ORB 1.6.
POINTS = 1200
LIGHTEST = 0.01  # weight of such a match
COST_IN_LIKELIHOOD = 0.5  # minus log-likelihood, in costs per squared noise
# Minimum logarithm of the Bayes factor at which k1 is free. On training scenes of five matchers, flat lenses lose 0.1
# AUC@5 at 3 and 6, 0.0 at 10; lenses of -0.05 gain 2.6, 2.1 and 1.6. On validation scenes flat lenses of ALIKED lose
# 0.6 at 5 and nothing at 10.
LEAST_EVIDENCE = 8.0


@dataclass(frozen=True)
class _Fit:
    """A model (3, 6) with intrinsics fitted to a problem seen through its lenses, and what it costs."""

    model: Array
    problem: Problem
    cost: float


def fit_lenses(
    problem: Problem, last: Round, prior: Floats, scale: Scale, network: MatchStates, *, brief: bool = False
) -> tuple[Problem, Round, LensEvidence | None]:
    """The problem as seen through the lenses that the matches show.

    Args:
        problem: seen through the lenses that were accepted so far.
        last: record of the last round.
        prior: (n,) inlier probabilities before any model.
        scale: of the problem.
        network: the trained state network.
        brief: spare the evidence where the fit alone shows that it is too little.

    Returns:
        The problem, seen through the lenses if they are accepted, else through those as given; the record, if they are
        accepted with the best model and the noise refined there; and the evidence, None if it was spared. Where there
        is nothing to fit, the problem and the record as they are.
    """
    lens_prior, fits, tuning = problem.lens_prior, lens_fits(problem), scale.tuning
    if lens_prior is None or fits is None or last.best is None:
        return problem, last, None
    columns = last.best.shape[1]
    # The prior of the matches counts as much as their posterior, which depends on a model of other lenses.
    posterior = match_weights(network, last.probabilities, tuning.min_weight)
    weights = problem.share(np.sqrt(posterior * prior))
    chosen = most_likely(weights.astype(np.float32), POINTS)
    chosen = chosen[weights[chosen] > LIGHTEST]
    weights = weights[chosen]
    if len(chosen) <= problem.sample_size:
        return problem, last, None
    likely = problem.subset(chosen).with_changes(model_kernels=fits.model_kernels)
    start = _Fit(with_intrinsics(last.best), likely, inf)
    freed, noise = start, last.noise
    for factor in LOSS_SCALES if lens_prior.is_as_given else (1.0,):
        freed = _fit(freed, weights, factor * noise, last.noise, brief=True)
        noise = scale.measure(likely_matches(freed.problem, prior[chosen], tuning), freed.model, noise)
    freed = _fit(freed, weights, noise, noise)
    starts = [start] if lens_prior.is_as_given else [start, freed]
    given = [_Fit(each.model, likely.through(lens_prior.given), inf) for each in starts]
    held = min(_fit(each, weights, noise, noise, held=True).cost for each in given)
    gain = (held - freed.cost) * COST_IN_LIKELIHOOD / fits.unit(noise) ** 2
    if brief and gain < LEAST_EVIDENCE:
        return problem.through(lens_prior.given), last, None
    evidence = _evidence(freed, gain, weights, noise, scale)
    if not evidence.is_shown:
        return problem.through(lens_prior.given), last, evidence
    seen = problem.through(evidence.k1)
    best = refine_weighted(seen, freed.model[:, :columns], problem.share(posterior), noise)
    noise = scale.measure(likely_matches(seen, prior, tuning), best, noise)
    return seen, replace(last, best=best, noise=noise), evidence


def _fit(
    start: _Fit, weights: Array, loss_scale: float, noise: float, *, held: bool = False, brief: bool = False
) -> _Fit:
    """A model and its lenses, or the model alone, refined on matches of weights (n,), to convergence or briefly."""
    fits = lens_fits(start.problem)
    assert fits is not None
    model, k1, cost = fits.fit(start.model, weights, loss_scale, noise, held=held, brief=brief)
    return _Fit(model, start.problem.through(k1), cost)


def _evidence(freed: _Fit, gain: float, weights: Array, noise: float, scale: Scale) -> LensEvidence:
    """What matches of weights (n,) say of the lenses of a fit, which gains so much log-likelihood."""
    problem = freed.problem
    lenses, fits = problem.lens_prior, lens_fits(problem)
    assert lenses is not None and fits is not None
    inliers = weights * problem.inliers(freed.model, scale.tuning.max_error * noise)
    told = fits.covariance(freed.model, inliers, noise)
    uncertain = np.flatnonzero(lenses.deviations)[: 1 if lenses.shared else 2]
    prior, left = np.square(lenses.deviations)[uncertain], told[np.ix_(uncertain, uncertain)]
    # What a model pays for its freedom: how much narrower than the prior the matches leave it.
    penalty = 0.5 * float(np.log(max(np.linalg.det(left + np.diag(prior)) / max(np.linalg.det(left), 1e-30), 1.0)))
    # Another pose may be what gains: lenses gain no more than their distance from what was given says.
    off = np.subtract(lenses.k1, lenses.given)[uncertain]
    gain = min(gain, 0.5 * float(off @ symmetric_inverse(left) @ off))
    first, second = np.sqrt(np.maximum(np.diag(told), 0.0)).tolist()
    return LensEvidence(lenses.k1, (first, second), is_shown=gain - penalty >= LEAST_EVIDENCE)
