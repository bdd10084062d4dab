"""Results of an estimation: frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.geometry import Array, Floats
from caransac.plot.display import as_html, describe

DegeneracyKind = Literal["planar", "rotation"]
StopReason = Literal["budget", "early_stop", "too_few_points", "degenerate", "no_consensus", "unsure"]
GeometryKind = Literal["pose", "pose_and_focals", "homography", "rotation", "fundamental", "none"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Round:
    """What one round of CA-RANSAC saw and concluded; the first record of a trace is the belief before any model.

    Attributes:
        samples: (S, s) the matches of the minimal samples drawn; none before any model.
        num_hypotheses: minimal samples drawn so far.
        models: (k, ...) the distinct models with the largest consensus, the best first: poses [R | t] (k, 3, 4), or
            fundamental matrices or homographies of pixels (k, 3, 3). None before any model: k is 0.
        msac_scores: (k, n) their MSAC scores, what the state network attends to.
        state: (n, c) the latent state of every match after the update.
        probabilities: (n,) inlier probabilities decoded from it.
        best: the best model after the weighted refinement, (3, 4) or (3, 3), or None before any model.
        noise: estimated distance of a typical right match to the true model, in units of the threshold; 0 before any
            model.
    """

    samples: NDArray[np.int32]
    num_hypotheses: int
    models: Array
    msac_scores: Floats
    state: Floats
    probabilities: Floats
    best: Array | None
    noise: float

    def __repr__(self) -> str:
        return f"Round({self.num_hypotheses} hypotheses, {len(self.models)} models, {len(self.probabilities)} matches)"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """What every estimation reports.

    Attributes:
        success: whether there is a model. Failure is a value, not an exception.
        stop_reason: with success, "budget" (all rounds ran) or "early_stop"; without, "too_few_points" (fewer than a
            minimal sample), "degenerate" (no sample determined a model: repeated or collinear points) or
            "no_consensus" (the best model explains nothing beyond its own sample); of `caransac.estimate` also "unsure"
            (there are models, but none to rely on).
        inliers: (N,) bool over the points as given.
        num_inliers: how many of them.
        num_hypotheses: minimal samples drawn.
        consensus: total of the MSAC scores of the points as given; 0 without success.
        probabilities: (N,) probability of each match to be right, within ``max_error_px`` of the true geometry, from
            "ca-ransac"; None from the classical methods.
        confidence: probability that the pose is right to five degrees (of a fundamental matrix: the pose it implies
            once the cameras are known; of a homography: that it is right to one per cent of the extent of the matches),
            from "ca-ransac"; 0 without success; None from the classical methods.
        max_error_px: threshold of the inliers in pixels: the option, or with "auto" 2.5 deviations of the noise,
            or more where keypoints are more precise than usual.
        noise_px: median distance of right matches to the model in pixels, as "ca-ransac" estimates it; None without
            success, and from the classical methods.
        trace: with ``keep_trace``, what every round of "ca-ransac" saw, from the belief before any model on; else None.
        elapsed_s: wall-clock seconds of the call.
    """

    success: bool
    stop_reason: StopReason
    inliers: NDArray[np.bool_]
    num_inliers: int
    num_hypotheses: int
    consensus: float
    probabilities: Array | None
    confidence: float | None
    max_error_px: float
    noise_px: float | None
    trace: tuple[Round, ...] | None
    elapsed_s: float

    def __repr__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        return as_html(self)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RelativePoseResult(Result):
    """Relative pose of camera 2 from camera 1: ``x2 = R x1 + t``.

    Attributes:
        R: (3, 3) rotation, None without success.
        t: (3,) translation direction of length one, None without success.
        E: (3, 3) essential matrix ``[t]x R``, None without success.
        camera1: camera of image 1, as given where it was exact, else as refined, with the ``focal_deviation`` that is
            left; None without success.
        camera2: camera of image 2.
        degeneracy: "planar" if a plane explains the inliers, "rotation" if a rotation of the camera does, so that ``t``
            means nothing; None for a scene with depth, and without success.
        alternatives: other poses (R, t) that explain the matches as well, such as the second one of a plane.
    """

    R: Array | None
    t: Array | None
    E: Array | None
    camera1: Camera | None = None
    camera2: Camera | None = None
    degeneracy: DegeneracyKind | None = None
    alternatives: tuple[tuple[Array, Array], ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FundamentalResult(Result):
    """Fundamental matrix of pixel coordinates: ``x2^T F x1 = 0``.

    Attributes:
        F: (3, 3) of rank two and Frobenius norm one, None without success.
        camera1: camera of image 1 that F was found with, where image sizes were given; else None.
        camera2: camera of image 2.
        degeneracy: "planar" if a homography explains the inliers, of a plane or of a camera that only turned, so that F
            is one of many; "rotation" where the cameras found with F tell so; None otherwise.
    """

    F: Array | None
    camera1: Camera | None = None
    camera2: Camera | None = None
    degeneracy: DegeneracyKind | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HomographyResult(Result):
    """Homography of pixel coordinates: ``x2 ~ H x1``.

    Attributes:
        H: (3, 3) of Frobenius norm one, ``(H x1)[2] > 0`` for the inliers; None without success.
    """

    H: Array | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GeometryResult(Result):
    """What two images have in common, whatever that is.

    Attributes:
        kind: "pose" (R, t, E and F), "pose_and_focals" (the same, with the cameras as refined), "homography" (H),
            "rotation" (R and H), "fundamental" (F), or "none".
        reason: why it is this kind, in a sentence.
        R: (3, 3) rotation, or None.
        t: (3,) translation direction of length one, or None.
        E: (3, 3) essential matrix, or None.
        F: (3, 3) fundamental matrix of pixels, without lens distortion, or None.
        H: (3, 3) homography of pixels, without lens distortion, or None.
        camera1: camera of image 1 that belongs to the answer, or None.
        camera2: camera of image 2.
        degeneracy: "planar", "rotation" or None, as in `RelativePoseResult`.
        alternatives: poses (R, t) that explain the matches as well as the answer, or that all explain its plane.
        epipolar: the estimate of the epipolar geometry, sure or not.
    """

    kind: GeometryKind
    reason: str
    R: Array | None = None
    t: Array | None = None
    E: Array | None = None
    F: Array | None = None
    H: Array | None = None
    camera1: Camera | None = None
    camera2: Camera | None = None
    degeneracy: DegeneracyKind | None = None
    alternatives: tuple[tuple[Array, Array], ...] = ()
    epipolar: RelativePoseResult | FundamentalResult


AnyResult = RelativePoseResult | FundamentalResult
