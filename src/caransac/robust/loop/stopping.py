"""Stopping: when no other round is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from caransac.options import Options
from caransac.results import Round


def samples_needed(inlier_ratio: float, sample_size: int, success_probability: float) -> float:
    """Samples after which one without outliers has been drawn with the given probability."""
    all_inliers = inlier_ratio**sample_size
    if all_inliers >= 1:
        return 1
    if all_inliers <= 0:
        return math.inf
    return math.log(1 - success_probability) / math.log1p(-all_inliers)


def is_settled(rounds: Sequence[Round], options: Options) -> bool:
    """Whether the rounds of CA-RANSAC so far, the record of the prior being the first, are enough.

    The second round is the first that samples by consensus, so two are needed at least. Later samples agree with the
    model because it chose them: the inlier ratio is that of the first round's samples.
    """
    if not options.early_stop or len(rounds) < 3:
        return False
    first, last = rounds[1].samples, rounds[-1]
    # The network sees scores at a wide threshold, which wrong matches reach by chance; inliers are closer.
    least = max(1 - (options.tuning.max_error * last.noise / last.max_error) ** 2, 0.0)
    inlier_ratio = np.count_nonzero(last.msac_scores[0][first] > least) / first.size
    needed = samples_needed(inlier_ratio, first.shape[1], options.success_probability)
    return last.num_hypotheses >= needed
