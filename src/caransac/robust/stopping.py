"""Stopping: how many samples a round takes, and when no other round is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from caransac.options import Options
from caransac.results import Round
from caransac.robust.problems import Problem
from caransac.robust.sampling import likely_inliers

# Compared on the training scenes, and on the validation scenes for ORB: easy pairs need no more, fewer cost accuracy.
MIN_SAMPLES = 256  # of a round; models that are refined: `Problem.least_refined`
# After one round, the samples must be so many times those needed, and no other model have so much of the consensus.
SURE, AMBIGUOUS = 1.5, 0.8


class Effort(NamedTuple):
    """What a round spends: minimal samples, and models that are refined."""

    samples: int
    local_models: int


def samples_needed(inlier_ratio: float, sample_size: int, success_probability: float) -> float:
    """Samples after which one without outliers has been drawn with the given probability."""
    all_inliers = inlier_ratio**sample_size
    if all_inliers >= 1:
        return 1
    if all_inliers <= 0:
        return math.inf
    return math.log(1 - success_probability) / math.log1p(-all_inliers)


def effort_of_round(last: Round, problem: Problem, options: Options) -> Effort:
    """What the next round should spend, by how many of the points it draws from are believed to be right.

    Few samples and few refinements find what is easy to find; without ``early_stop`` all samples are drawn.
    """
    pool = likely_inliers(last.probabilities, problem.sample_size, options.samples_per_round)
    needed = samples_needed(float(last.probabilities[pool].mean()), problem.sample_size, options.success_probability)
    share = min(needed / options.samples_per_round, 1.0)
    samples = _at_least(MIN_SAMPLES, share, options.samples_per_round)
    return Effort(
        samples if options.early_stop else options.samples_per_round,
        _at_least(problem.least_refined, share, options.local_models),
    )


def _at_least(least: int, share: float, most: int) -> int:
    return min(max(least, int(share * most)), most)


def is_settled(rounds: Sequence[Round], options: Options) -> bool:
    """Whether the rounds of CA-RANSAC so far, the belief before any round being the first record, are enough.

    Later samples agree with the model because it chose them: the points drawn in the first round are asked.
    """
    if not options.early_stop or len(rounds) == 1:
        return False
    first, last = rounds[1].samples, rounds[-1]
    inlier_ratio = float(np.mean(last.msac_scores[0][first] > 0))
    needed = samples_needed(inlier_ratio, first.shape[1], options.success_probability)
    if len(rounds) > 2:
        return last.num_hypotheses >= needed
    return last.num_hypotheses >= SURE * needed and not _is_ambiguous(last)


def _is_ambiguous(last: Round) -> bool:
    """Whether another model than the best has nearly as much consensus: one of a plane, or of a repeated pattern."""
    best, *others = (float(total) for total in last.msac_scores.sum(axis=1))
    return max(others, default=0.0) > AMBIGUOUS * best
