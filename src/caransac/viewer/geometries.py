"""The models of an estimation as what the viewer can draw of them."""

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
        pixels: (n, 2) the matches' points.
        camera: its camera, refined if it was uncertain, or None.
        given_camera: the camera that the estimation started from, in whose pixels it measures distances, or None.
        focal: its focal length and where that comes from, in words.
        size: (width, height) in pixels.
        jpeg: the picture, of any scale, or None for an empty frame.
    """

    pixels: Array
    camera: Camera | None
    given_camera: Camera | None
    focal: str
    size: tuple[int, int]
    jpeg: bytes | None


class DrawnGeometry(ABC):
    """The models of a trace as what can be drawn of them.

    Attributes:
        kind: what is estimated: "pose", "fundamental" or "homography".
        matrix_name: what `matrix` is: "F", a fundamental matrix, or "H", a homography.
        undistorts: whether the models are of points without their lens distortion.
    """

    kind: str
    matrix_name: str
    undistorts: bool

    @abstractmethod
    def distances_px(self, model: Array) -> Array:
        """Distances (n,) of the matches to a model in pixels, as the estimation measures them."""

    @abstractmethod
    def num_inliers(self, model: Array) -> int:
        """How many matches support a model."""

    @abstractmethod
    def matrix(self, model: Array) -> Array:
        """Fundamental matrix or homography (3, 3) of a model, of pixels without lens distortion where `undistorts`."""

    @abstractmethod
    def pose(self, model: Array) -> Pose | None:
        """Rotation (3, 3) and translation (3,) of a model, or None where it does not tell, or not without cameras."""


class DrawnPose(DrawnGeometry):
    """Relative poses [R | t], all with the cameras of the answer."""

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
        """A pose with what the cameras of the answer differ by from those given: a model of the problem."""
        return np.concatenate([model, self._intrinsics], axis=1)

    def distances_px(self, model: Array) -> Array:
        """See `DrawnGeometry.distances_px`."""
        distances = self._problem.distances(self._refined(model)) / self._problem.pixel
        return spread_usable(distances, self._problem.usable, np.inf)

    def num_inliers(self, model: Array) -> int:
        """See `DrawnGeometry.num_inliers`."""
        return int(self._problem.inliers(self._refined(model), self._max_error_px * self._problem.pixel).sum())

    def matrix(self, model: Array) -> Array:
        """See `DrawnGeometry.matrix`."""
        F = fundamental_from_essential(essential_from_pose(*self.pose(model)), self._K1, self._K2)
        return np.asarray(F / np.linalg.norm(F))

    def pose(self, model: Array) -> Pose:
        """See `DrawnGeometry.pose`."""
        return split_pose(model)


class DrawnPixelMatrices(DrawnGeometry):
    """Matrices of pixels, measured by a problem of these."""

    _problem: Fundamental | Homography
    _max_error_px: float

    def distances_px(self, model: Array) -> Array:
        """See `DrawnGeometry.distances_px`."""
        normalised = self._problem.from_public(model)
        return self._problem.distances(normalised) / self._problem.pixel

    def num_inliers(self, model: Array) -> int:
        """See `DrawnGeometry.num_inliers`."""
        max_error = self._max_error_px * self._problem.pixel
        return int(self._problem.inliers(self._problem.from_public(model), max_error).sum())

    def matrix(self, model: Array) -> Array:
        """See `DrawnGeometry.matrix`."""
        return model


class DrawnFundamental(DrawnPixelMatrices):
    """Fundamental matrices of pixels as they are."""

    kind = "fundamental"
    matrix_name = "F"
    undistorts = False

    def __init__(self, images: tuple[DrawnImage, DrawnImage], max_error_px: float) -> None:
        self._images = images
        self._problem = Fundamental.from_pixels(images[0].pixels, images[1].pixels)
        self._max_error_px = max_error_px

    def pose(self, model: Array) -> Pose | None:
        """See `DrawnGeometry.pose`."""
        first, second = self._images
        if first.camera is None or second.camera is None:
            return None
        near = self.distances_px(model) < self._max_error_px
        return caransac.pose_from_fundamental(
            self.matrix(model), first.pixels[near], second.pixels[near], first.camera, second.camera
        )


class DrawnHomography(DrawnPixelMatrices):
    """Homographies of pixels as they are, or without the lens distortion of the cameras as given."""

    kind = "homography"
    matrix_name = "H"

    def __init__(self, images: tuple[DrawnImage, DrawnImage], max_error_px: float, *, undistorts: bool) -> None:
        self.undistorts = undistorts
        pixels1, pixels2 = (_flat(image) if undistorts else image.pixels for image in images)
        self._problem = Homography.from_pixels(pixels1, pixels2)
        self._max_error_px = max_error_px

    def pose(self, model: Array) -> None:  # noqa: ARG002  # of a plane there are several, of a rotation none
        """See `DrawnGeometry.pose`."""
        return


def _flat(image: DrawnImage) -> Array:
    """The points (n, 2) without lens distortion, as `caransac.estimate` fits planes to them."""
    if image.given_camera is None:
        return image.pixels
    flat = image.given_camera.undistort_pixels(image.pixels)
    return np.where(np.isfinite(flat), flat, image.pixels)


def _change(given: Camera, found: Camera) -> Array:
    """(3,) intrinsics of `FocalPose` that turn one camera into the other: the inverse of `Camera.adjusted`."""
    offset = found.K[:2, 2] - given.K[:2, 2]
    return np.array([np.log(found.fx / given.fx), offset[0] / given.fx, offset[1] / given.fy])
