"""Sample quality: how promising a minimal sample looks before any model is computed from it.

Drawing more samples than are solved and keeping the promising ones is the idea of L. Cavalli, M. Pollefeys, D. Barath,
"NeFSAC: Neurally Filtered Minimal Samples" (ECCV 2022).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from caransac.geometry import Array

# The points (S, k, 2) of samples in either image -> (S,) numbers, higher for more promising samples. Only the order
# counts, so that no unit matters.
Quality = Callable[[Array, Array], Array]


def geometric_quality(x1: Array, x2: Array) -> Array:
    """How well the points of samples (S, k, 2) spread in both images: (S,); the order of the points is of no account.

    The product of the smallest distance between two points and of the extent across the line that fits them best: near
    neighbours and collinear points turn a little noise into a large error of the model.
    """
    closest = np.minimum(closest_distance_sq(x1), closest_distance_sq(x2))
    return np.asarray(closest * np.minimum(extent_across_sq(x1), extent_across_sq(x2)))


def closest_distance_sq(points: Array) -> Array:
    """Smallest squared distance between two points of each sample: (S, k, 2) -> (S,)."""
    first, second = np.triu_indices(points.shape[1], 1)
    offsets = points[:, first] - points[:, second]
    return np.asarray((offsets[..., 0] ** 2 + offsets[..., 1] ** 2).min(axis=1))


def extent_across_sq(points: Array) -> Array:
    """Mean squared distance of each sample's points to the line that fits them best: (S, k, 2) -> (S,)."""
    x, y = np.moveaxis(points - points.mean(axis=1, keepdims=True), 2, 0)
    xx, yy, xy = (x * x).mean(axis=1), (y * y).mean(axis=1), (x * y).mean(axis=1)
    return np.asarray(0.5 * (xx + yy - np.hypot(xx - yy, 2 * xy)))  # the smaller eigenvalue of the scatter matrix


def load_quality(name: str) -> Quality:
    """The quality of a name: "geometric"."""
    if name != "geometric":
        raise ValueError(f"sample_quality must be 'geometric', not {name!r}")
    return geometric_quality
