"""Whether matches show that lenses bend lines, and by how much: k1 leaves what was given only where they do.

A free k1 costs accuracy where the lens is as given, and no matches are free of noise that looks like a lens. So the two
models are compared as hypotheses: by the Bayes factor, in which a model pays for what it could have explained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from caransac.geometry import Array, Floats
from caransac.kernels import FOCAL_POSES, RefineOptions, lens_information, most_likely, refine_lens_pose
from caransac.learned.state_network import MatchStates
from caransac.results import Round
from caransac.robust.estimate import LensEvidence
from caransac.robust.problems import Essential, FocalPose, Problem
from caransac.robust.problems.lens_doubt import TEMPER, slack_prior
from caransac.robust.refined_cameras import LENSES, doubtful_covariance, with_intrinsics
from caransac.robust.refinement import match_weights, refine_weighted
from caransac.robust.scale import Scale, trusted_matches

LETTING_GO = 4.0, 1.5  # scales of the loss, in noises, by which lenses leave what was given
STEPS, MIN_DECREASE = 8, 1e-4
FIRST_STEPS, FIRST_DECREASE = 4, 1e-3  # at these scales, which only need show where it leads
POINTS = 600  # matches that are asked, at most: the likeliest, as of all those of ORB few are right
LIGHTEST = 0.01  # weight of a match that is asked
COST_IN_LIKELIHOOD = 0.5  # minus log-likelihood, in costs per squared noise
# Logarithm of the Bayes factor from which on k1 is let go, chosen on the training scenes: flat lenses then lose
# nothing, and lenses of -0.05 gain 5.5 AUC@5 and 15 AUC@1, where a k1 that is always free would gain 9 and 17.
LEAST_EVIDENCE = 2.0


@dataclass(frozen=True)
class _Fit:
    """A model (3, 6) with intrinsics fitted to a problem seen through its lenses, and what it costs."""

    model: Array
    problem: Problem
    cost: float


def look_through_lenses(
    problem: Problem, last: Round, prior: Floats, scale: Scale, network: MatchStates, *, brief: bool = False
) -> tuple[Problem, Round, LensEvidence | None]:
    """The problem as seen through the lenses that the matches show.

    Args:
        problem: seen through the lenses that are believed in so far.
        last: record of the last round.
        prior: (n,) inlier probabilities before any model.
        scale: of the problem.
        network: the trained state network.
        brief: say nothing of lenses that are not shown in any case.

    Returns:
        The problem and the record, with its best model fitted to what is seen now, and what the matches say of the
        lenses. The record is as before where nothing is to be seen but the lenses as given; so is all, with None for
        what is said, where these are exact.
    """
    doubt, tuning = problem.lens_doubt, scale.tuning
    if doubt is None or last.best is None or not isinstance(problem, Essential | FocalPose):
        return problem, last, None
    columns = last.best.shape[1]
    # What the matches looked like before any model counts as much as what the model, of other lenses, makes of them.
    believed = match_weights(network, last.probabilities, prior, tuning.min_weight)
    weights = np.sqrt(believed * prior)
    asked = most_likely(weights, POINTS).astype(np.int32)
    asked = asked[weights[asked] > LIGHTEST]
    weights, looked_right = weights[asked], prior[asked]
    if len(asked) <= problem.sample_size:
        return problem, last, None
    likely = problem.subset(asked)
    likely.model_kernels = FOCAL_POSES
    start = _Fit(with_intrinsics(last.best), likely, inf)
    freed, noise = start, last.noise
    for factor in LETTING_GO if doubt.is_as_given else (1.0,):
        freed = _fit(freed, weights, factor * noise, last.noise, brief=True)
        noise = scale.measure(trusted_matches(freed.problem, looked_right, tuning), freed.model, noise)
    freed = _fit(freed, weights, noise, noise)
    fits = [start] if doubt.is_as_given else [start, freed]
    given = [_Fit(fit.model, likely.through(doubt.given), inf) for fit in fits]
    held = min(_fit(each, weights, noise, noise, held=True).cost for each in given)
    gain = (held - freed.cost) * COST_IN_LIKELIHOOD / noise**2
    if brief and gain < LEAST_EVIDENCE:
        return problem.through(doubt.given), last, None
    evidence = _evidence(freed, gain, weights, noise, scale)
    if not evidence.is_shown:
        return problem.through(doubt.given), last, evidence
    seen = problem.through(evidence.k1)
    best = refine_weighted(seen, freed.model[:, :columns], believed, scale, noise)
    noise = scale.measure(trusted_matches(seen, prior, tuning), best, noise)
    return seen, replace(last, best=best, noise=noise), evidence


def _fit(
    start: _Fit, weights: Array, loss_scale: float, noise: float, *, held: bool = False, brief: bool = False
) -> _Fit:
    """A model and its lenses, or the model alone, refined on matches of weights (n,), to convergence or briefly."""
    problem = start.problem
    doubt = problem.lens_doubt
    assert doubt is not None
    intrinsics = slack_prior(noise) if isinstance(problem, Essential) else problem.intrinsics_prior(noise)
    options = RefineOptions(
        loss_scale=loss_scale,
        max_steps=FIRST_STEPS if brief else STEPS,
        min_decrease=FIRST_DECREASE if brief else MIN_DECREASE,
        intrinsics=doubt.add_to(intrinsics, noise, held=held),
    )
    model, k1, costs = refine_lens_pose(start.model, doubt.k1, problem.correspondences, weights, doubt.given, options)
    return _Fit(model, problem.through(k1), costs[1])


def _evidence(freed: _Fit, gain: float, weights: Array, noise: float, scale: Scale) -> LensEvidence:
    """What matches of weights (n,) say of the lenses of a fit, which gains so much log-likelihood."""
    problem = freed.problem
    doubt = problem.lens_doubt
    assert doubt is not None
    inliers = weights * problem.inliers(freed.model, scale.tuning.max_error * noise)
    information = lens_information(freed.model, doubt.k1, problem.correspondences, inliers) / (TEMPER * noise**2)
    told = doubtful_covariance(problem, information, lens_prior=False)[LENSES, LENSES]
    doubtful = np.flatnonzero(doubt.deviations)[: 1 if doubt.shared else 2]
    prior, left = np.square(doubt.deviations)[doubtful], told[np.ix_(doubtful, doubtful)]
    # What a model pays for its freedom: how much narrower than the prior the matches leave it.
    penalty = 0.5 * float(np.log(max(np.linalg.det(left + np.diag(prior)) / max(np.linalg.det(left), 1e-30), 1.0)))
    first, second = np.sqrt(np.maximum(np.diag(told), 0.0)).tolist()
    return LensEvidence(doubt.k1, (first, second), gain - penalty, gain - penalty >= LEAST_EVIDENCE)
