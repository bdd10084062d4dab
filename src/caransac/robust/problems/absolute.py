"""The absolute pose of a camera from matches of keypoints with 3D points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caransac._support.computed_once import computed_once
from caransac.camera import Camera
from caransac.geometry import Array, cross_matrix
from caransac.kernels import (
    ABSOLUTE,
    ABSOLUTE_FOCAL_POSES,
    ABSOLUTE_POSES,
    Correspondences,
    Indices,
    IntrinsicsPrior,
    pack_space,
    three_point,
)
from caransac.robust.problems.base import Problem, Real, Traits, count_distinct, with_intrinsics
from caransac.robust.problems.focal import precision, solve_in_turns
from caransac.robust.problems.lens_prior import LensPrior
from caransac.robust.problems.relative import CameraPrior
from caransac.tuning import CAMERAS, ERRORS

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on


@dataclass(frozen=True, eq=False)
class Frame:
    """Normalised coordinates of 3D points: ``X' = axes (X - centre) / scale``, of the order of one.

    The points spread most along the first two axes, for code that reads only two coordinates.

    Attributes:
        centre: (3,) median of the points.
        scale: spread of the points.
        axes: (3, 3) rotation.
    """

    centre: Array
    scale: float
    axes: Array

    @classmethod
    def of(cls, points: Array) -> Frame:
        """Return the frame of points (n, 3), robust to a few extreme outliers."""
        if len(points) == 0:
            return cls(np.zeros(3), 1.0, np.eye(3))
        middle = len(points) // 2
        centre = np.partition(points, middle, axis=0)[middle].copy()  # a view would keep all points
        shifted = points - centre
        squares = np.einsum("ij,ij->i", shifted, shifted)
        median = math.sqrt(np.partition(squares, middle)[middle])
        # The median times 1.6 is about a root mean square, as for the points of an image.
        scale = max(1.6 * median / 3**0.5, 1e-9 * max(math.sqrt(squares.max()), 1e-9))
        near = shifted[squares < 9.0 * scale * scale] / scale  # outliers must not rotate the axes
        axes = np.linalg.eigh(near.T @ near)[1][:, ::-1].T
        return cls(centre, scale, np.asarray(axes * np.linalg.det(axes)))

    def enter(self, points: Array) -> Array:
        """Normalise points (n, 3)."""
        return np.asarray((points - self.centre) @ self.axes.T / self.scale)

    def leave(self, models: Array) -> Array:
        """Convert poses (m, 3, 4) for normalised points to poses for the given points."""
        R = models[..., :3] @ self.axes
        t = self.scale * models[..., 3] - R @ self.centre
        return np.concatenate([R, t[..., None]], axis=-1)

    def pose(self, model: Array) -> Array:
        """Convert a pose (3, 4) for the given points to a pose for normalised points: the inverse of `leave`."""
        R = model[:, :3]
        return np.concatenate([R @ self.axes.T, (R @ self.centre + model[:, 3])[:, None] / self.scale], axis=1)

    def covariance(self, covariance: Array, model: Array) -> Array:
        """Convert the covariance (f, f), f >= 6, of a pose for normalised points to that for the given points.

        Both refer to a rotation vector applied from the left, and to an additive change of the translation. `model` is
        the pose (3, 4) for the given points.
        """
        rates = np.eye(len(covariance))
        moved = ABSOLUTE.translation
        rates[moved, ABSOLUTE.rotation] = cross_matrix(model[:, :3] @ self.centre)
        rates[moved, moved] *= self.scale
        return np.asarray(rates @ covariance @ rates.T)


class Absolute(Problem):
    """Points of image 1 are normalised image coordinates, those of "image 2" are 3D points; models are poses [R | t].

    Attributes:
        frame: normalisation of the 3D points.
        camera: the given camera.
        keypoints: (n,) index of the keypoint of each match; None if no keypoint has several matches.
    """

    traits = Traits(confidence="absolute", degeneracy="one view", exact_cameras=True)
    weights = "absolute"
    sample_size = 3
    num_images = 1
    error_dimensions = 2
    median_error = 1.177
    model_kernels = ABSOLUTE_POSES

    def __init__(
        self,
        correspondences: Correspondences,
        frame: Frame,
        camera: Camera,
        usable: NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__(correspondences, 1 / camera.mean_focal, usable, LensPrior.of_one(camera))
        self.frame, self.camera = frame, camera
        points = self.points1
        self.keypoints: NDArray[np.intp] | None = None
        if count_distinct(points) < self.num_points:
            self.keypoints = np.unique(points[:, 0] + 1j * points[:, 1], return_inverse=True)[1]

    @classmethod
    def from_pixels(cls, pixels: Array, points3d: Array, camera: Camera) -> Absolute:
        """Make the problem from pixels (N, 2) and points (N, 3); `AbsoluteFocal` if the focal length is uncertain.

        Matches whose pixel has no ray are not usable.
        """
        rays = camera.pixels_to_rays(pixels)
        finite, usable = np.isfinite(rays), None
        if not finite.all():
            usable = np.asarray(finite.all(axis=1))
            rays, points3d = rays[usable], points3d[usable]
        frame = Frame.of(points3d)
        kind = AbsoluteFocal if camera.focal_deviation > 0 else Absolute
        return kind(pack_space(rays, frame.enter(points3d)), frame, camera, usable)

    def subset(self, index: Indices) -> Self:
        """Return the subproblem of the points at `index`; see `Problem.subset`."""
        keypoints = None if self.keypoints is None else self.keypoints[index]
        return super().subset(index).with_changes(keypoints=keypoints)

    def share(self, weights: NDArray[Real]) -> NDArray[Real]:
        """Reduce the weights (n,) of keypoints that match several 3D points; see `Problem.share`."""
        weights = super().share(weights)
        if self.keypoints is None:
            return weights
        together = np.bincount(self.keypoints, weights)[self.keypoints]
        return np.asarray(weights / np.maximum(together, 1.0), weights.dtype)

    def solve(self, samples: Indices) -> Array:
        """Solve samples (S, 3) for poses (m, 3, 4)."""
        return three_point(self.correspondences, samples)[0]

    def public(self, models: Array) -> Array:
        """Convert models to poses [R | t] (m, 3, 4) for the given points."""
        return self.frame.leave(models[..., :4])

    def from_public(self, model: Array) -> Array:
        """Convert a pose (3, 4) for the given points to a model."""
        return self.frame.pose(model)

    def outcomes(self, models: Array) -> Array:
        """Return camera centres divided by the median depth, and rotations: (m, 12)."""
        R, t = models[..., :3], models[..., 3]
        centres = -(R.swapaxes(1, 2) @ t[..., None])[..., 0]
        depths = np.median(self.points2 @ R[:, 2].T + t[:, 2], axis=0)
        places = centres / np.maximum(np.abs(depths), 1e-9)[:, None]
        return np.concatenate([places, R.reshape(-1, 9) / 2**0.5], axis=1)

    def mirror(self, model: Array, inliers: NDArray[np.bool_]) -> tuple[Array, float]:
        """Return the pose that sees the plane of the inliers (n,) tilted the opposite way, and their share on it."""
        points = self.points2[inliers]
        centre, normal = _plane_of(points)
        R, t = model[:, :3], model[:, 3]
        seen = R @ centre + t
        depths = np.maximum(points @ R[2] + t[2], 1e-9)
        share = float(np.mean(np.abs((points - centre) @ normal) < 0.01 * depths))  # within 1 % of the depth
        ahead = seen / max(float(np.linalg.norm(seen)), 1e-9)
        turned = (np.eye(3) - 2 * np.outer(ahead, ahead)) @ R @ (np.eye(3) - 2 * np.outer(normal, normal))
        mirrored = model.copy()
        mirrored[:, :3], mirrored[:, 3] = turned, seen - turned @ centre
        return mirrored, share

    def flipped(self, model: Array, inliers: NDArray[np.bool_]) -> tuple[Self, Array]:
        """Return the problem with a mirrored image, and the model that sees the plane of the inliers (n,) in it."""
        centre, normal = _plane_of(self.points2[inliers])
        flip = np.diag([-1.0, 1.0, 1.0])
        R = flip @ model[:, :3] @ (np.eye(3) - 2 * np.outer(normal, normal))
        flipped = model.copy()
        flipped[:, :3], flipped[:, 3] = R, flip @ (model[:, :3] @ centre + model[:, 3]) - R @ centre
        flipped[1, 4:] *= -1  # principal points
        return self.with_changes(correspondences=pack_space(self.points1 * (-1.0, 1.0), self.points2)), flipped

    def bent(self, model: Array) -> tuple[Array, Correspondences]:
        """Return a model (3, 6) that includes the lens of the problem, and the distorted points."""
        assert self.lens_prior is not None
        bent = with_intrinsics(model).copy()
        bent[0, 5] = self.lens_prior.k1[0] * math.exp(2 * bent[0, 4])  # for rays of the model's focal length
        return bent, self.through((0.0, 0.0)).correspondences

    @staticmethod
    def flat(bent: Array) -> tuple[Array, float]:
        """Split a model (3, 6) with a lens into a model without one, and k1: the inverse of `bent`."""
        model = bent.copy()
        model[0, 5] = 0.0
        return model, float(bent[0, 5]) * math.exp(-2 * bent[0, 4])

    @property
    def camera_information(self) -> Array:
        """Information (4,) of the prior about log_scale, x, y and k1; infinity for exact parameters."""
        return np.array([np.inf, np.inf, np.inf, precision(1.0, self.camera.distortion_deviation)])


def _plane_of(points: Array) -> tuple[Array, Array]:
    """Return the centre (3,) and the normal (3,) of the plane nearest to points (n, 3)."""
    centre = points.mean(axis=0)
    return centre, np.linalg.svd(points - centre, full_matrices=False)[2][2]


class AbsoluteFocal(Absolute):
    """The absolute pose of a camera whose focal length is uncertain; models are [R | t | a | b], (3, 6).

    The intrinsics a = (log_scale, x, y) are those of `FocalPose`. b is zero, because the points are already
    undistorted.
    """

    traits = Traits(confidence="absolute_focal", degeneracy="one view")
    model_kernels = ABSOLUTE_FOCAL_POSES

    @property
    @computed_once
    def camera_prior(self) -> CameraPrior:
        """The prior of the camera."""
        return CameraPrior.of(self.camera, CAMERAS.centre_deviation)

    def solve(self, samples: Indices) -> Array:
        """Solve samples (S, 3) for models (m, 3, 6), at several focal lengths in turn."""
        guesses = [(step * self.camera_prior.focal, 0.0) for step in CAMERAS.focal_steps]
        return solve_in_turns(self.correspondences, samples, guesses, pack_space, three_point)

    def from_public(self, model: Array) -> Array:
        """Convert a pose (3, 4), or a pose with intrinsics (3, 6), for the given points to a model."""
        return np.concatenate([self.frame.pose(model), with_intrinsics(model)[:, 4:]], axis=1)

    def intrinsics_prior(
        self,
        noise: float,
        model: Array | None = None,  # noqa: ARG002  # 3D points determine the focal length well
        weights: Array | None = None,  # noqa: ARG002  # likewise
    ) -> IntrinsicsPrior:
        """Return the prior of focal length and principal point; see `Problem.intrinsics_prior`."""
        variance = (noise / self.median_error) ** 2
        # 3D points determine a focal length far better than a second image does, so its prior is not tempered.
        return IntrinsicsPrior(
            log_scale=(precision(variance, self.camera_prior.focal), 0.0),
            centre=(precision(ERRORS.cameras * variance, self.camera_prior.centre), 0.0),
            k1=(np.inf, 0.0),
        )

    @property
    def prior_information(self) -> Array:
        """Information (10, 10) of the prior of the camera."""
        return np.diag([*np.zeros(ABSOLUTE.pose), *self.camera_information[:3], np.inf])

    @property
    def camera_information(self) -> Array:
        """Information (4,) of the prior about log_scale, x, y and k1; infinity for exact parameters."""
        centre = precision(1.0, self.camera_prior.centre)
        lens = precision(1.0, self.camera.distortion_deviation)
        return np.array([precision(1.0, self.camera_prior.focal), centre, centre, lens])
