"""What is known of the matches beside their points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array
from caransac.kernels import Indices
from caransac.options import ScoreKind
from caransac.robust.problems import Problem


@dataclass(frozen=True, eq=False)
class MatchInfo:
    """What is known of the matches beside their points.

    Attributes:
        scores: (n,) one number per match, or None.
        score_kind: what the scores are.
        features: (n, d) further numbers about each match, or None.
    """

    scores: Array | None = None
    score_kind: ScoreKind = "ratio"
    features: Array | None = None

    def of(self, problem: Problem) -> MatchInfo:
        """The same of the matches that a problem has."""
        return self if problem.usable is None else self.take(problem.usable)

    def take(self, chosen: Indices | NDArray[np.bool_]) -> MatchInfo:
        """The same of the chosen matches."""
        scores = None if self.scores is None else self.scores[chosen]
        features = None if self.features is None else self.features[chosen]
        return MatchInfo(scores, self.score_kind, features)

    def order(self, chosen: NDArray[np.signedinteger] | None = None) -> Indices:
        """Indices, of the chosen matches or of all, by their scores, the best first; equal ones keep their order."""
        assert self.scores is not None
        scores = self.scores if chosen is None else self.scores[chosen]
        return np.argsort(-scores if self.score_kind == "confidence" else scores, kind="stable").astype(np.int32)
