"""How much a translation shows: the parallax of matches."""

from __future__ import annotations

import numpy as np

from caransac.camera import Camera
from caransac.geometry.formulas import Array, homogeneous


def median_parallax_px(R: Array, points1: Array, points2: Array, camera1: Camera, camera2: Camera) -> float | None:
    """How far points in image 2 lie from where the rotation alone would put them: the median, in pixels.

    A translation that moves the points by less than they are uncertain has no direction to speak of.

    Args:
        R: (3, 3) rotation from camera 1 to camera 2.
        points1: (n, 2) pixels in image 1 of right matches.
        points2: (n, 2) pixels in image 2.
        camera1: camera of image 1.
        camera2: camera of image 2.

    Returns:
        The median, or None where no point of image 1 is in front of the turned camera.
    """
    turned = homogeneous(camera1.pixels_to_rays(points1)) @ R.T
    seen = turned[:, 2] > 0  # nor where a lens has no ray: NaN
    if not seen.any():
        return None
    moved = camera2.rays_to_pixels(turned[seen, :2] / turned[seen, 2:]) - points2[seen]
    return float(np.median(np.linalg.norm(moved, axis=1)))
