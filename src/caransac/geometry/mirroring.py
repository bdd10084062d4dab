"""Whether one of two images is mirrored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caransac.geometry.formulas import Array, Floats

POINTS = 128  # at most, that are looked at: their distances take a tenth of a millisecond
NEIGHBOUR = 5  # a point makes a triangle with its neighbours of this number and the next
FEWEST = 16  # triangles that say anything


def mirrored_share(points1: Array, points2: Array) -> float | None:
    """Share of right matches whose neighbourhood is turned over between two images.

    From a point to two of its neighbours it is a left turn or a right turn in image 1. On a surface that both
    images show from the same side it is the same turn in image 2, but for where things in front of each other are
    neighbours. In a mirrored image it is the other one, and nothing else tells: a mirrored image has epipolar geometry,
    and even a pose, as well as the image itself.

    Args:
        points1: (n, 2) pixels in image 1 of right matches.
        points2: (n, 2) pixels in image 2.

    Returns:
        The share, from 0 to 1: near 0 of images as cameras take them, near 1 where one is mirrored, about one half of
        wrong matches. None of fewer than 16 points, or where they do not differ enough.
    """
    if len(points1) < FEWEST:
        return None
    every = -(-len(points1) // POINTS)
    first, second = points1[::every], points2[::every]
    distances_sq = _distances_sq(first) + _distances_sq(second)  # near in both images: near in space
    # Not the nearest ones, which noise moves most. A point itself is number 0.
    near = np.argpartition(distances_sq, (NEIGHBOUR, NEIGHBOUR + 1), axis=1)[:, NEIGHBOUR : NEIGHBOUR + 2].T
    turns = _turns(first, *near) * _turns(second, *near)
    decided = np.count_nonzero(turns)
    return np.count_nonzero(turns < 0) / decided if decided >= FEWEST else None


def _distances_sq(points: Array) -> Floats:
    """Squared distances (n, n) between points (n, 2), in units of their spread."""
    centred = points - points.mean(axis=0)
    x, y = (centred.T / max(float(np.vdot(centred, centred) / len(points)) ** 0.5, 1e-300)).astype(np.float32)
    return np.asarray((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)


def _turns(points: Array, near1: NDArray[np.intp], near2: NDArray[np.intp]) -> Array:
    """Signs (n,) of the turns from points (n, 2) to two others each, given by their indices (n,)."""
    (x1, y1), (x2, y2) = ((points[near] - points).T for near in (near1, near2))
    return np.asarray(np.sign(x1 * y2 - y1 * x2))
