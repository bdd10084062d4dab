"""Side information: what is known about a match before any model is tried, as numbers the state network reads."""

from __future__ import annotations

import numpy as np

from caransac import kernels
from caransac.geometry import Array, Floats
from caransac.kernels import Correspondences
from caransac.options import ScoreKind

NUM_SCORE_FEATURES = 18
NUM_NEIGHBOUR_FEATURES = 18
NUM_FEATURES = NUM_SCORE_FEATURES + NUM_NEIGHBOUR_FEATURES
KINDS = {"ratio": kernels.ScoreKind.RATIO, "confidence": kernels.ScoreKind.CONFIDENCE}


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
    known = kernels.side_information(correspondences.in_spreads(spreads), scores, KINDS[score_kind])
    return known if features is None else np.concatenate([known, features.astype(np.float32)], axis=1)
