"""Whether one of two images is mirrored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caransac.geometry.formulas import Array

POINTS, CORNERS = 256, 128  # points among which neighbours are sought, and triangles, at most: a fifth of a ms
NEIGHBOUR = 5  # a corner makes a triangle with its neighbours of this number and the next
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
    corners = np.arange(0, len(first), -(-len(first) // CORNERS))
    distances_sq = _distances_sq(first, corners) + _distances_sq(second, corners)  # near in both images: near in space
    # Not the nearest ones, which noise moves most: these tell a cloud of points from its mirror image, too. The corner
    # itself is number 0.
    near = np.argpartition(distances_sq, (NEIGHBOUR, NEIGHBOUR + 1), axis=1)[:, NEIGHBOUR : NEIGHBOUR + 2].T
    turns = _turns(first, corners, *near) * _turns(second, corners, *near)
    decided = np.count_nonzero(turns)
    return np.count_nonzero(turns < 0) / decided if decided >= FEWEST else None


def _distances_sq(points: Array, corners: NDArray[np.intp]) -> Array:
    """Squared distances (m, n) of corners, given by their indices (m,), to points (n, 2), in units of their spread."""
    x, y = points.T / max(float(np.var(points, axis=0).sum()) ** 0.5, 1e-300)
    return np.asarray((x[corners, None] - x) ** 2 + (y[corners, None] - y) ** 2)


def _turns(points: Array, corners: NDArray[np.intp], near1: NDArray[np.intp], near2: NDArray[np.intp]) -> Array:
    """Signs (m,) of the turns from corners to two other points each, all given by their indices (m,)."""
    (x1, y1), (x2, y2) = ((points[near] - points[corners]).T for near in (near1, near2))
    return np.asarray(np.sign(x1 * y2 - y1 * x2))
