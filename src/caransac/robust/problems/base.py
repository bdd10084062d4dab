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
from caransac.geometry import Array, Floats
from caransac.kernels import Indices, Loss

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on


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
