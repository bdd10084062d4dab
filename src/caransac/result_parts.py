"""Parts of results: poses, rival models, and records of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array, Floats


class RelativePose(NamedTuple):
    """A pose of camera 2 relative to camera 1, ``x2 = R x1 + t``.

    Attributes:
        R: (3, 3) rotation.
        t: (3,) translation direction of length one.
    """

    R: Array
    t: Array


class Rival(NamedTuple):
    """A model supported by outliers of the answer: a moving object, or a pattern that repeats.

    Attributes:
        model: pose [R | t] (3, 4), or fundamental matrix or homography of pixels (3, 3).
        inliers: (N,) bool mask of the matches that the rival explains and the answer does not.
        share: number of these matches divided by the number of all matches.
    """

    model: Array
    inliers: NDArray[np.bool_]
    share: float

    @property
    def R(self) -> Array | None:
        """(3, 3) rotation, or None if the model is not a pose."""
        return self.model[:, :3] if self.model.shape == (3, 4) else None

    @property
    def t(self) -> Array | None:
        """(3,) translation direction of length one, or None if the model is not a pose."""
        return self.model[:, 3] if self.model.shape == (3, 4) else None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RefinedMatches:
    """Matches whose second point was moved to where the patches of both photographs agree.

    Attributes:
        points2: (N, 2) pixels in image 2. Matches that were not refined keep their point.
        refined: (N,) bool mask of the refined matches.
        correlations: (N,) correlation of the two patches, up to 1; 0 if the match was not refined.
        information: (N, 2, 2) inverse covariance of the refined point in 1/px². Along an edge, it is small in one
            direction. It is zero if the match was not refined.
    """

    points2: Array
    refined: NDArray[np.bool_]
    correlations: Array
    information: Array

    @property
    def num_refined(self) -> int:
        """Number of refined matches."""
        return int(np.count_nonzero(self.refined))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.num_refined} of {len(self.refined)} matches refined)"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Refinement(RefinedMatches):
    """The refined inliers of an estimate with photographs, and what became of them.

    Attributes:
        is_used: whether the answer was estimated from the refined matches. If not, too few matches could be refined, or
            the answer from them contradicts most of the other matches.
        noise_before_px: median distance of right matches to the model before refinement; `noise_px` of the result is
            the one after it.
        given2: (N, 2) the given pixels in image 2.
    """

    is_used: bool
    noise_before_px: float
    given2: Array


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Round:
    """Record of one round of CA-RANSAC. The first record of a trace is the prior, before any model.

    Attributes:
        samples: (S, s) indices of the matches in the minimal samples; empty before any model.
        num_hypotheses: number of minimal samples drawn so far.
        models: (k, ...) distinct models with the largest consensus, the best first: poses [R | t] (k, 3, 4), or
            fundamental matrices or homographies of pixels (k, 3, 3). Before any model, k is 0.
        max_error: threshold of the scores in pixels.
        msac_scores: (k, n) MSAC scores of the models, which the state network attends to.
        state: (n, c) latent state of every match after the update.
        probabilities: (n,) inlier probabilities decoded from the state.
        best: the best model after the weighted refinement, (3, 4) or (3, 3); None before any model.
        noise: estimated median distance of right matches to the true model, in pixels; before any model, the assumed
            one.
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
