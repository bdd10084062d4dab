"""The relative pose of calibrated cameras."""

from __future__ import annotations

import numpy as np

from caransac import kernels
from caransac.camera import Camera, mean_pixel
from caransac.geometry import Array, Floats
from caransac.kernels import Indices
from caransac.robust.problems.base import Problem, local_refinement


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
