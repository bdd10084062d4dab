"""The two estimation problems behind one set of verbs: solve, rank, score, refine.

A problem owns its correspondences in well-scaled coordinates. Its models are the rows of an (m, d) array whose meaning
only the problem knows, so the estimator can select and stack them like any array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caransac import kernels
from caransac.camera import Camera, mean_pixel
from caransac.geometry import Array, Floats
from caransac.kernels import Indices, Loss

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on

SMALLEST_SPREAD = 1e-6  # pixels; below, all points are one
TYPICAL_FOCAL = 2.0  # in the coordinates of `Fundamental`, where an image is about two wide


def local_refinement(max_error: float) -> dict[str, Any]:
    """How the LO step refines: truncated loss, points within sqrt(5) thresholds, at most 512 of them, and 10 steps."""
    return {
        "loss": Loss.TRUNCATED,
        "loss_scale": max_error,
        "max_residual": 5**0.5 * max_error,
        "max_steps": 10,
        "max_points": 512,
        "min_decrease": 1e-4,
        "single_precision": True,
    }


class Problem(ABC):
    """Correspondences and a threshold, in coordinates of the order of one.

    Attributes:
        name: what its weights are called in a weights file.
        sample_size: points in a minimal sample.
        no_models: (0, d) an empty array of models.
        points1: (n, 2).
        points2: (n, 2).
        max_error: Sampson distance from which on a point does not support a model.
    """

    name: str
    sample_size: int
    no_models: Array

    def __init__(self, points1: Array, points2: Array, max_error: float) -> None:
        self.points1 = np.ascontiguousarray(points1)
        self.points2 = np.ascontiguousarray(points2)
        self.max_error = max_error

    def subset(self, index: Indices) -> Self:
        """The same problem of some of its points only, in the given order."""
        sub = copy(self)
        sub.points1, sub.points2 = self.points1[index], self.points2[index]
        return sub

    @property
    def num_points(self) -> int:
        """Number of correspondences."""
        return len(self.points1)

    @abstractmethod
    def solve(self, samples: Indices) -> Array:
        """Models (m, d) through minimal samples (S, sample_size); degenerate samples give none."""

    @abstractmethod
    def matrices(self, models: Array) -> Array:
        """The epipolar matrices (m, 3, 3) of models (m, d)."""

    @abstractmethod
    def refine_locally(self, models: Array, max_error: float) -> Array:
        """Each model fitted to its own inliers, truncated loss, a few steps: the LO step. (m, d) -> (m, d)."""

    @abstractmethod
    def jacobian(self, model: Array) -> tuple[Array, Array]:
        """Signed Sampson distances (n,) of a model (d,) and their derivatives (n, f) along `retract`."""

    @abstractmethod
    def retract(self, model: Array, delta: Array) -> Array:
        """The model (d,) a small step (f,) along the degrees of freedom away from a model (d,)."""

    @abstractmethod
    def baseline(self, model: Array) -> Array:
        """Direction (3,) from camera to camera that a model (d,) implies, of length one; its sign means nothing."""

    @abstractmethod
    def refine(self, model: Array, weights: Array, loss_scale: float) -> Array:
        """One model (d,) fitted to all points with the given weights (n,), Cauchy loss, to convergence."""

    def rank(self, models: Array, k: int, max_error: float) -> Indices:
        """Indices of the k models with the largest total consensus, largest first."""
        return kernels.top_models(self.matrices(models), self.points1, self.points2, max_error, k)[0]

    def score(self, models: Array, max_error: float) -> Floats:
        """MSAC scores (m, n); a point behind a camera scores 0."""
        return kernels.msac_scores(self.matrices(models), self.points1, self.points2, max_error)

    def distances(self, model: Array) -> Array:
        """Sampson distances (n,) of all points to a model (d,)."""
        return np.asarray(np.sqrt(kernels.residuals_sq(self.matrices(model[None]), self.points1, self.points2)[0]))

    def inliers(self, model: Array) -> NDArray[np.bool_]:
        """Which points (n,) support a model (d,)."""
        return np.asarray(self.score(model[None], self.max_error)[0] > 0)


class Essential(Problem):
    """Relative pose of calibrated cameras; points are normalised image coordinates; models are rows [R, t]."""

    name = "essential"
    sample_size = 5
    no_models = np.empty((0, 12))

    @classmethod
    def from_pixels(
        cls, pixels1: Array, pixels2: Array, camera1: Camera, camera2: Camera, max_error_px: float
    ) -> Essential:
        """The problem of pixels (n, 2) of two cameras."""
        max_error = max_error_px * mean_pixel(camera1, camera2)
        return cls(camera1.pixels_to_rays(pixels1), camera2.pixels_to_rays(pixels2), max_error)

    @staticmethod
    def split(models: Array) -> tuple[Array, Array]:
        """Rotations (m, 3, 3) and translations (m, 3) of models (m, 12)."""
        return models[:, :9].reshape(-1, 3, 3), models[:, 9:]

    @staticmethod
    def _join(rotations: Array, translations: Array) -> Array:
        return np.concatenate([rotations.reshape(-1, 9), translations], axis=1)

    def solve(self, samples: Indices) -> Array:
        """See `Problem.solve`; only poses with the whole sample in front of both cameras."""
        rotations, translations, _ = kernels.five_point_poses(self.points1, self.points2, samples)
        return self._join(rotations, translations)

    def matrices(self, models: Array) -> Array:
        """See `Problem.matrices`."""
        return kernels.essential_from_pose(*self.split(models))

    def score(self, models: Array, max_error: float) -> Floats:
        """See `Problem.score`."""
        return kernels.pose_scores(*self.split(models), self.points1, self.points2, max_error)

    def refine_locally(self, models: Array, max_error: float) -> Array:
        """See `Problem.refine_locally`."""
        rotations, translations, _ = kernels.refine_pose(
            *self.split(models), self.points1, self.points2, **local_refinement(max_error)
        )
        return self._join(rotations, translations)

    def refine(self, model: Array, weights: Array, loss_scale: float) -> Array:
        """See `Problem.refine`."""
        rotations, translations, _ = kernels.refine_pose(
            *self.split(model[None]), self.points1, self.points2, weights=weights, loss_scale=loss_scale
        )
        return np.asarray(self._join(rotations, translations)[0])

    def jacobian(self, model: Array) -> tuple[Array, Array]:
        """See `Problem.jacobian`: three numbers turn, two move the translation on its sphere."""
        return kernels.pose_jacobian(model[:9].reshape(3, 3), model[9:], self.points1, self.points2)

    def retract(self, model: Array, delta: Array) -> Array:
        """See `Problem.retract`."""
        return np.concatenate(kernels.retract_pose(model[:9].reshape(3, 3), model[9:], delta), axis=None)

    def baseline(self, model: Array) -> Array:
        """See `Problem.baseline`."""
        return model[9:]


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
