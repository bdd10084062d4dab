"""The fundamental matrix of images without any given cameras or sizes, estimated with guessed cameras.

A plane or few matches do not determine a fundamental matrix. Most of the matrices that fit belong to impossible
cameras. Therefore the pose and the cameras are estimated from a wide prior. If the matches contradict it, any matrix is
allowed.
"""

from __future__ import annotations

import time

import numpy as np

from caransac.camera import LONGEST, SHORTEST, Camera
from caransac.camera_priors import UNKNOWN_FOCAL, UNKNOWN_ZOOM_DEVIATION
from caransac.geometry import Array
from caransac.kernels import most_likely, pack
from caransac.options import Options
from caransac.robust.assess.camera_evidence import nearest_fundamental
from caransac.robust.loop.sampling import DrawStep
from caransac.robust.pipeline import estimate_model
from caransac.robust.problems import FocalPose, Fundamental
from caransac.robust.records import Estimate, MatchInfo
from caransac.tuning import CAMERAS, Tuning


def estimate_uncalibrated(
    pixels1: Array, pixels2: Array, info: MatchInfo, options: Options, draw: DrawStep | None = None
) -> tuple[FocalPose | Fundamental, Estimate]:
    """Estimate the fundamental matrix of pixels (N, 2). Return its problem and the estimate.

    `draw` is the sampling step for `estimate_model`.
    """
    started = time.perf_counter()
    plain = Fundamental.from_pixels(pixels1, pixels2)
    guessed = None if options.tuning.guessed_centre_deviation == 0 else guess_cameras(pixels1, pixels2, options.tuning)
    if guessed is None:
        return plain, estimate_model(plain, info, options, draw)
    found = estimate_model(guessed, info, options, draw)
    is_free = not _is_determined(found) or _gain(guessed, plain, found, options.tuning) >= options.tuning.contradicted
    if not is_free and _explains_enough(found, options.tuning):
        return guessed, found
    free = estimate_model(plain, info, options.left_since(started), draw)
    if is_free or _consensus_ratio(guessed, found, plain, free) > 1 + options.tuning.contradicted:
        return plain, free
    return guessed, found


def _explains_enough(found: Estimate, tuning: Tuning) -> bool:
    """Return True if an answer explains as many matches as their prior promises.

    If the camera moves straight ahead, the search with guessed cameras may miss the matrix that explains most matches.
    """
    assert found.msac_scores is not None
    return found.prior is None or float(found.msac_scores.sum()) >= tuning.expected_share * float(found.prior.sum())


def _consensus_ratio(guessed: FocalPose, found: Estimate, plain: Fundamental, free: Estimate) -> float:
    """Return the consensus without cameras divided by that with guessed cameras, at the larger of both thresholds."""
    if free.model is None:
        return 0.0
    assert found.model is not None
    max_error_px = max(found.max_error / guessed.pixel, free.max_error / plain.pixel)
    held, gained = (
        float(problem.msac_scores(model[None], max_error_px * problem.pixel).sum())
        for problem, model in ((guessed, found.model), (plain, free.model))
    )
    return gained / max(held, 1e-6)


def _is_determined(found: Estimate) -> bool:
    """Return True if the answer has more inliers than a minimal sample, which some matrix always fits."""
    return found.msac_scores is not None and int((found.msac_scores > 0).sum()) > Fundamental.sample_size


def guess_cameras(pixels1: Array, pixels2: Array, tuning: Tuning) -> FocalPose | None:
    """Return the problem with guessed cameras, or None if it is not possible.

    The bounding boxes of the points are used as images, and the two focal lengths may differ.
    """
    cameras = []
    for low, high in _boxes(pixels1, pixels2):
        focal, centre = UNKNOWN_FOCAL * float((high - low).max()), (low + high) / 2
        if not (SHORTEST < focal < LONGEST and np.abs(centre).max() < LONGEST):
            return None
        cameras.append(Camera("SIMPLE_PINHOLE", (focal, *centre), focal_deviation=UNKNOWN_ZOOM_DEVIATION))
    deviation = tuning.guessed_centre_deviation
    return FocalPose.from_pixels(pixels1, pixels2, cameras[0], cameras[1], shared=False, centre_deviation=deviation)


def _boxes(pixels1: Array, pixels2: Array) -> list[tuple[Array, Array]]:
    """Return the box of the points of each image, or one box of both if the images may have the same size.

    A box is a pair of lowest and highest coordinates. A common box is better, because matches lie in the overlap: on
    the left of one image and on the right of the other.
    """
    boxes = []
    for pixels, (x, y, spread) in zip((pixels1, pixels2), pack(pixels1, pixels2).spreads(), strict=True):
        u, v = pixels.T  # columns, because numpy reduces rows of two numbers slowly
        near = (np.abs(u - x) <= 6 * spread) & (np.abs(v - y) <= 6 * spread)  # ignores outliers
        u, v = (u[near], v[near]) if near.any() else (np.array([x]), np.array([y]))
        boxes.append((np.array([u.min(), v.min()]), np.array([u.max(), v.max()])))
    low, high = (np.array(ends) for ends in zip(*boxes, strict=True))
    joint = low.min(axis=0), high.max(axis=0)
    alike = (joint[1] - joint[0]).max() < CAMERAS.joint_box * (high - low).max(axis=1).min()
    return [joint, joint] if alike else list(zip(low, high, strict=True))


def _gain(guessed: FocalPose, plain: Fundamental, found: Estimate, tuning: Tuning) -> float:
    """Return the relative gain of consensus if the answer is refined without cameras."""
    assert found.model is not None and found.msac_scores is not None
    weights = (found.msac_scores > 0).astype(np.float32) if found.probabilities is None else found.probabilities
    chosen = most_likely(weights, tuning.compared_on)
    likely = plain.subset(chosen)
    F = plain.from_public(guessed.fundamentals(found.model[None])[0])
    max_error = tuning.max_error * found.noise / guessed.pixel * plain.pixel
    inliers = likely.inliers(F, max_error)
    free, max_error = nearest_fundamental(F, likely, weights[chosen].astype(float), inliers, max_error, tuning)
    held, gained = likely.msac_scores(np.stack([F, free]), max_error).sum(axis=1).tolist()
    return float(gained / max(held, 1e-6) - 1)
