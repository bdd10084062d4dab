"""Parallax of matches: the part of their motion that no rotation explains."""

from __future__ import annotations

import numpy as np

from caransac.camera import Camera
from caransac.geometry.formulas import Array, homogeneous, nearest_rotation

STEPS = 10  # iterations towards the rotation with the smallest distances


def median_parallax_px(R: Array, points1: Array, points2: Array, camera1: Camera, camera2: Camera) -> float | None:
    """Return the median distance, in pixels, of points in image 2 from their prediction by the best pure rotation.

    If a translation moves the points by less than their noise, its direction cannot be determined. The rotation of a
    pose is not the best pure rotation: a rotation can also explain the motion of distant points by a translation.

    Args:
        R: (3, 3) initial rotation from camera 1 to camera 2.
        points1: (n, 2) pixels of inliers in image 1.
        points2: (n, 2) pixels of inliers in image 2.
        camera1: camera of image 1.
        camera2: camera of image 2.

    Returns:
        The median, or None if no point of image 1 is in front of the rotated camera.
    """
    rays1, rays2 = (
        homogeneous(camera.pixels_to_rays(points)) for camera, points in ((camera1, points1), (camera2, points2))
    )
    has_rays = np.isfinite(rays1).all(axis=1) & np.isfinite(rays2).all(axis=1)
    rays1, rays2, pixels2 = rays1[has_rays], rays2[has_rays], points2[has_rays]
    started = _median_px(rays1 @ R.T, pixels2, camera2)
    units1, units2 = (rays / np.linalg.norm(rays, axis=1, keepdims=True) for rays in (rays1, rays2))
    best = [] if started is None else [started]
    turn = R
    for _ in range(STEPS if len(units1) >= 3 else 0):  # Weiszfeld: minimise the sum of distances
        distances = np.linalg.norm(units1 @ turn.T - units2, axis=1)
        weights = 1 / np.maximum(distances, 1e-3 * np.median(distances) + 1e-9)
        turn = nearest_rotation(np.einsum("ni,nj->ij", units2 * weights[:, None], units1))
        found = _median_px(rays1 @ turn.T, pixels2, camera2)
        best += [] if found is None else [found]
    return min(best, default=None)


def _median_px(turned: Array, pixels2: Array, camera2: Camera) -> float | None:
    """Return the median pixel distance between projected rays (n, 3) and pixels (n, 2); None if no ray is in front."""
    seen = turned[:, 2] > 0
    if not seen.any():
        return None
    moved = camera2.rays_to_pixels(turned[seen, :2] / turned[seen, 2:]) - pixels2[seen]
    return float(np.median(np.linalg.norm(moved, axis=1)))
