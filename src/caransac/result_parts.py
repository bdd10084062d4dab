"""Parts of results: poses, rival models, and what a round saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array, Floats


class RelativePose(NamedTuple):
    """A pose of camera 2 from camera 1, ``x2 = R x1 + t``.

    Attributes:
        R: (3, 3) rotation.
        t: (3,) translation direction of length one.
    """

    R: Array
    t: Array


class Rival(NamedTuple):
    """Another model, of matches that the answer does not explain: a moving object, or a pattern that repeats.

    Attributes:
        model: a pose [R | t] (3, 4), or a fundamental matrix or homography of pixels (3, 3).
        inliers: (N,) bool, the matches that it explains and the answer does not.
        share: of them in all matches.
    """

    model: Array
    inliers: NDArray[np.bool_]
    share: float

    @property
    def R(self) -> Array | None:
        """(3, 3) rotation of a pose, else None."""
        return self.model[:, :3] if self.model.shape == (3, 4) else None

    @property
    def t(self) -> Array | None:
        """(3,) translation direction of a pose, of length one, else None."""
        return self.model[:, 3] if self.model.shape == (3, 4) else None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Round:
    """What one round of CA-RANSAC saw and concluded; the first record of a trace is the prior, before any model.

    Attributes:
        samples: (S, s) the matches of the minimal samples drawn; none before any model.
        num_hypotheses: minimal samples drawn so far.
        models: (k, ...) the distinct models with the largest consensus, the best first: poses [R | t] (k, 3, 4), or
            fundamental matrices or homographies of pixels (k, 3, 3). None before any model: k is 0.
        max_error: threshold of their scores, in pixels.
        msac_scores: (k, n) their MSAC scores, what the state network attends to.
        state: (n, c) the latent state of every match after the update.
        probabilities: (n,) inlier probabilities decoded from it.
        best: the best model after the weighted refinement, (3, 4) or (3, 3), or None before any model.
        noise: estimated median distance of right matches to the true model, in pixels; what is assumed, before any
            model.
    """

    samples: NDArray[np.int32]
    num_hypotheses: int
    models: Array
    max_error: float
    msac_scores: Floats
    state: Floats
    probabilities: Floats
    best: Array | None
    noise: float

    def __repr__(self) -> str:
        return f"Round({self.num_hypotheses} hypotheses, {len(self.models)} models, {len(self.probabilities)} matches)"
