"""Rivals: models supported by many matches that are outliers of the answer.

Examples are a moving object, a repeated pattern, and an overlay that does not move.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array
from caransac.geometry.mirroring import NEIGHBOUR, POINTS, share_of_turns
from caransac.kernels import RefineOptions, mirrored_turns, most_likely, where
from caransac.options import Options
from caransac.robust.loop.steps import quick_model
from caransac.robust.problems import Absolute, Problem
from caransac.robust.records import Estimate, Rivalry


def find_rivals(problem: Problem, found: Estimate, options: Options) -> Rivalry:
    """Return the strongest model of the likely matches that are outliers of an answer, which must exist.

    Matches that do not move between two images count as a model in the share, but are not reported as one.
    """
    prior = found.prior
    assert found.model is not None and found.msac_scores is not None and prior is not None
    # Matches within two thresholds belong to the answer. So do points behind a camera: without parallax, their side is
    # arbitrary.
    rest = where(~(problem.distances(found.model) < 2.0 * found.max_error))
    own = max(float(len(found.inliers)), 1.0)
    others = problem.subset(rest)
    still = np.count_nonzero(unmoved(others, found.max_error)) / own
    none = Rivalry(problem.no_models, still)
    likely = rest[most_likely(prior[rest], 1024)]  # as many as models are compared on
    likely_prior = prior[likely]
    # A twentieth of the support of the answer is too little for a rival that matters.
    if len(likely) < 2 * problem.sample_size or float(likely_prior.sum()) < 0.05 * own:
        return none
    max_error = options.tuning.max_error * found.noise
    best = quick_model(problem.subset(likely), likely_prior, max_error, found.noise, options)
    if best is None:
        return none
    beyond_chance, by_chance = _count(others, best, found.max_error)  # as the inliers of the answer are counted
    share = max(beyond_chance - problem.sample_size, 0.0) / own  # any model fits its own sample
    min_share, min_matches, min_excess = 0.25, 20, 2.0  # the last one as a multiple of the matches by chance
    is_strong = share >= min_share and beyond_chance >= max(min_matches, min_excess * by_chance)
    return Rivalry(best[None] if is_strong else problem.no_models, max(share, still))


def find_mirroring(problem: Problem, found: Estimate, options: Options) -> float | None:
    """Return the share of inliers with a mirrored neighbourhood, or None if too few have neighbours.

    For one view, return 1 if the mirrored image fits the 3D points better, else None: for a plane, both fit.
    """
    assert found.msac_scores is not None and found.model is not None
    if isinstance(problem, Absolute):
        flipped, model = problem.flipped(found.model, found.msac_scores > 0)
        refined = RefineOptions(
            loss_scale=found.noise,
            max_steps=options.tuning.local_steps,
            min_decrease=1e-3,
            intrinsics=problem.intrinsics_prior(found.noise),
        )
        model = flipped.refine(model[None], refined, found.msac_scores.astype(float))
        difference = flipped.msac_scores(model, found.max_error)[0] - found.msac_scores
        largest_chance = 3.0  # deviations; smaller gains of consensus may be noise
        return 1.0 if difference.sum() > largest_chance * np.linalg.norm(difference) else None
    some = problem.correspondences.subset(found.inliers[:: len(found.inliers) // POINTS + 1])
    return share_of_turns(*mirrored_turns(some, NEIGHBOUR))


def unmoved(problem: Problem, max_error: float) -> NDArray[np.bool_]:
    """Return the mask (n,) of matches at the same place in both images. It is all False for absolute poses."""
    if problem.traits.degeneracy == "one view":
        return np.zeros(problem.num_points, bool)
    x, y = (problem.points2 - problem.points1).T
    return np.asarray(x**2 + y**2 < max_error**2)


def _count(rest: Problem, model: Array, max_error: float) -> tuple[float, float]:
    """Return the number of inliers above chance, and by chance, estimated from a band farther from the model."""
    background = 2.0, 5.0  # in thresholds: matches in this band agree with the model by chance
    near, middle, far = (np.count_nonzero(rest.inliers(model, factor * max_error)) for factor in (1.0, *background))
    low, high = (factor**rest.error_dimensions for factor in background)
    by_chance = (far - middle) / (high - low)
    return max(near - by_chance, 0.0), by_chance
