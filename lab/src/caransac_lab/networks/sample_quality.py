"""Sample quality: how promising a minimal sample is before any model is computed from it.

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

# Maps the points (S, k, 2) of samples in both images to numbers (S,), higher for more promising samples. Only their
# order matters, so they have no unit.
Quality = Callable[[Array, Array], Array]

SMALLEST_SQ = 1e-8  # added to squared distances before their logarithm
# Rough mean and deviation of these logarithms; networks learn faster from normalised inputs.
TYPICAL_LOG, LOG_DEVIATION = -6.0, 2.0


def geometric_quality(x1: Array, x2: Array) -> Array:
    """Rate how well the points of samples (S, k, 2) spread in both images: (S,). Their order does not matter.

    The rating is the smallest distance between two points times the extent across their best-fitting line. Close
    neighbours and collinear points turn small noise into a large error of the model.
    """
    closest = np.minimum(closest_distance_sq(x1), closest_distance_sq(x2))
    return np.asarray(closest * np.minimum(extent_across_sq(x1), extent_across_sq(x2)))


def closest_distance_sq(points: Array) -> Array:
    """Return the smallest squared distance between two points of each sample: (S, k, 2) -> (S,)."""
    first, second = np.triu_indices(points.shape[1], 1)
    offsets = points[:, first] - points[:, second]
    return np.asarray((offsets[..., 0] ** 2 + offsets[..., 1] ** 2).min(axis=1))


def extent_across_sq(points: Array) -> Array:
    """Return the mean squared distance of each sample's points to their best-fitting line: (S, k, 2) -> (S,)."""
    x, y = np.moveaxis(points - points.mean(axis=1, keepdims=True), 2, 0)
    xx, yy, xy = (x * x).mean(axis=1), (y * y).mean(axis=1), (x * y).mean(axis=1)
    return np.asarray(0.5 * (xx + yy - np.hypot(xx - yy, 2 * xy)))  # the smaller eigenvalue of the scatter matrix


@dataclass(frozen=True, eq=False)
class LearnedQuality:
    """A `Quality` by a small network that does not depend on the order of a sample's points.

    ``match`` reads every match of the sample separately. ``context`` reads each result again, together with the mean
    over all matches. ``decoder`` decides from the mean and the maximum over the matches and from the spread of the
    points. The names are those of `layers_of`.
    """

    weights: Weights

    def __call__(self, x1: Array, x2: Array) -> Array:
        """Return log-odds (S,) that samples (S, k, 2) have a model near the truth, for equally many good and bad."""
        return self.log_odds(*sample_inputs(x1, x2)).astype(float)

    def log_odds(self, matches: Floats, spread: Floats) -> Floats:
        """Return log-odds (S,) of samples from the output of `sample_inputs`."""
        count, size, _ = matches.shape
        rows = matches.reshape(count * size, -1)
        read = kernels.mlp([rows], layers_of(self.weights, "match", LEAKY_RELU, LEAKY_RELU))
        context = np.repeat(read.reshape(count, size, -1).mean(axis=1), size, axis=0)
        read = kernels.mlp([read, context], layers_of(self.weights, "context", LEAKY_RELU, LEAKY_RELU))
        read = read.reshape(count, size, -1)
        pooled = [read.mean(axis=1), read.max(axis=1), spread]
        return kernels.mlp(pooled, layers_of(self.weights, "decoder", LEAKY_RELU, NONE))[:, 0]

    def try_out(self) -> None:
        """Run every layer once. Raise an error if an array is missing or has a wrong shape."""
        points = np.zeros((1, 5, 2))
        self(points, points)


def sample_inputs(x1: Array, x2: Array) -> tuple[Floats, Floats]:
    """Return the inputs of the network for samples (S, k, 2).

    Returns:
        (S, k, 4) matches of the samples, and (S, 4) spreads of their points: logarithms of the factors of
        `geometric_quality` in both images, scaled to the order of one.
    """
    parts = [part(points) for part in (closest_distance_sq, extent_across_sq) for points in (x1, x2)]
    spread = (np.log(np.maximum(np.stack(parts, axis=1), 0) + SMALLEST_SQ) - TYPICAL_LOG) / LOG_DEVIATION
    return np.concatenate([x1, x2], axis=2, dtype=np.float32), spread.astype(np.float32)


def load_quality(name: str | Path) -> Quality:
    """Return the quality "geometric", or load a learned one by its name in the lab or the path of an npz file."""
    return geometric_quality if name == "geometric" else load(find_weights(name), LearnedQuality, "sample_quality")
