"""Base class of the problems with relative poses, and the priors of their cameras."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.camera_priors import UNKNOWN_FOCAL, UNKNOWN_FOCAL_DEVIATION
from caransac.geometry import Array, join_pose, poses_from_essential
from caransac.kernels import Correspondences, calibrate, pack, positive_depths
from caransac.robust.problems.base import Problem
from caransac.tuning import CAMERAS

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on


@dataclass(frozen=True)
class CameraPrior:
    """Standard deviations of the intrinsics of a camera; 0 for exact intrinsics.

    Attributes:
        focal: deviation of the logarithm of the focal length.
        centre: deviation of the principal point, divided by the focal length.
    """

    focal: float
    centre: float

    @property
    def with_tails(self) -> CameraPrior:
        """The prior or, for an unknown camera, a Gaussian as wide as its heavy-tailed prior."""
        return replace(self, focal=max(self.focal, CAMERAS.free_deviation)) if self.unknown else self

    @property
    def unknown(self) -> bool:
        """Whether the focal length is unknown."""
        return self.focal >= UNKNOWN_FOCAL_DEVIATION

    @classmethod
    def of(cls, camera: Camera, centre_deviation: float) -> CameraPrior:
        """Return the prior of a camera. If its focal length is exact, so is its principal point."""
        longer = max(camera.width, camera.height) or camera.mean_focal / UNKNOWN_FOCAL
        uncertain = camera.focal_deviation > 0
        return cls(camera.focal_deviation, centre_deviation * longer / camera.mean_focal if uncertain else 0.0)


class RelativePoseProblem(Problem):
    """Points are rays; models begin with a pose [R | t].

    Attributes:
        priors: priors of the intrinsics of the two cameras.
        shared: whether both images come from one camera with an uncertain focal length.
    """

    sample_size = 5
    priors: tuple[CameraPrior, CameraPrior] = (CameraPrior(0.0, 0.0), CameraPrior(0.0, 0.0))
    shared: bool = False

    def with_tails(self) -> Self:
        """Return the problem with `CameraPrior.with_tails` for both cameras."""
        return self.with_changes(priors=(self.priors[0].with_tails, self.priors[1].with_tails))

    def public(self, models: Array) -> Array:
        """Return the poses [R | t] (m, 3, 4) of models."""
        return models[..., :4]

    def from_public(self, model: Array) -> Array:
        """Return a pose as a model, without intrinsics."""
        return model[:, :4]

    def outcomes(self, models: Array) -> Array:
        """Return the translation directions (m, 3) of models."""
        return models[:, :, 3]


def pack_rays(
    pixels1: Array, pixels2: Array, camera1: Camera, camera2: Camera
) -> tuple[Correspondences, NDArray[np.bool_] | None]:
    """Normalise pixels (N, 2) of two cameras. Also return the mask (N,) of the matches with rays, None for all."""
    if not camera1.is_distorted and not camera2.is_distorted:
        return calibrate(pixels1, pixels2, np.array([camera1.intrinsics, camera2.intrinsics])), None
    rays1, rays2 = camera1.pixels_to_rays(pixels1), camera2.pixels_to_rays(pixels2)
    usable = np.asarray(np.isfinite(rays1).all(axis=1) & np.isfinite(rays2).all(axis=1))
    return (pack(rays1, rays2), None) if usable.all() else (pack(rays1[usable], rays2[usable]), usable)


def choose_pose(E: Array, correspondences: Correspondences) -> Array:
    """Return the pose [R | t] of a nearly essential matrix (3, 3) that has most points in front of both cameras."""
    poses = join_pose(*poses_from_essential(E))
    in_front = positive_depths(poses, correspondences).sum(axis=1)
    return np.asarray(poses[int(np.argmax(in_front))])
