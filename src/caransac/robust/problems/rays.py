"""The relative pose of omnidirectional cameras, whose rays are points on a sphere."""

from __future__ import annotations

from math import radians

import numpy as np

from caransac.geometry import Array
from caransac.kernels import RAY_POSES, Indices, five_point, pack
from caransac.robust.problems.base import Traits
from caransac.robust.problems.relative import RelativePoseProblem


class Spherical(RelativePoseProblem):
    """Points are rays in Lambert's azimuthal equal-area projection; models are poses [R | t], (3, 4).

    Distances are angles in radians, and `pixel` is one degree.
    """

    traits = Traits(confidence=None, has_mean=True)
    model_kernels = RAY_POSES

    @classmethod
    def from_rays(cls, rays1: Array, rays2: Array) -> Spherical:
        """Make the problem from unit rays (N, 3) of two cameras."""
        return cls(pack(project_rays(rays1), project_rays(rays2)), radians(1.0))

    def solve(self, samples: Indices) -> Array:
        """Solve samples (S, 5) for poses (m, 3, 4) whose rays meet in front of both cameras."""
        given = self.correspondences.subset(samples.ravel())
        rays = [rays_at(points).reshape(*samples.shape, 3) for points in (given.points1, given.points2)]
        # The solver takes points of an image plane. No ray of a sample should be nearly parallel to that plane.
        axes = [np.abs(each).min(axis=1).argmax(axis=1) for each in rays]
        poses = []
        for axis1 in range(3):
            for axis2 in range(3):
                chosen = np.flatnonzero((axes[0] == axis1) & (axes[1] == axis2))
                poses.append(_poses(rays[0][chosen], rays[1][chosen], axis1, axis2))
        return np.concatenate(poses)


def project_rays(rays: Array) -> Array:
    """Project unit rays (n, 3) to points (n, 2), whose radius is twice the sine of half the angle to the third axis."""
    return np.asarray(rays[:, :2] * np.sqrt(2 / np.maximum(1 + rays[:, 2:], 1e-12)))


def rays_at(points: Array) -> Array:
    """Return the unit rays (n, 3) of points (n, 2): the inverse of `project_rays`."""
    radius_sq = np.minimum(np.sum(points**2, axis=1, keepdims=True), 4.0)
    return np.concatenate([points * np.sqrt(1 - radius_sq / 4), 1 - radius_sq / 2], axis=1)


def _poses(rays1: Array, rays2: Array, axis1: int, axis2: int) -> Array:
    """Solve samples of rays (S, 5, 3), projected to image planes across the given axes, for poses (m, 3, 4)."""
    if len(rays1) == 0:
        return np.empty((0, 3, 4))
    turned = [np.roll(rays, 2 - axis, axis=2) for rays, axis in ((rays1, axis1), (rays2, axis2))]
    # On a grid of longitudes and latitudes, rays may be parallel to the image plane. They are moved by a billionth.
    depths = [np.copysign(np.maximum(np.abs(rays[..., 2:]), 1e-9), rays[..., 2:]) for rays in turned]
    points = (rays[..., :2] / depth for rays, depth in zip(turned, depths, strict=True))
    packed = pack(*(each.reshape(-1, 2) for each in points))
    index = np.arange(len(packed), dtype=np.int32).reshape(-1, 5)
    E, sample = five_point(packed, index)
    E = np.roll(E, (axis2 - 2, axis1 - 2), axis=(1, 2))
    U, _, Vt = np.linalg.svd(E)
    U *= np.sign(np.linalg.det(U))[:, None, None]
    Vt *= np.sign(np.linalg.det(Vt))[:, None, None]
    # E = U diag(1, 1, 0) V^T has the rotations U Q V^T and U Q^T V^T, where Q is a quarter turn about the third axis.
    Q = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    rotations = np.stack([U @ Q @ Vt, U @ Q.T @ Vt], axis=1)  # (m, 2, 3, 3)
    R = np.repeat(rotations, 2, axis=1)
    t = U[:, None, :, 2] * np.array([1.0, -1.0, 1.0, -1.0])[None, :, None]
    first = np.einsum("mpij,msj->mpsi", R, rays1[sample])
    second = rays2[sample][:, None]
    both, at, xt = (
        np.sum(first * second, axis=3),
        np.einsum("mpsi,mpi->mps", first, t),
        np.einsum("mpsi,mpi->mps", np.broadcast_to(second, first.shape), t),
    )
    in_front = np.all((both * xt - at > 0) & (xt - both * at > 0), axis=2)
    return np.concatenate([R, t[..., None]], axis=3)[in_front]
