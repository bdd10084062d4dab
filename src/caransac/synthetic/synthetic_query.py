"""A synthetic query: an image of a cloud of points, matched with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import LARGEST_SIDE, as_size, check_real, check_whole
from caransac.camera import Camera
from caransac.geometry import Array, homogeneous, rotation_from_vector
from caransac.synthetic.synthetic_pair import MOST_POINTS


@dataclass(frozen=True, eq=False)
class SyntheticQuery:
    """2D-3D matches of one camera, and the ground truth.

    Attributes:
        points2d: (n, 2) pixels.
        points3d: (n, 3) 3D points.
        camera: the camera.
        scores: (n,) second-nearest-neighbour ratios, lower for better matches.
        R: (3, 3) true rotation, ``x = R X + t``.
        t: (3,) true translation.
        inliers: (n,) which matches are right.
    """

    points2d: Array
    points3d: Array
    camera: Camera
    scores: Array
    R: Array
    t: Array
    inliers: NDArray[np.bool_]


def make_query(
    num_points: int = 500,
    outlier_ratio: float = 0.5,
    noise_px: float = 0.5,
    seed: int = 0,
    *,
    flat: bool = False,
    width: int = 1024,
    height: int = 768,
) -> SyntheticQuery:
    """An image of a cloud of points, or of a plane, with random outliers and ratio-like scores.

    Args:
        num_points: number of matches.
        outlier_ratio: fraction of them that are wrong, 0 to 1.
        noise_px: standard deviation of the keypoints' position in pixels.
        seed: seed of the scene.
        flat: whether the points lie on a plane, oblique to the camera.
        width: image width in pixels.
        height: image height in pixels.
    """
    check_whole(num_points, "num_points", 0, MOST_POINTS)
    check_real(outlier_ratio, "outlier_ratio", 0, 1)
    check_real(noise_px, "noise_px", 0, LARGEST_SIDE)
    width, height = as_size((width, height), "width and height")
    rng = np.random.default_rng(seed)
    camera = Camera("SIMPLE_PINHOLE", (0.9 * width, width / 2, height / 2), width, height)
    R, t = rotation_from_vector(rng.uniform(-1.5, 1.5, 3)), rng.normal(size=3) * 5
    pixels = rng.uniform(0, 1, (num_points, 2)) * (width, height)
    rays = homogeneous(camera.pixels_to_rays(pixels))
    depths = 6 / (rays @ (0.5, 0.3, 1.0)) if flat else rng.uniform(3, 12, num_points)
    space = (rays * depths[:, None] - t) @ R
    inliers = rng.random(num_points) >= outlier_ratio
    wrong = np.flatnonzero(~inliers)
    space[wrong] = space[rng.integers(num_points, size=len(wrong))]  # other places of the same scene
    scores = np.where(inliers, rng.beta(4, 2.5, num_points), rng.beta(14, 1.2, num_points))
    pixels = pixels + noise_px * rng.normal(size=pixels.shape)
    return SyntheticQuery(pixels, space, camera, scores, R, t, inliers)
