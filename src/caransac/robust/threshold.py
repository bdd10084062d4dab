"""The threshold where nobody knows it: a multiple of the noise, which is found with a first model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from caransac.geometry import Array, Floats
from caransac.kernels import Indices
from caransac.robust.estimate import Estimate
from caransac.robust.problems import Problem, SomeProblem
from caransac.robust.refinement import ERRORS_IN_NOISE, MAX_ERROR_IN_NOISE, NEAR, refine_locally, trusted_points
from caransac.robust.selection import COARSE_POINTS, likely_subset, most_supported, promising

# Chosen on the training scenes, with 0, 1 and 2 px of noise added.
SAMPLES, MODELS = 64, 8  # that the first model is found by, and that are refined
STEPS = 2  # of noise, threshold and refinement in turn
STARTS = 1.0, 4.0  # thresholds to start from, in that of the problem: coarse keypoints need a generous one
MANY = 0.5  # right ones among the matches that look so: no other start explains more by far
LARGEST_START = 4.0  # the threshold may grow so much over the one it starts from
# Few right matches say little of the noise. Then it is that of ordinary keypoints, half a pixel of 1000, as if so many
# matches had said so.
USUAL_DEVIATION, USUAL_MATCHES = 0.0015, 20  # of a keypoint, in extents of the points
# Deviations of a keypoint up to which matches are inliers in the end, and of a usual one, at least: where most
# keypoints are more precise than usual, some right ones are not.
INLIER_DEVIATIONS, FEWEST_INLIER_DEVIATIONS = 2.5, 2.0
SMALLEST_NOISE = 0.1  # in usual ones: no keypoint is more precise, whatever made-up matches say


def scout(
    problem: Problem, samples: Indices, prior: Floats, starts: Sequence[float] = STARTS
) -> tuple[Array | None, float]:
    """A first model, None if there is none, and the noise of the points.

    Args:
        problem: the points, with the generous threshold to start from.
        samples: (S, sample_size) minimal samples.
        prior: (n,) inlier probabilities before any model.
        starts: thresholds to start from, in that of the problem.
    """
    coarse, fine = (likely_subset(problem, prior, size) for size in (COARSE_POINTS, problem.compared_on))
    trusted = trusted_points(problem, prior)
    models = problem.solve(samples)
    if len(models) == 0:
        return None, usual_noise(problem)
    most, noise, model = -1.0, 0.0, None
    for factor in starts:
        found = _fit(problem, coarse, fine, trusted, models, factor * problem.max_error)
        if found[0] > most:
            most, noise, model = found
        if most > MANY * trusted.num_points:
            break
    return model, noise


def suitable_max_error(problem: Problem, noise: float) -> float:
    """The threshold that suits a noise: it tells models apart best."""
    return MAX_ERROR_IN_NOISE * problem.tail * noise


def _fit(
    problem: Problem, coarse: Problem, fine: Problem, trusted: Problem, models: Array, start: float
) -> tuple[float, float, Array]:
    """How many of the trusted points the best model explains, from a threshold to start from, their noise, and it."""
    best = most_supported(problem, promising(coarse, fine, models, MODELS, start), start)
    matches, noise = _noise(trusted, best[0], NEAR * start)
    for _ in range(STEPS):
        max_error = min(ERRORS_IN_NOISE * problem.tail * noise, LARGEST_START * start)
        best = refine_locally(fine, best, max_error)
        matches, noise = _noise(trusted, best[0], NEAR * max(max_error, start / LARGEST_START))
    return matches, noise, best[0]


def with_inliers(problem: SomeProblem, found: Estimate) -> tuple[SomeProblem, Estimate]:
    """The problem with a threshold that right matches rarely exceed, and the estimate with its inliers.

    Models are told apart best by a tighter one, which a tenth of the right matches exceed.
    """
    if found.model is None:
        return problem, found
    noise = found.noise or 1 / (MAX_ERROR_IN_NOISE * problem.tail)
    reach = problem.error_dimensions**0.5 * max(
        INLIER_DEVIATIONS * noise * problem.max_error / problem.median_error,
        FEWEST_INLIER_DEVIATIONS * USUAL_DEVIATION * problem.extent,
    )
    factor = max(reach / problem.max_error, 1.0)
    problem = problem.within(factor * problem.max_error)
    msac_scores = problem.msac_scores(found.model[None], problem.max_error)[0]
    rounds = tuple(replace(each, noise=each.noise / factor) for each in found.rounds)  # which is in thresholds
    return problem, replace(found, msac_scores=msac_scores, rounds=rounds)


def _noise(trusted: Problem, model: Array, near: float) -> tuple[float, float]:
    """How many of the `trusted_points` are right, within `near` of a model, and their median distance to it."""
    usual = usual_noise(trusted)
    matches, median = trusted.right_matches(model, near)
    matches = max(matches - trusted.sample_size, 0.0)  # any model goes through its sample
    share = matches / (matches + USUAL_MATCHES)
    return matches, float(usual ** (1 - share) * max(median, SMALLEST_NOISE * usual) ** share)


def usual_noise(problem: Problem) -> float:
    """Median distance of right matches of ordinary keypoints."""
    return USUAL_DEVIATION * problem.median_error * problem.extent
