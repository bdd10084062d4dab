"""Side information: what is known about a match before any model is tried, as numbers the state network reads."""

from __future__ import annotations

import numpy as np

from caransac import kernels
from caransac.geometry import Array, Floats
from caransac.options import ScoreKind

NUM_FREQUENCIES = 8  # each twice the one before
NUM_SCORE_FEATURES = 2 * NUM_FREQUENCIES + 2
NUM_NEIGHBOUR_FEATURES = 18
NUM_FEATURES = NUM_SCORE_FEATURES + NUM_NEIGHBOUR_FEATURES


def score_features(scores: Array | None, score_kind: ScoreKind, num_points: int) -> Floats:
    """Scores lifted to sines and cosines of rising frequency, and which kind they are: (n, 18), zero without scores."""
    features = np.zeros((num_points, NUM_SCORE_FEATURES), np.float32)
    if scores is not None:
        phases = np.clip(scores, 0, 1.5) * (np.pi / 1.5)
        rotations = np.cos(phases) + 1j * np.sin(phases)
        for k in range(NUM_FREQUENCIES):
            features[:, k], features[:, NUM_FREQUENCIES + k] = rotations.imag, rotations.real
            rotations = rotations * rotations  # twice the angle, at a fraction of the cost of its sine and cosine
        features[:, -2 if score_kind == "ratio" else -1] = 1
    return features


def medians(rows: Array) -> Array:
    """Medians of rows of finite numbers: (m, n) -> (m, 1).

    Like np.median, which asks for several ranks at once and takes up to five times as long.
    """
    half = rows.shape[1] // 2
    parted = np.partition(rows, half, axis=1)
    upper = parted[:, half, None]
    return np.asarray(upper if rows.shape[1] % 2 else 0.5 * (upper + parted[:, :half].max(axis=1, keepdims=True)))


def in_spreads(points: Array) -> Array:
    """Points relative to their median, in units of their spread: (n, 2) -> (n, 2), blind to a few absurd ones."""
    columns = np.ascontiguousarray(points.T)
    shifted = columns - medians(columns)
    spread = 1.6 * medians(np.abs(shifted).reshape(1, -1))  # about the root mean square of points all over an image
    return np.asarray(shifted / spread if spread > 0 else shifted).T


def side_information(
    points1: Array, points2: Array, scores: Array | None, score_kind: ScoreKind, features: Array | None = None
) -> Floats:
    """All that is known of every match, the caller's own features last: (n, NUM_FEATURES + d)."""
    neighbours = kernels.neighbour_features(kernels.pack(in_spreads(points1), in_spreads(points2)))
    parts = [score_features(scores, score_kind, len(points1)), neighbours]
    if features is not None:
        parts.append(features.astype(np.float32))
    return np.concatenate(parts, axis=1)
