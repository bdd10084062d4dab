"""Stopping: when another sample without outliers is no longer needed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from caransac.options import Options
from caransac.results import Round

MIN_ROUNDS = 2  # the first round finds the noise, the second one works with it


def samples_needed(inlier_ratio: float, sample_size: int, success_probability: float) -> float:
    """Samples after which one without outliers has been drawn with the given probability."""
    all_inliers = inlier_ratio**sample_size
    if all_inliers >= 1:
        return 1
    if all_inliers <= 0:
        return math.inf
    return math.log(1 - success_probability) / math.log1p(-all_inliers)


def is_settled(rounds: Sequence[Round], options: Options) -> bool:
    """Whether the rounds of CA-RANSAC so far, the belief before any model being the first record, are enough.

    Later samples agree with the model because it chose them: the points drawn in the first round are asked.
    """
    if not options.early_stop or len(rounds) <= MIN_ROUNDS:
        return False
    first, last = rounds[1].samples, rounds[-1]
    inlier_ratio = float(np.mean(last.msac_scores[0, np.unique(first)] > 0))
    needed = samples_needed(inlier_ratio, first.shape[1], options.success_probability)
    return last.num_hypotheses >= needed
