"""Detect whether one of two images is mirrored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caransac.geometry.formulas import Array, Floats

POINTS = 128  # maximum number of points; their distances take a tenth of a millisecond
NEIGHBOUR = 5  # a point forms a triangle with its neighbours of this rank and the next
FEWEST = 16  # minimum number of triangles for a verdict


def mirrored_share(points1: Array, points2: Array) -> float | None:
    """Return the share of inliers whose neighbourhood is mirrored between two images.

    In image 1, a point and two of its neighbours form a left turn or a right turn. If both images show a surface from
    the same side, it is the same turn in image 2, except at depth discontinuities. In a mirrored image it is the
    opposite turn. Nothing else reveals mirroring: a mirrored image has a valid epipolar geometry and even a valid pose.

    Args:
        points1: (n, 2) pixels of inliers in image 1.
        points2: (n, 2) pixels of inliers in image 2.

    Returns:
        The share, from 0 to 1: near 0 for ordinary images, near 1 if one image is mirrored, about 0.5 for wrong
        matches. None if there are fewer than 16 points, or if too few of them are distinct.
    """
    if len(points1) < FEWEST:
        return None
    every = -(-len(points1) // POINTS)
    return share_of_turns(*mirrored_turns(points1[::every], points2[::every]))


def share_of_turns(opposite: int, decided: int) -> float | None:
    """Return `mirrored_share`, given the numbers of `mirrored_turns`."""
    return opposite / decided if decided >= FEWEST else None


def mirrored_turns(points1: Array, points2: Array) -> tuple[int, int]:
    """Return the number of points (n, 2) that turn in opposite directions, and of those that turn in both images."""
    distances_sq = _distances_sq(points1) + _distances_sq(points2)  # points near in both images are near in space
    # Skip the nearest neighbours, because noise affects their turns most. A point itself is number 0.
    near = np.argpartition(distances_sq, (NEIGHBOUR, NEIGHBOUR + 1), axis=1)[:, NEIGHBOUR : NEIGHBOUR + 2].T
    turns = _turns(points1, *near) * _turns(points2, *near)
    return int(np.count_nonzero(turns < 0)), int(np.count_nonzero(turns))


def _distances_sq(points: Array) -> Floats:
    """Return the squared distances (n, n) between points (n, 2), divided by their variance."""
    centred = points - points.mean(axis=0)
    x, y = (centred.T / max(float(np.vdot(centred, centred) / len(points)) ** 0.5, 1e-300)).astype(np.float32)
    return np.asarray((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)


def _turns(points: Array, near1: NDArray[np.intp], near2: NDArray[np.intp]) -> Array:
    """Return the sign (n,) of the turn from each point (n, 2) to two others, given by index (n,)."""
    (x1, y1), (x2, y2) = ((points[near] - points).T for near in (near1, near2))
    return np.asarray(np.sign(x1 * y2 - y1 * x2))
