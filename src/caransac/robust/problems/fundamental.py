"""The fundamental matrix of uncalibrated images."""

from __future__ import annotations

import numpy as np

from caransac import kernels
from caransac.geometry import Array
from caransac.kernels import Indices
from caransac.robust.problems.base import Problem, local_refinement

SMALLEST_SPREAD = 1e-6  # pixels; below, all points are one
TYPICAL_FOCAL = 2.0  # in the coordinates of `Fundamental`, where an image is about two wide


class Fundamental(Problem):
    """Fundamental matrix; points are pixels, centred and with one scale for both images; models are rows [F]."""

    name = "fundamental"
    sample_size = 7
    no_models = np.empty((0, 9))

    def __init__(self, points1: Array, points2: Array, max_error: float) -> None:
        super().__init__(points1, points2, max_error)
        self._normalise1 = self._normalise2 = np.eye(3)

    @classmethod
    def from_pixels(cls, pixels1: Array, pixels2: Array, max_error_px: float) -> Fundamental:
        """The problem of pixels (n, 2)."""
        # Centre each image but scale both alike: the Sampson distance then only changes its unit. Medians, because a
        # single absurd match would otherwise squeeze all others into a point.
        centre1, centre2 = (np.median(pixels, axis=0) if len(pixels) else np.zeros(2) for pixels in (pixels1, pixels2))
        shifted1, shifted2 = pixels1 - centre1, pixels2 - centre2
        spread = float(np.median(np.abs([shifted1, shifted2]))) if len(pixels1) else 0.0
        scale = 0.5 / spread if spread > SMALLEST_SPREAD else 1.0
        problem = cls(shifted1 * scale, shifted2 * scale, max_error_px * scale)
        problem._normalise1, problem._normalise2 = (
            np.array([[scale, 0, -scale * centre[0]], [0, scale, -scale * centre[1]], [0, 0, 1]])
            for centre in (centre1, centre2)
        )
        return problem

    def in_pixels(self, models: Array) -> Array:
        """Models as fundamental matrices of pixels, of norm one: (m, 9) -> (m, 9)."""
        models = (self._normalise2.T @ self.matrices(models) @ self._normalise1).reshape(-1, 9)
        models /= np.abs(models).max(axis=1, keepdims=True)  # first, so that the norm cannot underflow
        return np.asarray(models / np.linalg.norm(models, axis=1, keepdims=True))

    def from_matrix(self, F: Array) -> Array:
        """A fundamental matrix (3, 3) of pixels as a model (9,): the inverse of `in_pixels`."""
        model = np.linalg.inv(self._normalise2).T @ F @ np.linalg.inv(self._normalise1)
        return np.asarray(model / np.linalg.norm(model)).reshape(9)

    def solve(self, samples: Indices) -> Array:
        """See `Problem.solve`."""
        fundamentals, _ = kernels.seven_point(self.points1.take(samples, axis=0), self.points2.take(samples, axis=0))
        return fundamentals.reshape(-1, 9)

    def matrices(self, models: Array) -> Array:
        """See `Problem.matrices`."""
        return models.reshape(-1, 3, 3)

    def refine_locally(self, models: Array, max_error: float) -> Array:
        """See `Problem.refine_locally`."""
        refined, _ = kernels.refine_fundamental(
            self.matrices(models), self.points1, self.points2, **local_refinement(max_error)
        )
        return refined.reshape(-1, 9)

    def refine(self, model: Array, weights: Array, loss_scale: float) -> Array:
        """See `Problem.refine`."""
        refined, _ = kernels.refine_fundamental(
            self.matrices(model), self.points1, self.points2, weights=weights, loss_scale=loss_scale
        )
        return np.asarray(refined.reshape(9))

    def jacobian(self, model: Array) -> tuple[Array, Array]:
        """See `Problem.jacobian`: seven steps on the rank-two manifold."""
        return kernels.fundamental_jacobian(model.reshape(3, 3), self.points1, self.points2)

    def retract(self, model: Array, delta: Array) -> Array:
        """See `Problem.retract`."""
        return kernels.retract_fundamental(model.reshape(3, 3), delta).reshape(9)

    def baseline(self, model: Array) -> Array:
        """See `Problem.baseline`: the epipole in image 2, seen by a camera of ordinary focal length."""
        epipole = np.linalg.svd(self.matrices(model)[0])[0][:, 2]
        direction = epipole / (TYPICAL_FOCAL, TYPICAL_FOCAL, 1.0)
        return np.asarray(direction / np.linalg.norm(direction))
