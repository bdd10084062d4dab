"""The weighted eight-point algorithm: one matrix from weighted matches, by linear least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from caransac.geometry.formulas import Array, homogeneous

SMALLEST_SPREAD = 1e-9


def eight_point(points1: ArrayLike, points2: ArrayLike, weights: ArrayLike) -> Array:
    """Return the matrix (3, 3) of rank two and norm one that minimises ``sum_i w_i (x2_i^T F x1_i)^2``.

    Points are first centred and scaled with their weights (Hartley, "In defense of the eight-point algorithm", PAMI
    1997). Only their weights suppress outliers.

    Args:
        points1: (n, 2) points of image 1, pixels or normalised coordinates.
        points2: (n, 2) points of image 2.
        weights: (n,) weights, not negative.
    """
    share = np.asarray(weights, float) / max(float(np.sum(weights)), 1e-12)
    (x1, T1), (x2, T2) = (_normalised(np.asarray(points, float), share) for points in (points1, points2))
    rows = (x2[:, :, None] * x1[:, None, :]).reshape(len(x1), 9)
    _, vectors = np.linalg.eigh(rows.T @ (share[:, None] * rows))
    U, s, Vt = np.linalg.svd(vectors[:, 0].reshape(3, 3))
    F = T2.T @ (U[:, :2] * s[:2]) @ Vt[:2] @ T1
    return np.asarray(F / max(float(np.linalg.norm(F)), 1e-300))


def _normalised(points: Array, share: Array) -> tuple[Array, Array]:
    """Centre points and scale them to a mean distance of sqrt(2). Return points (n, 3) and the transform (3, 3)."""
    centre = share @ points
    spread = max(float(np.sqrt(share @ ((points - centre) ** 2).sum(axis=1) / 2)), SMALLEST_SPREAD)
    T = np.array([[1 / spread, 0, -centre[0] / spread], [0, 1 / spread, -centre[1] / spread], [0, 0, 1]])
    return homogeneous(points) @ T.T, T
