"""Which matches a picture shows where there are many: some of every part of the image, the most probable ones."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array

MAX_LINES = 200  # thousands are a wash of colour
CELLS = 8  # rows and columns of the image over which matches are spread


def spread_matches(points: Array, probabilities: Array, size: tuple[int, int], count: int) -> Array:
    """At most `count` matches, by rising probability, so that the likely ones are drawn last.

    The most probable match of every cell of the image comes first, then the second ones, and so on.

    Args:
        points: (n, 2) pixels.
        probabilities: (n,).
        size: (width, height) of the image in pixels.
        count: how many matches at most.

    Returns:
        Indices (k,).
    """
    cells = np.clip(CELLS * points // np.array(size), 0, CELLS - 1).astype(int) @ np.array([1, CELLS])
    order = np.lexsort([-probabilities, cells])  # cell by cell, the most probable one first
    starts = np.searchsorted(cells[order], cells[order])
    ranks = np.empty(len(points), int)
    ranks[order] = np.arange(len(points)) - starts
    chosen = np.lexsort([-probabilities, ranks])[:count]
    return np.asarray(chosen[np.argsort(probabilities[chosen], kind="stable")])
