"""Whether a plane, or a rotation of the camera alone, explains the inliers of a pair.

Such pairs have no parallax to measure (rotation), or do not determine a fundamental matrix (plane); whoever builds a
reconstruction must know. Torr, "An assessment of information criteria for motion model selection", CVPR 1997.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array, homogeneous

# A homography that explains this share of the inliers explains the pair, as in COLMAP.
MIN_SHARE = 0.8
# Transferring a point errs in two dimensions and by the noise of both images, the Sampson distance in one and by the
# noise of one: the distance that 95 % of right matches keep is 3.5 deviations of a keypoint instead of 2.
TRANSFER_SCALE = 1.75
NUM_SAMPLES = 32  # of four points each; where 80 % lie on the plane, all fail once in 10^7 pairs
POINTS_TO_CHOOSE_BY = 128  # of the candidates, the one that explains most of about so many points is the one


def find_homography(points1: Array, points2: Array, max_error: float, seed: int) -> Array | None:
    """The homography that explains the points, or None if none explains `MIN_SHARE` of them.

    Args:
        points1: (n, 2) inliers of the epipolar geometry in image 1, free of lens distortion.
        points2: (n, 2) in image 2.
        max_error: Sampson distance within which they are inliers, in their unit.
        seed: seed of the samples.

    Returns:
        H (3, 3) of Frobenius norm one with ``x2 ~ H x1``, or None.
    """
    if len(points1) < 4:
        return None
    to1, to2 = _normalisation(points1), _normalisation(points2)
    x1, x2 = (homogeneous(points) @ to.T for points, to in ((points1, to1), (points2, to2)))
    within = TRANSFER_SCALE * max_error * to2[0, 0]
    # A sample that has a point twice fits nothing, and is one among many.
    samples = np.random.default_rng(seed).integers(len(x1), size=(NUM_SAMPLES, 4))
    candidates = _fit(x1[samples], x2[samples])
    few = slice(None, None, max(len(x1) // POINTS_TO_CHOOSE_BY, 1))
    best = candidates[np.argmax(_explained(candidates, x1[few], x2[few], within).sum(axis=1))]
    chosen = _explained(best[None], x1, x2, within)[0]
    for _ in range(2):  # a fit to four noisy points explains a part of what the final one does
        if chosen.mean() < 0.5 * MIN_SHARE:
            return None
        H = _fit(x1[chosen], x2[chosen])
        chosen = _explained(H[None], x1, x2, within)[0]
    if chosen.mean() < MIN_SHARE:
        return None
    H = np.linalg.inv(to2) @ H @ to1
    return np.asarray(H / np.linalg.norm(H))


def find_rotation(rays1: Array, rays2: Array, max_error: float) -> Array | None:
    """The rotation that explains rays that a homography explains, or None if there is parallax.

    Args:
        rays1: (n, 2) normalised image coordinates in image 1.
        rays2: (n, 2) in image 2.
        max_error: Sampson distance within which they are inliers, in their unit.

    Returns:
        R (3, 3) with ``x2 ~ R x1``, or None.
    """
    x1, x2 = homogeneous(rays1), homogeneous(rays2)
    chosen = np.ones(len(x1), bool)
    for _ in range(2):  # on all, then without those that disagree
        u1, u2 = (x[chosen] / np.linalg.norm(x[chosen], axis=1, keepdims=True) for x in (x1, x2))
        U, _, Vt = np.linalg.svd(u2.T @ u1)  # Kabsch
        R = np.asarray(U @ np.diag([1, 1, np.linalg.det(U @ Vt)]) @ Vt)
        chosen = _explained(R[None], x1, x2, TRANSFER_SCALE * max_error)[0]
        if chosen.mean() < 0.5 * MIN_SHARE:
            return None
    return R if chosen.mean() >= MIN_SHARE else None


def _fit(x1: Array, x2: Array) -> Array:
    """Homographies of homogeneous points by the direct linear transform: (..., n, 3) and (..., n, 3) -> (..., 3, 3)."""
    zeros = np.zeros_like(x1)
    above = np.concatenate([x1, zeros, -x2[..., :1] * x1], axis=-1)
    below = np.concatenate([zeros, x1, -x2[..., 1:2] * x1], axis=-1)
    rows = np.concatenate([above, below], axis=-2)
    gram = np.swapaxes(rows, -1, -2) @ rows
    return np.asarray(np.linalg.eigh(gram)[1][..., :, 0].reshape(*x1.shape[:-2], 3, 3))


def _explained(H: Array, x1: Array, x2: Array, within: float) -> NDArray[np.bool_]:
    """Which points every homography carries to their partners: (k, 3, 3), (n, 3) and (n, 3) -> (k, n)."""
    moved = x1 @ np.swapaxes(H, 1, 2)
    with np.errstate(all="ignore"):
        error_sq = np.sum((moved[..., :2] / moved[..., 2:] - x2[:, :2]) ** 2, axis=-1)
    return np.asarray(error_sq < within**2)


def _normalisation(points: Array) -> Array:
    """The similarity (3, 3) that puts points about the origin, at a distance of about one; Hartley, PAMI 1997."""
    centre = points.mean(axis=0)
    scale = 1 / max(float(np.abs(points - centre).mean()), 1e-12)
    return np.array([[scale, 0, -scale * centre[0]], [0, scale, -scale * centre[1]], [0, 0, 1]])
