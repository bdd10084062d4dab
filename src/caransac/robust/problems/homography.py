"""The homography of a plane, or of images taken from one place."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array, homogeneous
from caransac.kernels import HOMOGRAPHIES, Indices, four_point
from caransac.robust.problems.base import Traits
from caransac.robust.problems.pixels import PixelProblem


class Homography(PixelProblem):
    """Points are pixels, centred and with one scale for both images; models are matrices H with x2 ~ H x1, (3, 3)."""

    # Samples of four cost little, and likely matches are not always on the plane.
    traits = Traits(confidence="homography", by_score=0.5)
    sample_size = 4
    outcome_limit = 0.01
    error_dimensions = 2
    median_error = 1.665
    model_kernels = HOMOGRAPHIES

    def solve(self, samples: Indices) -> Array:
        """See `Problem.solve`."""
        return four_point(self.correspondences, samples)[0]

    def public(self, models: Array) -> Array:
        """See `Problem.public`: homographies of pixels, of Frobenius norm one."""
        pixels = np.linalg.inv(self._normalise2) @ models @ self._normalise1
        return np.asarray(pixels / np.linalg.norm(pixels, axis=(1, 2), keepdims=True))

    def from_public(self, model: Array) -> Array:
        """See `Problem.from_public`; its sign is that of most points."""
        H = self._normalise2 @ model @ np.linalg.inv(self._normalise1)
        depths = np.sum(self.points1 * H[2, :2], axis=1) + H[2, 2]
        return np.asarray(H / np.copysign(np.linalg.norm(H), np.median(depths) if len(depths) else 1.0))

    def outcomes(self, models: Array) -> Array:
        """See `Problem.outcomes`: where the corners of the matched region go, in units of its extent, (m, 8)."""
        points1 = self.points1
        low, high = points1.min(axis=0), points1.max(axis=0)
        corners = np.array([low, (low[0], high[1]), high, (high[0], low[1])])
        moved = homogeneous(corners) @ models.swapaxes(1, 2)
        extent = float(np.linalg.norm(np.ptp(self.points2, axis=0)))
        return np.asarray(moved[..., :2] / moved[..., 2:] / extent).reshape(len(models), 8)
