"""Models of an estimation in forms that the viewer can draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

import caransac
from caransac._support.arrays import spread_usable
from caransac.camera import Camera
from caransac.geometry import Array, essential_from_pose, fundamental_from_essential, split_pose
from caransac.robust.problems import Essential, FocalPose, Fundamental, Homography, Problem

Pose = tuple[Array, Array]


@dataclass(frozen=True)
class DrawnImage:
    """One of the two images.

    Attributes:
        pixels: (n, 2) points of the matches.
        camera: camera of the image, refined if it was uncertain, or None.
        given_camera: camera that the estimation started from, or None. Distances are measured in its pixels.
        focal: focal length and its source, in words.
        size: (width, height) in pixels.
        jpeg: picture of any resolution, or None for an empty frame.
    """

    pixels: Array
    camera: Camera | None
    given_camera: Camera | None
    focal: str
    size: tuple[int, int]
    jpeg: bytes | None


class DrawnGeometry(ABC):
    """Convert the models of a trace to matrices and poses that can be drawn.

    Attributes:
        kind: kind of estimate: "pose", "fundamental" or "homography".
        matrix_name: kind of `matrix`: "F" for a fundamental matrix, "H" for a homography.
        undistorts: whether the models refer to points without lens distortion.
    """

    kind: str
    matrix_name: str
    undistorts: bool

    @abstractmethod
    def distances_px(self, model: Array) -> Array:
        """Return the distances (n,) of the matches to a model in pixels, as the estimator measures them."""

    @abstractmethod
    def num_inliers(self, model: Array) -> int:
        """Count the matches that support a model."""

    @abstractmethod
    def matrix(self, model: Array) -> Array:
        """Return the fundamental matrix or homography (3, 3), for undistorted pixels if `undistorts` is True."""

    @abstractmethod
    def pose(self, model: Array) -> Pose | None:
        """Return rotation (3, 3) and translation (3,), or None if they are ambiguous or a camera is missing."""


class DrawnPose(DrawnGeometry):
    """Relative poses [R | t], all with the final cameras."""

    kind = "pose"
    matrix_name = "F"
    undistorts = True

    def __init__(self, images: tuple[DrawnImage, DrawnImage], max_error_px: float) -> None:
        (pixels1, camera1, given1), (pixels2, camera2, given2) = (
            (image.pixels, image.camera, image.given_camera or image.camera) for image in images
        )
        if camera1 is None or camera2 is None or given1 is None or given2 is None:
            number = 1 if camera1 is None else 2
            raise ValueError(
                f"camera{number} is missing: the epipolar lines of a relative pose need both cameras; if it was "
                f"unknown to the estimation, give size{number}"
            )
        self._K1, self._K2 = camera1.K, camera2.K
        self._problem: Problem = Essential.from_pixels(pixels1, pixels2, camera1, camera2)
        self._intrinsics = np.empty((3, 0))
        if (camera1, camera2) != (given1, given2):
            self._problem = FocalPose.from_pixels(pixels1, pixels2, given1, given2, shared=False)
            self._intrinsics = np.stack([_change(given1, camera1), _change(given2, camera2)], axis=1)
        self._max_error_px = max_error_px

    def _refined(self, model: Array) -> Array:
        """Add the changes of the final cameras to a pose. The result is a model of the problem."""
        return np.concatenate([model, self._intrinsics], axis=1)

    def distances_px(self, model: Array) -> Array:
        """Return the distances (n,) of the matches to a pose in pixels."""
        distances = self._problem.distances(self._refined(model)) / self._problem.pixel
        return spread_usable(distances, self._problem.usable, np.inf)

    def num_inliers(self, model: Array) -> int:
        """Count the matches that support a pose."""
        return int(self._problem.inliers(self._refined(model), self._max_error_px * self._problem.pixel).sum())

    def matrix(self, model: Array) -> Array:
        """Return the fundamental matrix (3, 3) of a pose, for undistorted pixels if `undistorts` is True."""
        F = fundamental_from_essential(essential_from_pose(*self.pose(model)), self._K1, self._K2)
        return np.asarray(F / np.linalg.norm(F))

    def pose(self, model: Array) -> Pose:
        """Return rotation (3, 3) and translation (3,) of a pose."""
        return split_pose(model)


class DrawnPixelMatrices(DrawnGeometry):
    """Matrices of pixels and the problem that measures them."""

    _problem: Fundamental | Homography
    _max_error_px: float

    def distances_px(self, model: Array) -> Array:
        """Return the distances (n,) of the matches to a matrix in pixels."""
        normalised = self._problem.from_public(model)
        return self._problem.distances(normalised) / self._problem.pixel

    def num_inliers(self, model: Array) -> int:
        """Count the matches that support a matrix."""
        max_error = self._max_error_px * self._problem.pixel
        return int(self._problem.inliers(self._problem.from_public(model), max_error).sum())

    def matrix(self, model: Array) -> Array:
        """Return the matrix (3, 3) itself."""
        return model


class DrawnFundamental(DrawnPixelMatrices):
    """Fundamental matrices of pixels; lens distortion is not removed."""

    kind = "fundamental"
    matrix_name = "F"
    undistorts = False

    def __init__(self, images: tuple[DrawnImage, DrawnImage], max_error_px: float) -> None:
        self._images = images
        self._problem = Fundamental.from_pixels(images[0].pixels, images[1].pixels)
        self._max_error_px = max_error_px

    def pose(self, model: Array) -> Pose | None:
        """Return the pose of a fundamental matrix, or None if the cameras are unknown."""
        first, second = self._images
        if first.camera is None or second.camera is None:
            return None
        near = self.distances_px(model) < self._max_error_px
        return caransac.pose_from_fundamental(
            self.matrix(model), first.pixels[near], second.pixels[near], first.camera, second.camera
        )


class DrawnHomography(DrawnPixelMatrices):
    """Homographies of pixels, either original or undistorted with the given cameras."""

    kind = "homography"
    matrix_name = "H"

    def __init__(self, images: tuple[DrawnImage, DrawnImage], max_error_px: float, *, undistorts: bool) -> None:
        self.undistorts = undistorts
        pixels1, pixels2 = (_flat(image) if undistorts else image.pixels for image in images)
        self._problem = Homography.from_pixels(pixels1, pixels2)
        self._max_error_px = max_error_px

    def pose(self, model: Array) -> None:  # noqa: ARG002  # a plane has several poses, a rotation has none
        """Return None: a plane has several poses, and a pure rotation has no translation."""
        return


def _flat(image: DrawnImage) -> Array:
    """Return undistorted points (n, 2), to which `caransac.estimate` fits planes."""
    if image.given_camera is None:
        return image.pixels
    flat = image.given_camera.undistort_pixels(image.pixels)
    return np.where(np.isfinite(flat), flat, image.pixels)


def _change(given: Camera, found: Camera) -> Array:
    """Return the intrinsics (3,) of `FocalPose` that turn `given` into `found`: the inverse of `Camera.adjusted`."""
    offset = found.K[:2, 2] - given.K[:2, 2]
    return np.array([np.log(found.fx / given.fx), offset[0] / given.fx, offset[1] / given.fy])
