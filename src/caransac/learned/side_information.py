"""Side information: numbers about a match before any model is tried, which the state network reads."""

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
    """Return the inputs of the network for every match, with the caller's features last.

    The shape is (n, layout.num_inputs(d)).

    Args:
        correspondences: the matches.
        spreads: (2, 3) position and spread of the points in each image; see `kernels.pack`.
        scores: (n,) scores, or None.
        score_kind: kind of the scores.
        features: (n, d) features, or None. The last ``layout.lifted`` of them, from 0 to 1.5, are lifted like the
            scores.
        layout: layout of the network.
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
    """Lift scores (n,) as in the paper: (n, NUM_FOURIER_FEATURES), zero without scores.

    A confidence c is replaced by 1 - c, so that lower is better, as with ratios. Weights trained with ratios then
    apply.
    """
    if scores is None:
        return np.zeros((count, NUM_FOURIER_FEATURES), np.float32)
    return kernels.fourier_features(1 - scores if score_kind == "confidence" else scores)
