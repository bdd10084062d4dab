"""The fundamental matrix of uncalibrated images."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array
from caransac.kernels import FUNDAMENTALS, Indices, seven_point
from caransac.robust.problems.base import Traits
from caransac.robust.problems.pixels import PixelProblem


class Fundamental(PixelProblem):
    """Points are pixels, centred and divided by one scale for both images; models are matrices F, (3, 3)."""

    # An image is about two units wide.
    traits = Traits(confidence="fundamental", degeneracy="uncalibrated", usual_focal=2.0)
    sample_size = 7
    model_kernels = FUNDAMENTALS

    def solve(self, samples: Indices) -> Array:
        """Solve samples (S, 7) for fundamental matrices (m, 3, 3)."""
        return seven_point(self.correspondences, samples)[0]

    def public(self, models: Array) -> Array:
        """Convert models to fundamental matrices (m, 3, 3) for pixels, with Frobenius norm one."""
        pixels = (self._normalise2.T @ models @ self._normalise1).reshape(-1, 9)
        pixels /= np.abs(pixels).max(axis=1, keepdims=True)  # first, so that the norm cannot underflow
        return np.asarray(pixels / np.linalg.norm(pixels, axis=1, keepdims=True)).reshape(-1, 3, 3)

    def fundamentals(self, models: Array) -> Array:
        """Return the fundamental matrices (m, 3, 3) for pixels, as `public` does."""
        return self.public(models)

    def from_public(self, model: Array) -> Array:
        """Convert a fundamental matrix for pixels to a model."""
        F = np.linalg.inv(self._normalise2).T @ model @ np.linalg.inv(self._normalise1)
        return np.asarray(F / np.linalg.norm(F))

    def outcomes(self, models: Array) -> Array:
        """Return the directions (m, 3) of the epipoles in image 2, for an ordinary focal length."""
        epipoles = np.linalg.svd(models)[0][:, :, 2]
        directions = epipoles / (2.0, 2.0, 1.0)
        return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))
