"""Where the degrees of freedom of models with intrinsics are, in steps, slopes, information and covariances."""

from __future__ import annotations

from dataclasses import dataclass

OF_CAMERA = 3  # log_scale, x and y


@dataclass(frozen=True, slots=True)
class DegreesOfFreedom:
    """The order: the pose, first its rotation; then log_scale, x and y of each camera; then k1 of each lens.

    Attributes:
        pose: of the pose.
        cameras: how many there are.
    """

    pose: int
    cameras: int

    @property
    def with_intrinsics(self) -> int:
        """Degrees of freedom of a pose with intrinsics."""
        return self.pose + OF_CAMERA * self.cameras

    @property
    def with_lenses(self) -> int:
        """Degrees of freedom of a pose with intrinsics and lenses."""
        return self.with_intrinsics + self.cameras

    @property
    def rotation(self) -> slice:
        """The rotation vector."""
        return slice(0, 3)

    @property
    def translation(self) -> slice:
        """The translation: two numbers of its direction, or three."""
        return slice(3, self.pose)

    @property
    def intrinsics(self) -> slice:
        """The intrinsics of all cameras."""
        return slice(self.pose, self.with_intrinsics)

    @property
    def lenses(self) -> slice:
        """k1 of all lenses."""
        return slice(self.with_intrinsics, self.with_lenses)

    def camera(self, number: int = 0) -> slice:
        """The intrinsics of one camera."""
        return slice(self.focal(number), self.focal(number) + OF_CAMERA)

    def focal(self, number: int = 0) -> int:
        """The log_scale of one camera, the logarithm of its focal length."""
        return self.pose + OF_CAMERA * number

    def lens(self, number: int = 0) -> int:
        """The k1 of one lens."""
        return self.with_intrinsics + number


RELATIVE = DegreesOfFreedom(pose=5, cameras=2)
ABSOLUTE = DegreesOfFreedom(pose=6, cameras=1)
