"""The homography of a plane, or of images taken from one place."""

from __future__ import annotations

import math

import numpy as np

from caransac.geometry import Array
from caransac.kernels import HOMOGRAPHIES, Indices, four_point
from caransac.robust.problems.base import Traits
from caransac.robust.problems.pixels import PixelProblem


class Homography(PixelProblem):
    """Points are pixels, centred and divided by one scale for both images; models are H (3, 3) with x2 ~ H x1."""

    # Samples of four points cost little, and likely matches are not always on the plane: half are drawn by score.
    traits = Traits(confidence="homography", by_score=0.5, weighted=False)
    sample_size = 4
    outcome_limit = 0.01
    error_dimensions = 2
    median_error = 1.665
    model_kernels = HOMOGRAPHIES

    def solve(self, samples: Indices) -> Array:
        """Solve samples (S, 4) for homographies (m, 3, 3)."""
        return four_point(self.correspondences, samples)[0]

    def public(self, models: Array) -> Array:
        """Convert models to homographies (m, 3, 3) for pixels, with Frobenius norm one."""
        pixels = np.linalg.inv(self._normalise2) @ models @ self._normalise1
        return np.asarray(pixels / np.linalg.norm(pixels, axis=(1, 2), keepdims=True))

    def from_public(self, model: Array) -> Array:
        """Convert a homography for pixels to a model. The sign gives most points a positive depth."""
        H = self._normalise2 @ model @ np.linalg.inv(self._normalise1)
        depths = np.sum(self.points1 * H[2, :2], axis=1) + H[2, 2]
        return np.asarray(H / np.copysign(np.linalg.norm(H), np.median(depths) if len(depths) else 1.0))

    def outcomes(self, models: Array) -> Array:
        """Return the mapped corners (m, 8) of the matched region, divided by its extent."""
        (u1, v1), (u2, v2) = self.points1.T, self.points2.T  # numpy reduces rows of two numbers slowly
        left, right, top, bottom = u1.min(), u1.max(), v1.min(), v1.max()
        corners = np.array([(left, top, 1), (left, bottom, 1), (right, bottom, 1), (right, top, 1)])
        moved = corners @ models.swapaxes(1, 2)
        depths = np.copysign(np.maximum(np.abs(moved[..., 2:]), 1e-9), moved[..., 2:])  # a corner may go to infinity
        extent = max(math.hypot(np.ptp(u2), np.ptp(v2)), 1e-9)  # points may coincide
        return np.asarray(moved[..., :2] / depths / extent).reshape(len(models), 8)
