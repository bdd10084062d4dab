"""Side information: what is known about a match before any model is tried, as numbers the state network reads."""

from __future__ import annotations

import numpy as np

from caransac import kernels
from caransac.geometry import Array, Floats
from caransac.kernels import Correspondences
from caransac.learned.network_layout import DEFAULT_LAYOUT, NUM_FOURIER_FEATURES, NetworkLayout
from caransac.options import ScoreKind

KINDS = {"ratio": kernels.ScoreKind.RATIO, "confidence": kernels.ScoreKind.CONFIDENCE}


def side_information(
    correspondences: Correspondences,
    spreads: Array,
    scores: Array | None,
    score_kind: ScoreKind,
    features: Array | None = None,
    layout: NetworkLayout = DEFAULT_LAYOUT,
) -> Floats:
    """All that is known of every match, the caller's own features last: (n, layout.num_inputs(d)).

    Args:
        correspondences: the matches.
        spreads: (2, 3) where their points are: see `kernels.pack`.
        scores: (n,) or None.
        score_kind: what the scores are.
        features: (n, d) or None; the last ``layout.lifted`` of them, from 0 to 1.5, are lifted as the scores are.
        layout: what of it the network reads.
    """
    if layout.neighbours:
        known = kernels.side_information(correspondences.in_spreads(spreads), scores, KINDS[score_kind])
    else:
        known = lift_scores(scores, score_kind, len(correspondences))
    if features is None:
        return known
    plain = features.shape[1] - layout.lifted
    lifted = [kernels.fourier_features(column) for column in features.T[plain:]]
    return np.concatenate([known, *lifted, features[:, :plain].astype(np.float32)], axis=1)


def lift_scores(scores: Array | None, score_kind: ScoreKind, count: int) -> Floats:
    """Scores (n,) lifted as the paper does: (n, NUM_FOURIER_FEATURES), zero without scores.

    Confidences count as one less themselves, so that weights that were trained with ratios know which are better.
    """
    if scores is None:
        return np.zeros((count, NUM_FOURIER_FEATURES), np.float32)
    return kernels.fourier_features(1 - scores if score_kind == "confidence" else scores)
