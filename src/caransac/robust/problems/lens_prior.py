"""The prior of the radial distortion of lenses."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from caransac.camera import Camera
from caransac.geometry import Array
from caransac.kernels import IntrinsicsPrior
from caransac.tuning import CAMERAS, ERRORS


@dataclass(frozen=True)
class LensPrior:
    """The prior of the radial distortion k1 of two lenses, in the unit of the rays.

    For an absolute pose, the second lens has no distortion and is exact.

    Attributes:
        given: k1 of the given cameras.
        deviations: standard deviations of k1; 0 for an exact lens.
        shared: whether both images come from one camera.
        k1: k1 with which the points of the problem are undistorted.
    """

    given: tuple[float, float]
    deviations: tuple[float, float]
    shared: bool
    k1: tuple[float, float]

    @classmethod
    def of(cls, camera1: Camera, camera2: Camera, shared: bool) -> LensPrior | None:
        """Return the prior of the lenses of two cameras, or None if both are exact."""
        if camera1.distortion_deviation == 0 and camera2.distortion_deviation == 0:
            return None
        given, deviations = (camera1.k1, camera2.k1), (camera1.distortion_deviation, camera2.distortion_deviation)
        return cls(given, deviations, shared and deviations[0] == deviations[1], given)

    @classmethod
    def of_one(cls, camera: Camera) -> LensPrior | None:
        """Return the prior of the lens of one camera, or None if it is exact."""
        if camera.distortion_deviation == 0:
            return None
        given = camera.k1, 0.0
        return cls(given, (camera.distortion_deviation, 0.0), False, given)

    def add_to(self, prior: IntrinsicsPrior, noise: float, *, held: bool = False) -> IntrinsicsPrior:
        """Add the lenses to a prior of intrinsics, for a noise; `held` fixes the lenses."""
        weight = ERRORS.cameras * noise**2
        own = 0.5 * weight if self.shared else weight  # one camera has one prior, half of it in each image
        first, second = (own / each**2 if each > 0 and not held else inf for each in self.deviations)
        together = weight / CAMERAS.k1_difference**2 if self.shared else 0.0
        return prior.with_lenses((first, second), together, self.given[0])

    @property
    def is_as_given(self) -> bool:
        """Whether the points are undistorted with the k1 of the given cameras."""
        return self.k1 == self.given

    @property
    def information(self) -> Array:
        """Information (2, 2) of the prior about k1; infinity on the diagonal fixes a lens."""
        share = 0.5 if self.shared else 1.0
        information = np.diag([share / each**2 if each > 0 else inf for each in self.deviations])
        return information + self.same_information

    @property
    def same_information(self) -> Array:
        """Part (2, 2) of `information`: both images of one camera have nearly the same k1."""
        return np.array([[1, -1], [-1, 1]]) * (float(self.shared) / CAMERAS.k1_difference**2)


def slack_prior(noise: float) -> IntrinsicsPrior:
    """Return the prior of the intrinsics of exact cameras for a noise: see `CameraTuning.slack`."""
    weight, (focal, centre) = ERRORS.cameras * noise**2, CAMERAS.slack
    return IntrinsicsPrior(log_scale=(weight / focal**2,) * 2, centre=(weight / centre**2,) * 2)


def slack_information() -> Array:
    """Return the information (6,) of the prior of exact intrinsics, in the order of the degrees of freedom."""
    focal, centre = CAMERAS.slack
    return np.array([focal, centre, centre] * 2) ** -2.0
