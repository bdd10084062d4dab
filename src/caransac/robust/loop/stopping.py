"""Stopping: how many samples a round needs, and when no other round is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from caransac.geometry import Floats
from caransac.kernels import Indices
from caransac.options import Options
from caransac.results import Round
from caransac.robust.problems import Problem
from caransac.tuning import Tuning


def samples_needed(inlier_ratio: float, sample_size: int, success_probability: float) -> float:
    """Return how many samples are needed to draw one without outliers with the given probability."""
    all_inliers = inlier_ratio**sample_size
    if all_inliers >= 1:
        return 1
    if all_inliers <= 0:
        return math.inf
    return math.log(1 - success_probability) / math.log1p(-all_inliers)


def round_size(pool: Floats, last: Round, problem: Problem, options: Options) -> int:
    """Return how many samples the next round draws: fewer than usual if most matches are right.

    The expected inlier ratio is the mean probability of the pool. After the first round it is at most the ratio that
    the round found, because probabilities may be too high.

    Args:
        pool: (p,) probabilities of the sampling pool.
        last: the record of the last round.
        problem: the problem of the samples.
        options: see `Options`.
    """
    usual = options.samples_per_round
    if not options.early_stop or last.num_hypotheses >= usual:
        return usual
    ratio = float(pool.mean())
    if last.num_hypotheses > 0:
        ratio = min(ratio, _inlier_ratio(last.samples, last, options.tuning)) if last.best is not None else 0.0
    needed = samples_needed(ratio, problem.sample_size, options.success_probability)
    # After the first round there is a model to improve on. Matches with errors of two dimensions, such as those of a
    # homography, determine the model of a sample more precisely. In both cases a quarter of the samples gives the same
    # accuracy.
    fewer = last.num_hypotheses > 0 or problem.error_dimensions > 1
    margin = options.tuning.sample_margin / (4 if fewer else 1)
    return int(min(max(margin * needed, options.local_models), usual))


def is_settled(rounds: Sequence[Round], options: Options) -> bool:
    """Return True if CA-RANSAC can stop after these rounds. The first record is the prior.

    The second round is the first that samples by consensus, so at least two are needed. Later samples agree with the
    model because the model chose them. The inlier ratio is therefore measured on the samples of the first round.
    """
    if not options.early_stop or len(rounds) < 3:
        return False
    inlier_ratio = _inlier_ratio(rounds[1].samples, rounds[-1], options.tuning)
    needed = samples_needed(inlier_ratio, rounds[1].samples.shape[1], options.success_probability)
    return rounds[-1].num_hypotheses >= needed


def _inlier_ratio(samples: Indices, last: Round, tuning: Tuning) -> float:
    """Return the share of the points of samples (S, sample_size) that support the best model of a round.

    The network sees scores at a wide threshold, which wrong matches reach by chance; inliers are closer.
    """
    least = max(1 - (tuning.max_error * last.noise / last.max_error) ** 2, 0.0)
    return np.count_nonzero(last.msac_scores[0][samples] > least) / samples.size
