"""Triangulate the matches of two posed cameras."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.geometry.formulas import Array, depths, epipolar_corrections, homogeneous


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Points3D:
    """Triangulated matches that lie in front of both cameras.

    Attributes:
        index: (m,) index of each point's match, in ascending order.
        xyz: (m, 3) coordinates in the frame of camera 1, in units of the baseline (``|t| = 1``).
        angle_deg: (m,) angle between the two rays. The depth of a point with a small angle is uncertain.
        error_px: (m,) reprojection error in pixels: root mean square of the distances in both images.
    """

    index: NDArray[np.int64]
    xyz: Array
    angle_deg: Array
    error_px: Array

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        if len(self) == 0:
            return "Points3D(no points)"
        angle, error = np.median(self.angle_deg), np.median(self.error_px)
        return f"Points3D({len(self)} points, median angle {angle:.1f}°, median error {error:.2f} px)"


def triangulate_matches(
    R: Array,
    t: Array,
    points1: Array,
    points2: Array,
    camera1: Camera,
    camera2: Camera,
    chosen: NDArray[np.bool_],
) -> Points3D:
    """Triangulate the chosen matches.

    Rays are first moved onto corresponding epipolar lines, which is optimal to first order.

    Args:
        R: (3, 3) rotation from camera 1 to camera 2.
        t: (3,) translation.
        points1: (n, 2) pixels in image 1.
        points2: (n, 2) pixels in image 2.
        camera1: camera of image 1.
        camera2: camera of image 2.
        chosen: (n,) the matches to triangulate.
    """
    pixels1, pixels2 = points1[chosen], points2[chosen]
    rays1, rays2 = camera1.pixels_to_rays(pixels1), camera2.pixels_to_rays(pixels2)
    correction1, correction2 = epipolar_corrections(R, t, rays1, rays2)
    nearest = rays1 + correction1
    depth1, depth2 = depths(R, t, nearest, rays2 + correction2).T
    front = np.flatnonzero((depth1 > 0) & (depth2 > 0))  # not NaN, which means no ray or parallel rays
    xyz = homogeneous(nearest[front]) * depth1[front, None]
    seen2 = xyz @ R.T + t
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        errors_sq = sum(
            np.sum((camera.rays_to_pixels(seen[:, :2] / seen[:, 2:]) - pixels[front]) ** 2, axis=1)
            for camera, seen, pixels in ((camera1, xyz, pixels1), (camera2, seen2, pixels2))
        )
    finite = np.isfinite(errors_sq)  # of points next to a camera, or nearly at infinity, the error may overflow
    front, xyz, errors_sq = front[finite], xyz[finite], errors_sq[finite]
    turned, straight = homogeneous(rays1[front]) @ R.T, homogeneous(rays2[front])
    across = np.linalg.norm(np.cross(turned, straight), axis=1)
    return Points3D(
        index=np.flatnonzero(chosen)[front].astype(np.int64),
        xyz=xyz,
        angle_deg=np.degrees(np.arctan2(across, np.sum(turned * straight, axis=1))),
        error_px=np.sqrt(errors_sq / 2),
    )
