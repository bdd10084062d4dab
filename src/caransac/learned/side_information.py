"""Side information: what is known about a match before any model is tried, as numbers the state network reads."""

from __future__ import annotations

import numpy as np

from caransac import kernels
from caransac.geometry import Array, Floats
from caransac.kernels import Correspondences
from caransac.options import ScoreKind

NUM_FREQUENCIES = 8  # each twice the one before
NUM_SCORE_FEATURES = 2 * NUM_FREQUENCIES + 2
NUM_NEIGHBOUR_FEATURES = 18
NUM_FEATURES = NUM_SCORE_FEATURES + NUM_NEIGHBOUR_FEATURES


def score_features(scores: Array | None, score_kind: ScoreKind, num_points: int) -> Floats:
    """Scores lifted to sines and cosines of rising frequency, and which kind they are: (n, 18), zero without scores."""
    features = np.zeros((num_points, NUM_SCORE_FEATURES), np.float32)
    if scores is not None:
        phases = np.clip(scores, 0, 1.5) * (np.pi / 1.5)
        sines, cosines = np.sin(phases), np.cos(phases)
        for k in range(NUM_FREQUENCIES):
            features[:, k], features[:, NUM_FREQUENCIES + k] = sines, cosines
            # Twice the angle, at a fraction of the cost of its sine and cosine.
            sines, cosines = 2 * sines * cosines, (cosines - sines) * (cosines + sines)
        features[:, -2 if score_kind == "ratio" else -1] = 1
    return features


def side_information(
    correspondences: Correspondences,
    spreads: Array,
    scores: Array | None,
    score_kind: ScoreKind,
    features: Array | None = None,
) -> Floats:
    """All that is known of every match, the caller's own features last: (n, NUM_FEATURES + d).

    Args:
        correspondences: the matches.
        spreads: (2, 3) where their points are: see `kernels.pack`.
        scores: (n,) or None.
        score_kind: what the scores are.
        features: (n, d) or None.
    """
    parts = [
        score_features(scores, score_kind, len(correspondences)),
        kernels.neighbour_features(correspondences.in_spreads(spreads)),
    ]
    if features is not None:
        parts.append(features.astype(np.float32))
    return np.concatenate(parts, axis=1)
