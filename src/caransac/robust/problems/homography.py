"""The homography of a plane, or of images taken from one place."""

from __future__ import annotations

import numpy as np

from caransac.geometry import Array
from caransac.kernels import HOMOGRAPHIES, Indices, four_point
from caransac.robust.problems.base import Problem
from caransac.robust.problems.fundamental import normalise_pixels


class Homography(Problem):
    """Points are pixels, centred and with one scale for both images; models are matrices H with x2 ~ H x1, (3, 3)."""

    name = "homography"
    sample_size = 4
    model_kernels = HOMOGRAPHIES

    def __init__(self, points1: Array, points2: Array, max_error: float) -> None:
        super().__init__(points1, points2, max_error)
        self._normalise1 = self._normalise2 = np.eye(3)

    @classmethod
    def from_pixels(cls, pixels1: Array, pixels2: Array, max_error_px: float) -> Homography:
        """The problem of pixels (n, 2)."""
        points1, points2, normalise1, normalise2 = normalise_pixels(pixels1, pixels2)
        problem = cls(points1, points2, max_error_px * normalise1[0, 0])
        problem._normalise1, problem._normalise2 = normalise1, normalise2
        return problem

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
        depths = self.points1 @ H[2, :2] + H[2, 2]
        return np.asarray(H / np.copysign(np.linalg.norm(H), np.median(depths) if len(depths) else 1.0))

    def baseline(self, model: Array) -> Array:
        """See `Problem.baseline`: a homography has none."""
        raise NotImplementedError
