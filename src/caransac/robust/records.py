"""The records of the estimator: inputs and outputs of a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from caransac._support.computed_once import computed_once
from caransac.geometry import Array, Floats
from caransac.kernels import Indices, where
from caransac.options import ScoreKind
from caransac.results import DegeneracyKind, Round, StopReason


@dataclass(frozen=True, eq=False)
class MatchInfo:
    """Scores and features of the matches.

    Attributes:
        scores: (n,) one number per match, or None.
        score_kind: kind of the scores.
        features: (n, d) additional numbers for each match, or None.
        initial: model to try in addition to the sampled ones, in the user's convention (see `Problem.public`), or None.
        precision: (n,) relative precision of the matches, from 0 (not used) to 1; None if all are equal.
    """

    scores: Array | None = None
    score_kind: ScoreKind = "ratio"
    features: Array | None = None
    initial: Array | None = None
    precision: Array | None = None

    def of_usable(self, usable: NDArray[np.bool_] | None) -> MatchInfo:
        """Return the information about the matches that a mask (N,) marks as usable; None means all."""
        return self if usable is None else self.take(usable)

    def take(self, chosen: Indices | NDArray[np.bool_]) -> MatchInfo:
        """Return the information about the chosen matches."""
        scores = None if self.scores is None else self.scores[chosen]
        features = None if self.features is None else self.features[chosen]
        precision = None if self.precision is None else self.precision[chosen]
        return MatchInfo(scores, self.score_kind, features, precision=precision)

    def order(self, chosen: NDArray[np.signedinteger] | None = None) -> Indices:
        """Return the order of the chosen matches (default: all) by score, best first. The sort is stable."""
        assert self.scores is not None
        scores = self.scores if chosen is None else self.scores[chosen]
        return np.argsort(-scores if self.score_kind == "confidence" else scores, kind="stable").astype(np.int32)


@dataclass(frozen=True, eq=False)
class Degeneracy:
    """Result of testing an answer for planar or rotational degeneracy.

    Attributes:
        kind: kind of the degeneracy; None for a scene with depth.
        share: share of the inliers that one homography explains; 0 if it is too small to matter.
        alternatives: (k, ...) other models that explain the matches as well as the answer, the best first.
        margin: consensus of the answer minus consensus of the best alternative pose of the plane, divided by the
            standard deviation that this difference has by chance.
    """

    kind: DegeneracyKind | None
    share: float
    alternatives: Array
    margin: float


@dataclass(frozen=True, eq=False)
class Rivalry:
    """Models supported by matches that are outliers of the answer.

    Attributes:
        models: (k, ...) models that are strong enough to report, the strongest first.
        share: support of the strongest model, reported or not, divided by the support of the answer.
    """

    models: Array
    share: float


@dataclass(frozen=True)
class CameraEvidence:
    """Evidence for or against cameras that were given as exact.

    Attributes:
        gain: logarithm of a ratio of consensus: nearest fundamental matrix / answer. For an absolute pose: nearest pose
            with a free focal length / answer.
        shift: change of the logarithm of the focal length if it is free.
        deviation: standard deviation of the logarithm of the focal length, given the matches.
        unusual: excess of abs(log(extent / extent in ordinary images)) over the usual range. The extent of the points
            is divided by the focal length.
    """

    gain: float
    shift: float
    deviation: float
    unusual: float

    @property
    def contradicts(self) -> bool:
        """Whether the matches contradict the given focal length.

        On training scenes, this is True for 2 % of the right cameras, and for a third of the cameras whose focal length
        is wrong by a factor of 1.15 to 2.4.
        """
        return abs(self.shift) > max(0.15, 3 * self.deviation)


@dataclass(frozen=True)
class LensEvidence:
    """The most likely lenses of two images, and whether they are accepted.

    Attributes:
        k1: k1 of the most likely lenses, given the matches and the prior, in the unit of the rays.
        deviations: standard deviations of k1, without the prior.
        is_shown: whether the Bayes factor against the given lenses is large enough to accept them.
    """

    k1: tuple[float, float]
    deviations: tuple[float, float]
    is_shown: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Assessment:
    """Degeneracy, rivals, covariance and confidence of an estimate.

    Attributes:
        degeneracy: result of testing the model for planar or rotational degeneracy; None if not tested.
        rivalry: models supported by outliers of the answer; None if not searched for.
        covariance: (f, f) covariance of the degrees of freedom of a pose, in radians; None for other models.
        rotation_variance: variance of the rotation that the noise of the last round predicts, for the confidence, which
            was fitted to it; None for models without a rotation.
        cameras: evidence about cameras that were given as exact; None if there are no such cameras, or if they were not
            checked.
        mirrored: share of the inliers whose neighbourhood is mirrored between two images; None if there are too few
            inliers.
        confidence: probability that the model is right; None if the method does not estimate it.
        rotation_confidence: probability that its rotation is right; None for models without a rotation, or if it is not
            estimated.
    """

    degeneracy: Degeneracy | None = None
    rivalry: Rivalry | None = None
    covariance: Array | None = None
    rotation_variance: float | None = None
    cameras: CameraEvidence | None = None
    mirrored: float | None = None
    confidence: float | None = None
    rotation_confidence: float | None = None

    @property
    def degeneracy_kind(self) -> DegeneracyKind | None:
        """Kind of the degeneracy; None for a scene with depth, or if not tested."""
        return None if self.degeneracy is None else self.degeneracy.kind

    def as_finite(self) -> Assessment:
        """Return the assessment, with confidence 0 and no covariance if one of its numbers is not finite."""
        if _are_finite(self.confidence, self.rotation_confidence, self.covariance):
            return self
        sure, rotation = (None if each is None else 0.0 for each in (self.confidence, self.rotation_confidence))
        return replace(self, covariance=None, confidence=sure, rotation_confidence=rotation)


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate:
    """The answer of a method. Lengths are in the unit of the problem's points.

    Attributes:
        model: the best model of the problem, or None.
        stop_reason: reason for stopping, or for finding no model.
        num_hypotheses: number of minimal samples drawn.
        max_error: threshold of the inliers.
        noise: noise of the last round, which determines the thresholds: median distance of right matches to its model.
        final_noise: median distance of right matches to the answer, measured on all matches.
        msac_scores: (n,) MSAC scores of the model at `max_error`; None without a model.
        rounds: records of the rounds; empty for methods that keep no records. Without a trace, they are those of
            `without_trace`.
        lenses: evidence for uncertain lenses; None if they are exact or were not fitted.
        k1: k1 of the estimated lenses (see `Problem.through`); None for the given lenses.
        assess: function that returns the assessment of this estimate. It takes as long as a round, so only the better
            of two competing estimates is assessed.
    """

    model: Array | None
    stop_reason: StopReason
    num_hypotheses: int
    max_error: float
    noise: float = 0.0
    final_noise: float = 0.0
    msac_scores: Floats | None = None
    rounds: tuple[Round, ...] = ()
    lenses: LensEvidence | None = None
    k1: tuple[float, float] | None = None
    assess: Callable[[], Assessment] = Assessment

    @property
    @computed_once
    def inliers(self) -> Indices:
        """(k,) indices of the inliers. The estimate must have a model."""
        assert self.msac_scores is not None
        return where(self.msac_scores > 0)

    @property
    def is_finite(self) -> bool:
        """Whether all numbers of the answer are finite, as results guarantee."""
        return _are_finite(self.noise, self.final_noise, self.model, self.probabilities)

    def without_model(self) -> Estimate:
        """Return a failed estimate, for matches that do not determine a model."""
        assess = partial(Assessment, confidence=0.0) if self.rounds else Assessment
        nothing = replace(self, model=None, msac_scores=None, noise=0.0, final_noise=0.0, lenses=None, k1=None)
        return replace(nothing, stop_reason="degenerate", assess=assess)

    def without_trace(self) -> Estimate:
        """Return the estimate with only the first and the last round, without their samples, models and states.

        An estimate is kept until it is assessed, and these arrays are most of its memory.
        """
        kept = self.rounds[:1] + self.rounds[1:][-1:]
        return replace(self, rounds=tuple(_without_arrays(each) for each in kept))

    @property
    def probabilities(self) -> Floats | None:
        """(n,) inlier probabilities after the last round; None for methods without probabilities."""
        return self.rounds[-1].probabilities if self.rounds else None

    @property
    def prior(self) -> Floats | None:
        """(n,) inlier probabilities before any model; None for methods without probabilities."""
        return self.rounds[0].probabilities if self.rounds else None


def _without_arrays(record: Round) -> Round:
    """Return the record of a round without its samples, models and states. It shares no memory with them."""
    n = len(record.probabilities)
    return replace(
        record,
        samples=np.empty((0, *record.samples.shape[1:]), np.int32),
        models=np.empty((0, *record.models.shape[1:])),
        msac_scores=np.empty((0, n), np.float32),
        state=np.empty((n, 0), np.float32),
    )


def _are_finite(*values: float | Array | Floats | None) -> bool:
    """Return True if numbers and arrays are finite. A sum of squares is five times faster than np.isfinite."""
    for each in values:
        if each is not None and not isfinite(each if isinstance(each, float) else np.vdot(each, each)):
            return False
    return True
