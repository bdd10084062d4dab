"""Choose the matches to draw if there are many: the most probable ones of every part of the image."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array

MAX_LINES = 200  # thousands of lines would hide each other
CELLS = 8  # number of rows and of columns of cells over which matches are spread


def spread_matches(points: Array, probabilities: Array, size: tuple[int, int], count: int) -> Array:
    """Choose up to `count` matches. Return them by increasing probability, so that likely ones are drawn last.

    The most probable match of every cell of the image is chosen first, then the second of every cell, and so on.

    Args:
        points: (n, 2) pixels.
        probabilities: (n,) inlier probabilities.
        size: (width, height) of the image in pixels.
        count: maximum number of matches.

    Returns:
        Indices (k,).
    """
    cells = np.clip(CELLS * points // np.array(size), 0, CELLS - 1).astype(int) @ np.array([1, CELLS])
    order = np.lexsort([-probabilities, cells])  # cell by cell, the most probable match first
    starts = np.searchsorted(cells[order], cells[order])
    ranks = np.empty(len(points), int)
    ranks[order] = np.arange(len(points)) - starts
    chosen = np.lexsort([-probabilities, ranks])[:count]
    return np.asarray(chosen[np.argsort(probabilities[chosen], kind="stable")])
