"""Whether one of two images is mirrored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caransac.geometry.formulas import Array

POINTS = 256  # at most, that are looked at: their distances take half a millisecond
FEWEST = 16  # triangles that say anything


def mirrored_share(points1: Array, points2: Array) -> float | None:
    """Share of right matches whose neighbourhood is turned over between two images.

    From a point to its two nearest neighbours it is a left turn or a right turn in image 1. On a surface that both
    images show from the same side it is the same turn in image 2, but for where things in front of each other are
    neighbours. In a mirrored image it is the other one, and nothing else tells: a mirrored image has epipolar geometry,
    and even a pose, as well as the image itself.

    Args:
        points1: (n, 2) pixels in image 1 of right matches.
        points2: (n, 2) pixels in image 2.

    Returns:
        The share, from 0 to 1: near 0 of images as cameras take them, near 1 where one is mirrored. None of fewer than
        16 points, or where they do not differ enough.
    """
    if len(points1) < FEWEST:
        return None
    chosen = np.unique(np.linspace(0, len(points1) - 1, POINTS).astype(int))
    first, second = points1[chosen], points2[chosen]
    distances_sq = _distances_sq(first) + _distances_sq(second)  # of neighbours in both: in space, too
    np.fill_diagonal(distances_sq, np.inf)
    near = np.argpartition(distances_sq, 1, axis=1)[:, :2]
    turns = np.sign(_turns(first, near)) * np.sign(_turns(second, near))
    decided = turns != 0
    return float(np.mean(turns[decided] < 0)) if np.sum(decided) >= FEWEST else None


def _distances_sq(points: Array) -> Array:
    """Squared distances (n, n) between points (n, 2), in units of their spread."""
    differences = points[:, None] - points
    spread_sq = max(float(np.var(points, axis=0).sum()), 1e-300)
    distances_sq: Array = np.einsum("ijk,ijk->ij", differences, differences) / spread_sq
    return distances_sq


def _turns(points: Array, near: NDArray[np.intp]) -> Array:
    """Twice the signed areas (n,) of triangles of points (n, 2) with two others each, given by their indices (n, 2)."""
    (x1, y1), (x2, y2) = (np.transpose(points[near[:, side]] - points) for side in (0, 1))
    turns: Array = x1 * y2 - y1 * x2
    return turns
