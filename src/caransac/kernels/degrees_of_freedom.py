"""Indices of the degrees of freedom of models with intrinsics, in steps, slopes, information and covariances."""

from __future__ import annotations

from dataclasses import dataclass

OF_CAMERA = 3  # number of intrinsics: log_scale, x and y


@dataclass(frozen=True, slots=True)
class DegreesOfFreedom:
    """Order of the degrees of freedom: rotation, translation, log_scale, x and y of each camera, k1 of each lens.

    Attributes:
        pose: number of degrees of freedom of the pose.
        cameras: number of cameras.
    """

    pose: int
    cameras: int

    @property
    def with_intrinsics(self) -> int:
        """Number of degrees of freedom of a pose with intrinsics."""
        return self.pose + OF_CAMERA * self.cameras

    @property
    def with_lenses(self) -> int:
        """Number of degrees of freedom of a pose with intrinsics and lenses."""
        return self.with_intrinsics + self.cameras

    @property
    def rotation(self) -> slice:
        """Indices of the rotation vector."""
        return slice(0, 3)

    @property
    def translation(self) -> slice:
        """Indices of the translation: two for a direction, otherwise three."""
        return slice(3, self.pose)

    @property
    def intrinsics(self) -> slice:
        """Indices of the intrinsics of all cameras."""
        return slice(self.pose, self.with_intrinsics)

    @property
    def lenses(self) -> slice:
        """Indices of k1 of all lenses."""
        return slice(self.with_intrinsics, self.with_lenses)

    def camera(self, number: int = 0) -> slice:
        """Return the indices of the intrinsics of one camera."""
        return slice(self.focal(number), self.focal(number) + OF_CAMERA)

    def focal(self, number: int = 0) -> int:
        """Return the index of log_scale of one camera, the logarithm of its relative focal length."""
        return self.pose + OF_CAMERA * number

    def lens(self, number: int = 0) -> int:
        """Return the index of k1 of one lens."""
        return self.with_intrinsics + number


RELATIVE = DegreesOfFreedom(pose=5, cameras=2)
ABSOLUTE = DegreesOfFreedom(pose=6, cameras=1)
