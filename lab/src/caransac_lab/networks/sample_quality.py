"""Sample quality: how promising a minimal sample looks before any model is computed from it.

Drawing more samples than are solved and keeping the promising ones is the idea of L. Cavalli, M. Pollefeys, D. Barath,
"NeFSAC: Neurally Filtered Minimal Samples" (ECCV 2022).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from caransac import kernels
from caransac.geometry import Array, Floats
from caransac.learned.weights_file import LEAKY_RELU, NONE, Weights, layers_of, load
from caransac_lab.networks.weights import find_weights

# The points (S, k, 2) of samples in either image -> (S,) numbers, higher for more promising samples. Only the order
# counts, so that no unit matters.
Quality = Callable[[Array, Array], Array]

SMALLEST_SQ = 1e-8  # added to squared distances before their logarithm
TYPICAL_LOG, LOG_DEVIATION = -6.0, 2.0  # of these logarithms, roughly; the network learns faster from numbers about one


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


@dataclass(frozen=True, eq=False)
class LearnedQuality:
    """A `Quality` by a small network, blind to the order of a sample's points.

    Every match of the sample is read by itself (``match``), then again together with the mean of what was read of all
    (``context``); the mean and the maximum over the matches, and how the points spread, decide (``decoder``). The names
    are those of `layers_of`.
    """

    weights: Weights

    def __call__(self, x1: Array, x2: Array) -> Array:
        """Log-odds (S,) that samples (S, k, 2) have a model near the truth, were as many good as bad."""
        return self.log_odds(*sample_inputs(x1, x2)).astype(float)

    def log_odds(self, matches: Floats, spread: Floats) -> Floats:
        """Log-odds (S,) of samples by what `sample_inputs` says of them."""
        count, size, _ = matches.shape
        rows = matches.reshape(count * size, -1)
        read = kernels.mlp([rows], layers_of(self.weights, "match", LEAKY_RELU, LEAKY_RELU))
        context = np.repeat(read.reshape(count, size, -1).mean(axis=1), size, axis=0)
        read = kernels.mlp([read, context], layers_of(self.weights, "context", LEAKY_RELU, LEAKY_RELU))
        read = read.reshape(count, size, -1)
        pooled = [read.mean(axis=1), read.max(axis=1), spread]
        return kernels.mlp(pooled, layers_of(self.weights, "decoder", LEAKY_RELU, NONE))[:, 0]

    def try_out(self) -> None:
        """See `weights_file.Network.try_out`."""
        points = np.zeros((1, 5, 2))
        self(points, points)


def sample_inputs(x1: Array, x2: Array) -> tuple[Floats, Floats]:
    """What the network reads of samples (S, k, 2).

    Returns:
        (S, k, 4) their matches, and (S, 4) how their points spread: logarithms of the parts of `geometric_quality` in
        either image, of the order of one.
    """
    parts = [part(points) for part in (closest_distance_sq, extent_across_sq) for points in (x1, x2)]
    spread = (np.log(np.maximum(np.stack(parts, axis=1), 0) + SMALLEST_SQ) - TYPICAL_LOG) / LOG_DEVIATION
    return np.concatenate([x1, x2], axis=2, dtype=np.float32), spread.astype(np.float32)


def load_quality(name: str | Path) -> Quality:
    """The quality "geometric", or the learned one of a name in the lab or of the path of an npz file."""
    return geometric_quality if name == "geometric" else load(find_weights(name), LearnedQuality, "sample_quality")
