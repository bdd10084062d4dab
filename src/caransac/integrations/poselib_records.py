"""Return types of PoseLib's estimators: poses, cameras and image pairs, with its names.

If PoseLib is installed, poses have its type, because its functions accept poses. They do not accept the other types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import as_reals
from caransac.geometry import Array, quaternion_from_rotation


@dataclass(frozen=True, eq=False)
class CameraPose:
    """A pose like PoseLib's, ``x2 = R x1 + t``.

    Attributes:
        R: (3, 3) rotation.
        t: (3,) translation.
    """

    R: Array
    t: Array

    @property
    def q(self) -> Array:
        """Rotation as a unit quaternion (w, x, y, z)."""
        return quaternion_from_rotation(self.R)

    @property
    def Rt(self) -> Array:
        """(3, 4) matrix [R t]."""
        return np.column_stack([self.R, self.t])

    def center(self) -> Array:
        """Return the centre of the camera (3,), ``-R^T t``."""
        return np.asarray(-self.R.T @ self.t)

    def __repr__(self) -> str:
        return f"[q: {' '.join(f'{x:g}' for x in self.q)}, t: {' '.join(f'{x:g}' for x in self.t)}]"


def pose_type() -> Any:
    """Return PoseLib's CameraPose if it is installed, otherwise the class of this module."""
    try:
        from poselib import CameraPose as Original
    except ImportError:
        return CameraPose
    return Original


def make_pose(R: Array, t: Array) -> CameraPose:
    """Return the pose of a rotation (3, 3) and a translation (3,), as a `pose_type`."""
    kind: Any = pose_type()
    if kind is CameraPose:
        return CameraPose(R, t)
    pose = kind()
    pose.R, pose.t = R, t
    return cast(CameraPose, pose)


@dataclass(frozen=True)
class PinholeCamera:
    """A camera like PoseLib's, of the model SIMPLE_PINHOLE.

    Attributes:
        params: [f, cx, cy] in pixels.
        width: width of the image; always -1, because it is unknown.
        height: height of the image; always -1, because it is unknown.
        focal_deviation: relative standard deviation of the focal length (new).
    """

    params: list[float]
    width: int = -1
    height: int = -1
    focal_deviation: float = 0.0

    model_id = 0

    def model_name(self) -> str:
        """Return the name of the model, as in COLMAP."""
        return "SIMPLE_PINHOLE"

    def focal(self) -> float:
        """Return the focal length in pixels."""
        return self.params[0]

    focal_x = focal_y = focal

    def principal_point(self) -> Array:
        """Return the principal point (2,) in pixels."""
        return np.array(self.params[1:])

    def project(self, points: ArrayLike) -> Array:
        """Return the pixels (N, 2) of normalised image coordinates (N, 2)."""
        return np.asarray(as_reals(points, "points") * self.focal() + self.principal_point())

    def unproject(self, points: ArrayLike) -> Array:
        """Return the normalised image coordinates (N, 2) of pixels (N, 2)."""
        return np.asarray((as_reals(points, "points") - self.principal_point()) / self.focal())

    def __repr__(self) -> str:
        return " ".join(["SIMPLE_PINHOLE", str(self.width), str(self.height), *(f"{value:g}" for value in self.params)])


@dataclass(frozen=True, eq=False)
class ImagePair:
    """Two cameras and their relative pose, like PoseLib's.

    Attributes:
        pose: pose of camera 2 relative to camera 1.
        camera1: camera of image 1.
        camera2: camera of image 2.
    """

    pose: CameraPose
    camera1: PinholeCamera
    camera2: PinholeCamera

    def __repr__(self) -> str:
        return f"[pose {self.pose!r}, camera1: {self.camera1!r}, camera2: {self.camera2!r}]"
