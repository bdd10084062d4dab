"""The fundamental matrix of uncalibrated images."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array
from caransac.kernels import FUNDAMENTALS, Indices, seven_point
from caransac.options import MaxError
from caransac.robust.problems.base import Problem

SMALLEST_SPREAD = 1e-6  # pixels; below, all points are one
TYPICAL_FOCAL = 2.0  # in the coordinates of the problem, where an image is about two wide


def normalise_pixels(pixels1: Array, pixels2: Array) -> tuple[Array, Array, Array, Array]:
    """Pixels (n, 2) of two images as points of the order of one, and the similarities (3, 3) that make them so.

    Each image is centred but both are scaled alike: distances in an image then only change their unit. Medians, because
    a single absurd match would otherwise squeeze all others into a point.
    """
    centre1, centre2 = (np.median(pixels, axis=0) if len(pixels) else np.zeros(2) for pixels in (pixels1, pixels2))
    shifted1, shifted2 = pixels1 - centre1, pixels2 - centre2
    spread = float(np.median(np.abs([shifted1, shifted2]))) if len(pixels1) else 0.0
    scale = 0.5 / spread if spread > SMALLEST_SPREAD else 1.0
    to1, to2 = (
        np.array([[scale, 0, -scale * centre[0]], [0, scale, -scale * centre[1]], [0, 0, 1]])
        for centre in (centre1, centre2)
    )
    return shifted1 * scale, shifted2 * scale, to1, to2


class Fundamental(Problem):
    """Points are pixels, centred and with one scale for both images; models are matrices F, (3, 3)."""

    name = "fundamental"
    sample_size = 7
    model_kernels = FUNDAMENTALS

    def __init__(self, points1: Array, points2: Array, max_error_px: MaxError, pixel: float = 1.0) -> None:
        super().__init__(points1, points2, max_error_px, pixel)
        self._normalise1 = self._normalise2 = np.eye(3)

    @classmethod
    def from_pixels(cls, pixels1: Array, pixels2: Array, max_error_px: MaxError) -> Fundamental:
        """The problem of pixels (n, 2)."""
        points1, points2, normalise1, normalise2 = normalise_pixels(pixels1, pixels2)
        problem = cls(points1, points2, max_error_px, normalise1[0, 0])
        problem._normalise1, problem._normalise2 = normalise1, normalise2
        return problem

    def solve(self, samples: Indices) -> Array:
        """See `Problem.solve`."""
        return seven_point(self.correspondences, samples)[0]

    def public(self, models: Array) -> Array:
        """See `Problem.public`: fundamental matrices of pixels, of Frobenius norm one."""
        pixels = (self._normalise2.T @ models @ self._normalise1).reshape(-1, 9)
        pixels /= np.abs(pixels).max(axis=1, keepdims=True)  # first, so that the norm cannot underflow
        return np.asarray(pixels / np.linalg.norm(pixels, axis=1, keepdims=True)).reshape(-1, 3, 3)

    def from_public(self, model: Array) -> Array:
        """See `Problem.from_public`."""
        F = np.linalg.inv(self._normalise2).T @ model @ np.linalg.inv(self._normalise1)
        return np.asarray(F / np.linalg.norm(F))

    def outcome(self, model: Array) -> Array:
        """See `Problem.outcome`: the epipole in image 2, seen by a camera of ordinary focal length."""
        epipole = np.linalg.svd(model)[0][:, 2]
        direction = epipole / (TYPICAL_FOCAL, TYPICAL_FOCAL, 1.0)
        return np.asarray(direction / np.linalg.norm(direction))
