"""What problems of relative poses share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.geometry import Array, join_pose, poses_from_essential
from caransac.kernels import Correspondences, calibrate, pack, positive_depths
from caransac.robust.problems.base import Problem


class RelativePoseProblem(Problem):
    """Points are rays; models begin with a pose [R | t]."""

    sample_size = 5

    def public(self, models: Array) -> Array:
        """See `Problem.public`: poses [R | t]."""
        return models[..., :4]

    def from_public(self, model: Array) -> Array:
        """See `Problem.from_public`."""
        return model

    def outcomes(self, models: Array) -> Array:
        """See `Problem.outcomes`."""
        return models[:, :, 3]


def pack_rays(
    pixels1: Array, pixels2: Array, camera1: Camera, camera2: Camera
) -> tuple[Correspondences, NDArray[np.bool_] | None]:
    """Pixels (N, 2) of two cameras as normalised image coordinates, and which matches have them: (N,), None for all.

    Where a lens has no ray for a pixel, its match is left out.
    """
    if not camera1.is_distorted and not camera2.is_distorted:
        return calibrate(pixels1, pixels2, np.array([camera1.intrinsics, camera2.intrinsics])), None
    rays1, rays2 = camera1.pixels_to_rays(pixels1), camera2.pixels_to_rays(pixels2)
    usable = np.asarray(np.isfinite(rays1).all(axis=1) & np.isfinite(rays2).all(axis=1))
    return (pack(rays1, rays2), None) if usable.all() else (pack(rays1[usable], rays2[usable]), usable)


def choose_pose(E: Array, correspondences: Correspondences) -> Array:
    """The pose [R | t] (3, 4) of an essential matrix (3, 3) that puts most points in front of both cameras.

    Args:
        E: (3, 3), only nearly essential perhaps, as a fundamental matrix is between cameras.
        correspondences: in normalised image coordinates.
    """
    poses = join_pose(*poses_from_essential(E))
    in_front = positive_depths(poses, correspondences).sum(axis=1)
    return np.asarray(poses[int(np.argmax(in_front))])
